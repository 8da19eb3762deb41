// SPDX-License-Identifier: Apache-2.0
// The manifest: a line per file, a line of resources, and a digest of the manifest at the end.
#include "jit/cache_entry.hpp"

#include <charconv>
#include <cstring>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <xxhash.h>

namespace gemmery::jit {
namespace {

constexpr std::string_view first_words = "gemmery cache entry ";

std::string_view form_name(CodeForm form) { return form == CodeForm::ptx ? "ptx" : "cubin"; }

std::string print_body(const EntryManifest& manifest) {
  std::string text =
      fmt::format("{}{}\nform {}\n", first_words, cache_format_version, form_name(manifest.form));
  for (const EntryFile file : entry_files) {
    const EntryManifest::File& one = manifest.of(file);
    text += fmt::format("{} {} {}\n", file_name(file, manifest.form), one.bytes, one.digest);
  }
  text += "usage";
  for (const UsageField& field : usage_fields)
    text += fmt::format(" {}", manifest.usage.*field.value);
  return text + "\n";
}

std::string print_manifest(const EntryManifest& manifest) {
  const std::string body = print_body(manifest);
  return body + "digest " + digest_of(body) + "\n";
}

// Takes words off the front of a text.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  std::string_view next() {
    const std::size_t end = std::min(rest_.find_first_of(" \n"), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return word;
  }

  void skip(int words) {
    for (int word = 0; word < words; ++word) next();
  }

  // 0 for what is not a number: the caller notices when it prints the manifest again.
  template <class Number>
  Number next_number() {
    const std::string_view word = next();
    Number value = 0;
    std::from_chars(word.data(), word.data() + word.size(), value);
    return value;
  }

 private:
  std::string_view rest_;
};

std::string to_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

const char* file_name(EntryFile file, CodeForm form) noexcept {
  switch (file) {
    case EntryFile::key:
      return "key";
    case EntryFile::source:
      return "source.cu";
    case EntryFile::code:
      return form == CodeForm::ptx ? "kernel.ptx" : "kernel.cubin";
    case EntryFile::log:
      return "log";
  }
  return "";
}

std::uint64_t EntryFiles::total_bytes() const {
  std::uint64_t total = manifest.size();
  for (const std::string& content : contents) total += content.size();
  return total;
}

std::string digest_of(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string entry_name(const CacheKey& key) { return digest_of(key.text()); }

EntryFiles encode_entry(const CacheKey& key, const CompiledCode& code) {
  EntryFiles files;
  files.form = code.cubin.empty() ? CodeForm::ptx : CodeForm::cubin;
  files.of(EntryFile::key) = key.conditions;
  files.of(EntryFile::source) = key.source;
  files.of(EntryFile::code) = files.form == CodeForm::ptx ? code.ptx : to_text(code.cubin);
  files.of(EntryFile::log) = code.log;
  EntryManifest manifest{.form = files.form, .files = {}, .usage = code.usage};
  for (std::size_t file = 0; file < entry_file_count; ++file) {
    manifest.files[file] = {.bytes = files.contents[file].size(),
                            .digest = digest_of(files.contents[file])};
  }
  files.manifest = print_manifest(manifest);
  return files;
}

// Parses leniently, then requires that printing the result gives the same text, which is as strict
// as possible.
std::optional<EntryManifest> parse_manifest(std::string_view text) {
  Words words(text);
  words.skip(5);  // gemmery cache entry 1, form
  EntryManifest manifest;
  manifest.form = words.next() == "ptx" ? CodeForm::ptx : CodeForm::cubin;
  for (EntryManifest::File& file : manifest.files) {
    words.skip(1);
    file.bytes = words.next_number<std::uint64_t>();
    file.digest = words.next();
  }
  words.skip(1);
  for (const UsageField& field : usage_fields)
    manifest.usage.*field.value = words.next_number<int>();
  if (print_manifest(manifest) != text) return std::nullopt;
  return manifest;
}

bool is_of_other_version(std::string_view manifest) {
  return manifest.starts_with(first_words) &&
         !manifest.substr(first_words.size())
              .starts_with(std::to_string(cache_format_version) + "\n");
}

bool is_as_written(const EntryManifest::File& file, std::string_view content) {
  return content.size() == file.bytes && digest_of(content) == file.digest;
}

CompiledCode decode_entry(const EntryManifest& manifest, EntryFiles files) {
  CompiledCode code;
  code.was_kept = true;
  std::string& bytes = files.of(EntryFile::code);
  if (manifest.form == CodeForm::ptx) {
    code.ptx = std::move(bytes);
  } else {
    code.cubin.resize(bytes.size());
    std::memcpy(code.cubin.data(), bytes.data(), bytes.size());
  }
  code.log = std::move(files.of(EntryFile::log));
  code.usage = manifest.usage;
  return code;
}

}  // namespace gemmery::jit
