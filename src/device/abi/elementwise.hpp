// SPDX-License-Identifier: Apache-2.0
// The design, parameters and tiles of an elementwise kernel: an epilogue without a matrix product.
#pragma once

#include <device/abi/dtype.hpp>
#include <device/abi/epilogue.hpp>
#include <device/abi/fast_divisor.hpp>
#include <device/abi/host_device.hpp>

namespace gemmery::abi {

struct ElementwiseDesign {
  DType out;
  DType accumulator;  // determines the compute type
  /// The widest access along n of out; 0 if elements along n are not adjacent.
  int out_vector_bytes;
  int columns;  // of a patch: adjacent elements that a thread reads, computes and stores at once
  int patches;  // of a thread, side by side; all their loads are in flight together

  bool operator==(const ElementwiseDesign&) const = default;
};

inline constexpr int elementwise_threads = 256;  // of a block

/// Threads of a block are arranged in rows of a power of two, so that blocks serve narrow and wide
/// matrices.
struct ElementwiseParams {
  EpiloguePlace out;
  unsigned m;
  unsigned n;
  unsigned batches;
  unsigned tile_rows;         // tiles along m
  FastDivisor columns;        // divides a tile by the tiles along n
  unsigned log2_row_threads;  // threads side by side in a row
};

/// Elements of a row that one row of threads covers.
GEMMERY_HOST_DEVICE
constexpr unsigned elementwise_tile_columns(const ElementwiseDesign& design,
                                            unsigned log2_row_threads) {
  return static_cast<unsigned>(design.columns * design.patches) << log2_row_threads;
}

GEMMERY_HOST_DEVICE
constexpr unsigned elementwise_tile_rows(unsigned log2_row_threads) {
  return static_cast<unsigned>(elementwise_threads) >> log2_row_threads;
}

/// Threads side by side in a row: as many as a row of out can use, at most a whole block.
GEMMERY_HOST_DEVICE
constexpr unsigned choose_row_threads(const ElementwiseDesign& design, unsigned n) {
  unsigned log2 = 0;
  while (elementwise_tile_rows(log2) > 1 && elementwise_tile_columns(design, log2) < n) ++log2;
  return log2;
}

static_assert(elementwise_threads == 1 << 8);
static_assert(sizeof(ElementwiseParams) == 32 + 8 * 4);

}  // namespace gemmery::abi
