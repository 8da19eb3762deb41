// SPDX-License-Identifier: Apache-2.0
// The 64-bit descriptor of a wgmma operand in shared memory, and the addresses of its parts. (PTX
// ISA, "Matrix Descriptor Format"; all rules as recorded, tests/data/emulator/README.md.)
#pragma once

#include <cstdint>

namespace gemmery::emulator {

struct MatrixDescriptor {
  std::uint32_t start = 0;        // bytes, as are the next two
  std::uint32_t leading = 0;      // leading-dimension byte offset
  std::uint32_t stride = 0;       // stride-dimension byte offset
  std::uint32_t base_offset = 0;  // rows of 128 bytes from the pattern's start to the tile's
  std::uint32_t swizzle = 16;     // width in bytes; 16 is none

  static constexpr MatrixDescriptor from(std::uint64_t bits) noexcept {
    constexpr std::uint32_t widths[] = {16, 128, 64, 32};
    const auto field = [bits](int at) {
      return static_cast<std::uint32_t>(bits >> at & 0x3fff) << 4;
    };
    return {field(0), field(16), field(32), static_cast<std::uint32_t>(bits >> 49 & 7),
            widths[bits >> 62]};
  }

  // Address of 16 bytes of a K-major tile: those of `row` that begin at byte 16 * `half` of K.
  constexpr std::uint32_t k_major(std::uint32_t row, std::uint32_t half) const noexcept {
    const std::uint32_t group = row / 8 * stride + row % 8 * swizzle;
    return swizzled(start + group + half * (swizzle == 16 ? leading : 16));
  }
  // Address of 16 bytes of an MN-major tile: rows 8 * `group` to 8 * `group` + 7 at one k (16-bit
  // elements).
  constexpr std::uint32_t mn_major(std::uint32_t group, std::uint32_t k) const noexcept {
    if (swizzle == 16) return wrapped(start + group * stride + k / 8 * leading + k % 8 * 16);
    const std::uint32_t groups = swizzle / 16;  // side by side in a row of the pattern
    return swizzled(start + group / groups * leading + k / 8 * stride + k % 8 * swizzle +
                    group % groups * 16);
  }

 private:
  // Addresses in descriptors have 18 bits.
  static constexpr std::uint32_t wrapped(std::uint32_t address) noexcept {
    return address & 0x3ffff;
  }
  // XORs bits 4 to 6 with bits 7 to 9 of the address, counted from the start of the swizzle
  // pattern.
  constexpr std::uint32_t swizzled(std::uint32_t address) const noexcept {
    const std::uint32_t mask = swizzle / 16 - 1;
    return wrapped(address ^ (((address >> 7) - base_offset) & mask) << 4);
  }
};

}  // namespace gemmery::emulator
