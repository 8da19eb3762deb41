// SPDX-License-Identifier: Apache-2.0
// One entry of the disk cache: its files, and the manifest that states their sizes and digests.
// Bytes in, bytes out; no file is touched here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "jit/cache_key.hpp"

namespace gemmery::jit {

// The files of an entry other than its manifest, in this order.
enum class EntryFile : std::uint8_t { key, source, code, log };
inline constexpr std::size_t entry_file_count = 4;
inline constexpr std::array<EntryFile, entry_file_count> entry_files{
    EntryFile::key, EntryFile::source, EntryFile::code, EntryFile::log};
inline constexpr const char* manifest_name = "manifest";

struct EntryManifest {
  struct File {
    std::uint64_t bytes = 0;
    std::string digest;  // XXH3-128, 32 hexadecimal digits

    friend bool operator==(const File&, const File&) = default;
  };

  CodeForm form = CodeForm::cubin;
  std::array<File, entry_file_count> files;
  CodeUsage usage;

  const File& of(EntryFile file) const { return files[static_cast<std::size_t>(file)]; }

  friend bool operator==(const EntryManifest&, const EntryManifest&) = default;
};

// An entry as it lies in its folder.
struct EntryFiles {
  std::string manifest;
  std::array<std::string, entry_file_count> contents;
  CodeForm form = CodeForm::cubin;

  std::string& of(EntryFile file) { return contents[static_cast<std::size_t>(file)]; }
  const std::string& of(EntryFile file) const { return contents[static_cast<std::size_t>(file)]; }
  std::uint64_t total_bytes() const;
};

// "key", "source.cu", "kernel.cubin" or "kernel.ptx", "log".
const char* file_name(EntryFile file, CodeForm form) noexcept;

EntryFiles encode_entry(const CacheKey& key, const CompiledCode& code);

// Nothing if a single byte differs from what `encode_entry` writes.
std::optional<EntryManifest> parse_manifest(std::string_view text);
// "gemmery cache entry 2": written by a library with another format.
bool is_of_other_version(std::string_view manifest);

// True if the bytes are those for which the manifest was written.
bool is_as_written(const EntryManifest::File& file, std::string_view content);

// From files that passed `is_as_written`.
CompiledCode decode_entry(const EntryManifest& manifest, EntryFiles files);

// XXH3-128 of a text, 32 hexadecimal digits.
std::string digest_of(std::string_view text);
// The name of the entry's folder: the digest of the key.
std::string entry_name(const CacheKey& key);

}  // namespace gemmery::jit
