// SPDX-License-Identifier: Apache-2.0
// The distribution of one thread's elements over a tile of out.
//
// A thread's rows come in chunks of up to 16 bytes, so that one LDS feeds one chunk; chunks of
// neighbouring threads are adjacent, and a thread's next chunk lies beyond those of all threads.
// Columns likewise.
#pragma once

#include <device/abi/simt_design.hpp>

namespace gemmery::device {

/// Along one index of the tile: the number of adjacent elements of a thread, and the distance to
/// its next ones.
struct Spread {
  int chunk;
  int chunks;
  int step;

  GEMMERY_HOST_DEVICE
  constexpr int count() const { return chunk * chunks; }
  /// The position within the tile of a thread's element, relative to its first.
  GEMMERY_HOST_DEVICE
  constexpr int offset(int element) const { return element / chunk * step + element % chunk; }
};

GEMMERY_HOST_DEVICE
constexpr Spread spread_of(int tile, int per_thread, int word_bytes) {
  const int widest = 16 / word_bytes;
  const int chunk = per_thread < widest ? per_thread : widest;
  return {.chunk = chunk, .chunks = per_thread / chunk, .step = tile / per_thread * chunk};
}

GEMMERY_HOST_DEVICE
constexpr Spread row_spread(const abi::SimtDesign& design) {
  return spread_of(design.tile_m, design.thread_m, abi::word_bytes(design));
}

GEMMERY_HOST_DEVICE
constexpr Spread column_spread(const abi::SimtDesign& design) {
  return spread_of(design.tile_n, design.thread_n, abi::word_bytes(design));
}

}  // namespace gemmery::device
