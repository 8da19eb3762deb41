// SPDX-License-Identifier: Apache-2.0
// Multiplication on CUDA cores: a thread's accumulators in the tile, their operands from shared
// memory, their products.
#pragma once

#include <device/abi/simt_design.hpp>
#include <device/ptx/integer.cuh>
#include <device/tile/element.cuh>
#include <device/tile/spread.cuh>

namespace gemmery::device {

/// A thread's place: the first row and column of the tile that it accumulates, and its share of
/// each k block.
struct SimtPlace {
  int row;
  int column;
  int slice;
};

template <const abi::SimtDesign& design>
__device__ inline SimtPlace place_of_thread(int thread) {
  constexpr int threads_m = design.tile_m / design.thread_m;
  constexpr int threads_n = design.tile_n / design.thread_n;
  constexpr int in_warp = abi::threads_per_slice(design) < 32 ? abi::threads_per_slice(design) : 32;
  constexpr int lanes_m_wanted = threads_m < 8 ? threads_m : 8;
  constexpr int lanes_n =
      in_warp / lanes_m_wanted < threads_n ? in_warp / lanes_m_wanted : threads_n;
  constexpr int lanes_m = in_warp / lanes_n;
  constexpr int warps_m = threads_m / lanes_m;

  const int within = thread % abi::threads_per_slice(design);
  const int lane = within % in_warp;
  const int warp = within / in_warp;
  // 8 x 4 lanes, arranged so that each half warp reads 8 chunks of A and 2 of B, both in the fewest
  // wavefronts: 46.9 TF against 44.9 with lanes in plain order (128x128x8, f32 4096^3, A row and B
  // column major, H200).
  constexpr bool is_square = lanes_m == 8 && lanes_n == 4;
  const int lane_m = is_square ? (lane >> 1) & 7 : lane % lanes_m;
  const int lane_n = is_square ? (lane & 1) | ((lane >> 4) << 1) : lane / lanes_m;
  return {.row = (warp % warps_m * lanes_m + lane_m) * row_spread(design).chunk,
          .column = (warp / warps_m * lanes_n + lane_n) * column_spread(design).chunk,
          .slice = thread / abi::threads_per_slice(design)};
}

/// Reads the words of one operand that a thread multiplies at one k.
template <Spread spread, class Word>
__device__ __forceinline__ void load_fragment(Word (&words)[spread.count()], const Word* first) {
  struct alignas(sizeof(Word) * spread.chunk) Chunk {
    Word words[spread.chunk];
  };
#pragma unroll
  for (int chunk = 0; chunk < spread.chunks; ++chunk) {
    const Chunk loaded = *reinterpret_cast<const Chunk*>(first + chunk * spread.step);
#pragma unroll
    for (int position = 0; position < spread.chunk; ++position) {
      words[chunk * spread.chunk + position] = loaded.words[position];
    }
  }
}

template <const abi::SimtDesign& design>
__device__ inline float multiply_add(float a, float b, float sum) {
  return __fmaf_rn(a, b, sum);
}
template <const abi::SimtDesign& design>
__device__ inline double multiply_add(double a, double b, double sum) {
  return __fma_rn(a, b, sum);
}
template <const abi::SimtDesign& design>
__device__ inline int multiply_add(unsigned a, unsigned b, int sum) {
  return ptx::dp4a<design.a == DType::int8, design.b == DType::int8>(a, b, sum);
}

/// sums += a (column) * b (row).
template <const abi::SimtDesign& design, class Word, class Number>
__device__ __forceinline__ void multiply(Number (&sums)[design.thread_m][design.thread_n],
                                         const Word (&a)[design.thread_m],
                                         const Word (&b)[design.thread_n]) {
#pragma unroll
  for (int row = 0; row < design.thread_m; ++row) {
#pragma unroll
    for (int turn = 0; turn < design.thread_n; ++turn) {
      // Alternating direction, so that consecutive instructions share operands in the register
      // reuse cache: 47.8 TF against 46.7 (128x128x8, f32 4096^3, row major, H200).
      const int column = row % 2 == 0 ? turn : design.thread_n - 1 - turn;
      sums[row][column] = multiply_add<design>(a[row], b[column], sums[row][column]);
    }
  }
}

}  // namespace gemmery::device
