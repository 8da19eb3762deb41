// SPDX-License-Identifier: Apache-2.0
// The bytes of an artifact file: compiled kernels, each for one target, with everything that is
// needed to launch them. Numbers are little-endian. Every field that is read is checked before it
// is used.
//
//   magic 8 · format version u32 · header bytes u32 · all bytes u64 · kernels u64 · XXH3-128 of all
//   but itself 16 · zeros 16 · library version, digest of device/abi: texts · the kernels, each a
//   u64 of its own bytes and its fields
//
// A text is a u64 of its bytes and the bytes.
#pragma once

#include <gemmery/target.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/compiler.hpp"

namespace gemmery::runtime {

inline constexpr std::uint32_t artifact_format_version = 1;

// A field of a design, for display: {"tile", "128x128x64"}.
struct StoredField {
  std::string name;
  std::string value;

  friend bool operator==(const StoredField&, const StoredField&) = default;
};

// The rule for an operand of an epilogue; the numbers are those of EpilogueOperandRule.
struct StoredOperand {
  std::string name;
  std::uint8_t flags = 0;  // 1 number, 2 output, 4 varies along l, 8 m, 16 n
  std::string dtype;
  std::uint8_t adjacent = 0;
  std::uint8_t alignment = 1;

  friend bool operator==(const StoredOperand&, const StoredOperand&) = default;
};

// One kernel, compiled for one target.
struct StoredKernel {
  std::string provider;
  std::string family;
  std::uint32_t family_version = 0;
  std::string kernel_name;
  Target target;
  std::vector<StoredField> design;
  std::string epilogue;  // its program
  std::vector<StoredOperand> epilogue_operands;
  std::vector<std::string> problems;  // problem lines that it was compiled for
  std::string source;
  std::string entry;
  std::optional<jit::CompiledCode> cubin;
  std::optional<jit::CompiledCode> ptx;
};

struct ArtifactFile {
  std::string library_version;  // version of the library that wrote the file
  std::string abi_digest;       // digest of the headers that host and device code share
  std::vector<StoredKernel> kernels;
};

std::vector<std::byte> encode(const ArtifactFile& file);

// Writes size and checksum into the header of `file`, which holds at least a header.
void seal(std::span<std::byte> file);

// Throws Error: io, which names `path`, the kernel, the field and the offset, for bytes that are
// not a valid file in every detail; unsupported for another format version.
ArtifactFile decode(std::span<const std::byte> bytes, const std::string& path);

}  // namespace gemmery::runtime
