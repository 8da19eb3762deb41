// SPDX-License-Identifier: Apache-2.0
// Reads the linker's build-id note in an ELF file (64 bit, this machine's byte order), by the ELF
// specification (gABI, "Note Section").
#include "platform/file_identity.hpp"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <xxhash.h>

#include "platform/folder.hpp"

namespace gemmery::platform {
namespace {

// A file with more headers or notes than this is not read further.
constexpr std::size_t most_headers = 64;
constexpr std::size_t most_note_bytes = 65536;

bool read_at(const Descriptor& file, std::size_t offset, void* bytes, std::size_t count) {
  return pread(file.number(), bytes, count, static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(count);
}

std::string in_hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

// The build id in a segment of notes.
std::optional<std::string> find_build_id(std::string_view notes) {
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data(), sizeof note);
    notes.remove_prefix(sizeof note);
    if (padded(note.n_namesz) > notes.size()) return std::nullopt;
    const std::string_view name = notes.substr(0, note.n_namesz);
    notes.remove_prefix(padded(note.n_namesz));
    if (note.n_descsz > notes.size()) return std::nullopt;
    if (note.n_type == NT_GNU_BUILD_ID && name == std::string_view("GNU\0", 4))
      return in_hexadecimal(notes.substr(0, note.n_descsz));
    notes.remove_prefix(std::min(padded(note.n_descsz), notes.size()));
  }
  return std::nullopt;
}

std::optional<std::string> read_build_id(const Descriptor& file) {
  Elf64_Ehdr header;
  const bool is_elf = read_at(file, 0, &header, sizeof header) &&
                      std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                      header.e_ident[EI_CLASS] == ELFCLASS64 &&
                      header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phnum <= most_headers;
  if (!is_elf) return std::nullopt;
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!read_at(file, header.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr)))
    return std::nullopt;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > most_note_bytes) continue;
    std::string notes(segment.p_filesz, '\0');
    if (!read_at(file, segment.p_offset, notes.data(), notes.size())) continue;
    if (auto id = find_build_id(notes)) return id;
  }
  return std::nullopt;
}

std::optional<std::string> hash_bytes(const Descriptor& file) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  std::vector<char> part(1 << 20);
  for (;;) {
    const ssize_t count = ::read(file.number(), part.data(), part.size());
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    XXH3_128bits_update(&state, part.data(), static_cast<std::size_t>(count));
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

std::string file_identity(const std::string& path) {
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (number < 0) return {};
  const Descriptor file(number, system_file_calls());
  if (const auto id = read_build_id(file)) return "build-id " + *id;
  const auto hash = hash_bytes(file);
  return hash ? "xxh3 " + *hash : std::string();
}

}  // namespace gemmery::platform
