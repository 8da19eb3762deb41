// SPDX-License-Identifier: Apache-2.0
// Multiplication of one stage by a warpgroup, both operands in shared memory, sums in registers.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/ptx/fence.cuh>
#include <device/ptx/wgmma.cuh>
#include <device/tile/matrix_descriptor.cuh>

namespace gemmery::device {

/// What holds sums: a float one of them, 32 bits two of float16.
template <abi::DType accumulator>
struct SumRegister {
  using Type = float;
};
template <>
struct SumRegister<abi::DType::float16> {
  using Type = unsigned;
};

/// A consumer's sums: for each of its blocks of 64 rows the accumulator of one wgmma. Thread t of
/// the warpgroup holds, as element 4 * j + 2 * h + e, row t / 32 * 16 + t % 32 / 4 + 8 * h and
/// column 8 * j + t % 4 * 2 + e (PTX ISA, wgmma accumulator fragment). Of float16, elements e = 0
/// and 1 are the low and the high half of register 2 * j + h.
template <abi::Sm90Design design>
struct WarpgroupSums {
  using Register = typename SumRegister<design.accumulator>::Type;
  static constexpr int blocks = abi::blocks_per_consumer(design);
  static constexpr int per_block = abi::accumulator_registers(design) / blocks;
  Register block[blocks][per_block];

  /// Ties the sums to the wait before it: plain arithmetic on them may not move above.
  __device__ __forceinline__ void pin() {
#pragma unroll
    for (int row = 0; row < blocks; ++row) {
#pragma unroll
      for (int index = 0; index < per_block; ++index) ptx::pin(block[row][index]);
    }
  }
};

/// sums (+)= a b over the k of one stage, as one group of wgmmas under way. `a` describes the
/// consumer's first rows, `b` its first columns. What was in the sums counts only where
/// `keeps_sums`.
template <abi::Sm90Design design>
__device__ __forceinline__ void multiply_stage(WarpgroupSums<design>& sums, MatrixDescriptor a,
                                               MatrixDescriptor b, bool keeps_sums) {
  constexpr int steps = abi::tile_k(design) / 16;
  constexpr bool is_a_turned = design.a_major != abi::Major::k;
  constexpr bool is_b_turned = design.b_major != abi::Major::k;
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int row = 0; row < WarpgroupSums<design>::blocks; ++row) {
      ptx::wgmma_m64_k16<design.operand, is_a_turned, is_b_turned>(
          sums.block[row], a + row * next_64_rows + step * next_k16(design.a_major),
          b + step * next_k16(design.b_major), keeps_sums || step > 0 ? 1U : 0U);
    }
  }
  ptx::wgmma_commit_group();
}

}  // namespace gemmery::device
