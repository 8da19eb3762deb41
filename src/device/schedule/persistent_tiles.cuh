// SPDX-License-Identifier: Apache-2.0
// The tile scheduler of a persistent kernel: of n clusters each takes every n-th tile of a batch of
// matrices.
#pragma once

#include <device/abi/tile_order.hpp>

namespace gemmery::device {

template <abi::Raster raster>
class PersistentTiles {
 public:
  __device__ PersistentTiles(const abi::TileOrder& order, unsigned cluster_size)
      : order_(order), step_(gridDim.x / cluster_size), next_(blockIdx.x / cluster_size) {}

  __device__ bool is_done() const { return next_ >= order_.tiles; }
  __device__ bool is_first() const { return next_ < step_; }
  __device__ bool is_last() const { return next_ + step_ >= order_.tiles; }
  __device__ void advance() { next_ += step_; }
  __device__ void advance_by(unsigned count) { next_ += count * step_; }
  __device__ abi::TilePosition position() const { return abi::position_of<raster>(order_, next_); }

 private:
  const abi::TileOrder& order_;
  unsigned step_;
  unsigned next_;
};

}  // namespace gemmery::device
