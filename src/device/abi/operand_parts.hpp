// SPDX-License-Identifier: Apache-2.0
// float32 operands split into parts that tensor cores multiply: the number of parts, the products
// of parts that are computed, and the layout of the parts in sm90's shared memory.
//
// TMA loads lines of 32 float32 in the 128-byte swizzle: a line is a row of a K-major operand, or
// the 32 rows of an atom at one k. Eight lines are a unit, 1024 bytes.
//
//   bf16x3, bf16x6, bf16x9   a unit becomes eight lines of 64 bytes of part 1 and eight of part 2,
//                            512 bytes each, in its place; part 3 lies in units of 512 bytes
//                            after the operand's tile. All of them in the 64-byte swizzle, which
//                            wgmma takes in either major.
//   tf32x3                   part 1 stays in place, part 2 lies after the tile, both as TF32 is
//                            multiplied: K-major, in the 128-byte swizzle.
#pragma once

#include <device/abi/host_device.hpp>
#include <device/abi/mma_math.hpp>

namespace gemmery::abi {

/// Parts of an operand; 1 if it is not split.
GEMMERY_HOST_DEVICE
constexpr int part_count(MmaMath math) {
  switch (math) {
    case MmaMath::tf32x3:
    case MmaMath::bf16x3:
    case MmaMath::f16x3:
      return 2;
    case MmaMath::bf16x6:
    case MmaMath::bf16x9:
      return 3;
    default:
      return 1;
  }
}

/// The number of products of parts that are added for one product.
GEMMERY_HOST_DEVICE
constexpr int product_count(MmaMath math) {
  if (part_count(math) == 2) return 3;
  return math == MmaMath::bf16x6 ? 6 : math == MmaMath::bf16x9 ? 9 : 1;
}

GEMMERY_HOST_DEVICE
constexpr bool splits_operands(MmaMath math) { return part_count(math) > 1; }

/// The parts of A and B, from 0 on, of one product.
struct PartProduct {
  int a;
  int b;
};

/// The index-th of a math's products. The smallest products come first: while they are added,
/// tensor cores truncate little. Of three parts, 3 and 6 products are the last of the nine.
GEMMERY_HOST_DEVICE
constexpr PartProduct part_product(MmaMath math, int index) {
  constexpr int most = 9;
  constexpr PartProduct products[most] = {{2, 2}, {2, 1}, {1, 2}, {1, 1}, {2, 0},
                                          {0, 2}, {1, 0}, {0, 1}, {0, 0}};
  return products[most - product_count(math) + index];
}

// --- sm90 ---------------------------------------------------------------------------------------

GEMMERY_HOST_DEVICE
constexpr bool splits_to_bf16(MmaMath math) {
  return math == MmaMath::bf16x3 || math == MmaMath::bf16x6 || math == MmaMath::bf16x9;
}

/// Bytes after the tile for each line of 128 bytes in it.
GEMMERY_HOST_DEVICE
constexpr int part_bytes_per_line(MmaMath math) {
  if (math == MmaMath::tf32x3) return 128;
  return splits_to_bf16(math) && part_count(math) == 3 ? 64 : 0;
}

inline constexpr unsigned lines_per_unit = 8;
inline constexpr unsigned split_unit_bytes = 1024;
inline constexpr unsigned bf16_unit_bytes = split_unit_bytes / 2;  // of a part

/// The part of a unit that a lane splits in one of two steps: four adjacent numbers.
inline constexpr unsigned split_steps = 2;
struct SplitLane {
  unsigned line;   // one of the four lines of a step
  unsigned chunk;  // one of the eight 16-byte chunks of a line
};

GEMMERY_HOST_DEVICE
constexpr SplitLane split_lane(unsigned lane) { return {.line = lane / 8, .chunk = lane % 8}; }

/// Offset in a unit of the 16 bytes of float32 that a lane reads, and of TF32 that it writes.
GEMMERY_HOST_DEVICE
constexpr unsigned float_offset(const SplitLane& lane, unsigned step) {
  const unsigned line = 4 * step + lane.line;
  return line * 128 + (lane.chunk ^ line) * 16;
}

/// Offset in a part's unit of the 8 bytes of bfloat16 that a lane writes.
GEMMERY_HOST_DEVICE
constexpr unsigned bf16_offset(const SplitLane& lane, unsigned step) {
  const unsigned line = 4 * step + lane.line;
  return line * 64 + (lane.chunk / 2 ^ line / 2) * 16 + lane.chunk % 2 * 8;
}

}  // namespace gemmery::abi
