// SPDX-License-Identifier: Apache-2.0
// The blocked matrix product under every host path: packs both operands, walks tiles in parallel,
// hands out finished sums.
//
//   A ─pack─► panels ┐
//                    ├─► tasks of row_block × column_block ─► tiles in depth blocks ─► finish(tile)
//   B ─pack─► panels ┘     (one thread each)
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "providers/host/pack.hpp"
#include "providers/host/tile_kernels.hpp"

namespace gemmery::host {

// The accumulators of rows × columns elements of the product, the first at (row, column).
template <class Sum>
struct FinishedTile {
  std::int64_t row;
  std::int64_t column;
  int rows;
  int columns;
  const Sum* sums;  // sums[i · row_stride + j]
  int row_stride;
  int plane_stride;  // from an accumulator to its correction, in compensated products
};

// Not owned. Called once for every tile, from any thread.
template <class Sum>
struct TileFinish {
  void (*call)(const void* context, const FinishedTile<Sum>& tile);
  const void* context;
};

template <class Sum, class Callable>
TileFinish<Sum> finish_with(const Callable& callable) {
  return {[](const void* context, const FinishedTile<Sum>& tile) {
            (*static_cast<const Callable*>(context))(tile);
          },
          static_cast<const void*>(std::addressof(callable))};
}

template <class T>
struct BlockedProduct {
  PanelSource a;  // lanes are rows
  PanelSource b;  // lanes are columns; the same depth
  TileKernel<T> kernel;
  bool is_compensated = false;
  PackedValue packed_a = PackedValue::itself, packed_b = PackedValue::itself;
  int threads = 0;  // 0: platform::thread_count()
};

// The product in T. Zeros if the depth is 0.
void multiply_blocked(const BlockedProduct<float>& product, TileFinish<float> finish);
void multiply_blocked(const BlockedProduct<double>& product, TileFinish<double> finish);

// The product of int8 and uint8 operands modulo 2^32, exactly: floats hold the sums of a depth
// block, integers the whole sums.
void multiply_blocked_integers(const BlockedProduct<float>& product,
                               TileFinish<std::int32_t> finish);

}  // namespace gemmery::host
