// SPDX-License-Identifier: Apache-2.0
#include "drop_in/fatbin/fatbin.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include <gemmery/error.hpp>

#include "drop_in/fatbin/decompress.hpp"

namespace gemmery::drop_in {
namespace {

constexpr std::uint32_t wrapper_mark = 0x466243b1;
constexpr std::uint32_t container_mark = 0xba55ed50;

// What a program registers.
struct Wrapper {
  std::uint32_t mark;
  std::uint32_t version;
  const void* container;
  const void* further;
};

struct ContainerHeader {
  std::uint32_t mark;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t bytes;  // of the parts behind the header
};

enum class PartKind : std::uint16_t { ptx = 1, machine_code = 2 };

struct PartHeader {
  PartKind kind;
  std::uint16_t version;
  std::uint32_t header_bytes;
  std::uint64_t bytes;  // behind the header, with padding
  std::uint32_t compressed_bytes;
  std::uint32_t unknown[2];
  std::uint32_t architecture;
  std::uint32_t bits;
  std::uint32_t more_unknown;
  std::uint64_t flags;
  std::uint64_t even_more_unknown;
  std::uint64_t content_bytes;  // of a compressed part
};
static_assert(sizeof(PartHeader) == 64);

constexpr std::uint64_t flag_lz4 = 0x2000;
constexpr std::uint64_t flag_zstd = 0x8000;

[[noreturn]] void refuse(std::string expected, std::string got) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "fat binary",
               .expected = std::move(expected),
               .got = std::move(got)});
}

std::uint32_t mark_of(const void* code) noexcept {
  std::uint32_t mark = 0;
  std::memcpy(&mark, code, sizeof mark);
  return mark;
}

std::span<const std::byte> parts_of(const void* code) {
  if (mark_of(code) == wrapper_mark) code = static_cast<const Wrapper*>(code)->container;
  ContainerHeader header{};
  std::memcpy(&header, code, sizeof header);
  if (header.mark != container_mark || header.version != 1)
    refuse("a container of version 1", "version " + std::to_string(header.version));
  return {static_cast<const std::byte*>(code) + header.header_bytes,
          static_cast<std::size_t>(header.bytes)};
}

// Without the zeros that fill it up.
std::string trimmed(std::string text) {
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

std::string read_ptx(const PartHeader& header, std::span<const std::byte> data) {
  const bool is_zstd = (header.flags & flag_zstd) != 0;
  if (!is_zstd && (header.flags & flag_lz4) == 0)
    return trimmed(decompress(Compression::none, data, data.size()));
  return trimmed(decompress(is_zstd ? Compression::zstd : Compression::lz4,
                            data.first(std::min<std::size_t>(data.size(), header.compressed_bytes)),
                            static_cast<std::size_t>(header.content_bytes)));
}

void add_part(const PartHeader& header, std::span<const std::byte> data, FatbinContent& content) {
  if (header.kind == PartKind::ptx) content.ptx.push_back(read_ptx(header, data));
  if (header.kind == PartKind::machine_code)
    content.machine_code.push_back(static_cast<int>(header.architecture));
}

}  // namespace

bool is_fatbin(const void* code) noexcept {
  return mark_of(code) == wrapper_mark || mark_of(code) == container_mark;
}

FatbinContent read_fatbin(const void* code) {
  FatbinContent content;
  std::span<const std::byte> rest = parts_of(code);
  while (rest.size() >= sizeof(PartHeader)) {
    PartHeader header{};
    std::memcpy(&header, rest.data(), sizeof header);
    const std::uint64_t end = header.header_bytes + header.bytes;
    if (header.header_bytes < sizeof header || end < header.bytes || end > rest.size())
      refuse("parts inside of the container", std::to_string(header.bytes) + " bytes");
    add_part(header, rest.subspan(header.header_bytes, header.bytes), content);
    rest = rest.subspan(end);
  }
  return content;
}

}  // namespace gemmery::drop_in
