// SPDX-License-Identifier: Apache-2.0
// Multiplication of one stage of split float32 by a warpgroup: the products of parts, the smallest
// first. abi/operand_parts.hpp has the layout of the parts in shared memory.
#pragma once

#include <device/abi/operand_parts.hpp>
#include <device/mma/wgmma.cuh>

namespace gemmery::device {

/// A consumer's rows or columns of one stage of an operand, by shared addresses.
struct OperandParts {
  unsigned tile;    // part 1, and part 2 of bfloat16
  unsigned behind;  // the last part, if it is stored after the tile
};

/// The layout of a part for wgmma: bytes of a line of 32 numbers, from a unit of eight lines to the
/// next, and from the 32 rows or columns of an atom to the next.
template <abi::MmaMath math, abi::Major major, int part>
struct PartShape {
  static constexpr bool is_bf16 = abi::splits_to_bf16(math);
  static constexpr bool is_behind = part == (is_bf16 ? 2 : 1);
  static constexpr unsigned bytes_per_line = is_bf16 && is_behind ? 64 : 128;
  static constexpr unsigned unit = abi::lines_per_unit * bytes_per_line;
  static constexpr unsigned atom = 4 * unit;
  static constexpr Swizzle swizzle = is_bf16 ? Swizzle::bytes_64 : Swizzle::bytes_128;
  static constexpr unsigned offset = is_bf16 && part == 1 ? abi::bf16_unit_bytes : 0;
  /// Descriptor increments to the next step of k (16 lines of the other major) and to the next 64
  /// rows.
  static constexpr unsigned next_step = (major == abi::Major::k ? step_bytes : 2 * unit) / 16;
  static constexpr unsigned next_64_rows = 64 * bytes_per_line / 16;

  __device__ __forceinline__ static MatrixDescriptor describe(const OperandParts& tile) {
    return describe_atoms(is_behind ? tile.behind : tile.tile + offset, atom, unit, swizzle);
  }
};

/// Steps of k in a stage; one wgmma multiplies one step.
template <abi::MmaMath math>
inline constexpr int part_k_steps = abi::splits_to_bf16(math) ? 2 : 4;

/// accumulators = a b over the k of one stage, as one group of wgmmas in flight.
template <const abi::Sm90Design& design, int product = 0>
__device__ __forceinline__ void multiply_products(const OperandParts& a, const OperandParts& b) {
  constexpr abi::MmaMath math = design.math;
  constexpr abi::PartProduct parts = abi::part_product(math, product);
  using Majors = MultipliedMajors<design>;
  using ShapeA = PartShape<math, Majors::a, parts.a>;
  using ShapeB = PartShape<math, Majors::b, parts.b>;
  if constexpr (product == 0) ptx::wgmma_fence();
  const MatrixDescriptor first_a = ShapeA::describe(a);
  const MatrixDescriptor first_b = ShapeB::describe(b);
#pragma unroll
  for (int step = 0; step < part_k_steps<math>; ++step) {
    multiply_step<design, ShapeA::next_64_rows>(
        first_a + step * ShapeA::next_step, first_b + step * ShapeB::next_step, product + step > 0);
  }
  if constexpr (product + 1 < abi::product_count(math))
    multiply_products<design, product + 1>(a, b);
  else
    ptx::wgmma_commit_group();
}

}  // namespace gemmery::device
