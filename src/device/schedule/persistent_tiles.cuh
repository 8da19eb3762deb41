// SPDX-License-Identifier: Apache-2.0
// The tiles of one cluster in a launch that fills the device once: every so many-th of a batch of
// matrices, in the order of a grouped raster.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/schedule/grouped_raster.cuh>

namespace gemmery::device {

template <abi::Raster raster>
class PersistentTiles {
 public:
  /// Tiles are those of a whole cluster; fewer than 2^31 in all batches together.
  __device__ PersistentTiles(unsigned tile_rows, unsigned tile_columns, unsigned batches,
                             unsigned cluster_size)
      : rows_(tile_rows),
        columns_(tile_columns),
        count_(tile_rows * tile_columns * batches),
        step_(gridDim.x / cluster_size),
        next_(blockIdx.x / cluster_size) {}

  __device__ bool is_done() const { return next_ >= count_; }
  __device__ bool is_first() const { return next_ < step_; }
  __device__ bool is_last() const { return next_ + step_ >= count_; }
  __device__ void advance() { next_ += step_; }
  __device__ TilePosition position() const {
    const unsigned per_matrix = rows_ * columns_;
    const unsigned batch = next_ / per_matrix;
    const unsigned tile = next_ - batch * per_matrix;
    if constexpr (raster.along == abi::Along::m) {
      return grouped_tile<raster.band>(batch, tile, rows_, columns_);
    } else {
      return turned_grouped_tile<raster.band>(batch, tile, rows_, columns_);
    }
  }

 private:
  unsigned rows_;
  unsigned columns_;
  unsigned count_;
  unsigned step_;
  unsigned next_;
};

}  // namespace gemmery::device
