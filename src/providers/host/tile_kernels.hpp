// SPDX-License-Identifier: Apache-2.0
// The innermost loops of the host's GEMM: one register tile for each instruction set that this CPU
// may have.
#pragma once

#include <cstdint>
#include <span>

namespace gemmery::host {

// Adds a rank-`depth` product to a tile: tile[i·columns + j] += sum over k of a[k·rows + i] ·
// b[k·columns + j]. All pointers are aligned to `tile_alignment`; b and tile are read and written
// whole.
template <class T>
struct TileKernel {
  int rows;
  int columns;
  void (*accumulate)(std::int64_t depth, const T* a, const T* b, T* tile);
};

inline constexpr std::size_t tile_alignment = 64;
inline constexpr int most_tile_rows = 16;
inline constexpr int most_tile_columns = 32;

// The kernels of one instruction set.
struct TileKernels {
  const char* instruction_set;  // "generic", "avx2", "avx512"
  TileKernel<float> float32;
  TileKernel<double> float64;
  // Compensated: the tile has two planes of rows·columns, the sum and its correction (Ogita, Rump,
  // Oishi: Accurate sum and dot product, 2005, Dot2). The correction is meaningless if the sum is
  // not finite.
  TileKernel<double> compensated;
};

// The kernels that this CPU can run, best first; never empty.
std::span<const TileKernels* const> usable_tile_kernels();

// The best of them.
const TileKernels& tile_kernels();

}  // namespace gemmery::host
