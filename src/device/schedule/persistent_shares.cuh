// SPDX-License-Identifier: Apache-2.0
// The tile scheduler of a persistent kernel that splits k. Of n clusters each takes the shares of
// every n-th unit. The interface is that of PersistentTiles.
#pragma once

#include <device/abi/tile_order.hpp>
#include <device/schedule/tile_share.cuh>

namespace gemmery::device {

template <abi::SplitMode mode, abi::Raster raster>
class PersistentShares {
 public:
  __device__ __forceinline__ PersistentShares(const abi::TileOrder& order,
                                              const abi::SplitSchedule& schedule, unsigned k_blocks,
                                              unsigned cluster_size)
      : order_(order),
        schedule_(schedule),
        step_(gridDim.x / cluster_size),
        unit_(blockIdx.x / cluster_size),
        shares_(schedule, k_blocks, unit_),
        is_first_(true) {
    take();
  }

  __device__ bool is_done() const { return unit_ >= schedule_.units; }
  __device__ bool is_first() const { return is_first_; }
  __device__ bool is_last() const { return shares_.is_done() && unit_ + step_ >= schedule_.units; }

  __device__ __forceinline__ void advance() {
    is_first_ = false;
    if (shares_.is_done()) {
      unit_ += step_;
      shares_.begin(unit_);
    }
    take();
  }

  __device__ const TileShare& share() const { return share_; }
  __device__ const UnitShares<mode>& shares() const { return shares_; }
  __device__ abi::TilePosition position() const {
    return abi::position_of<raster>(order_, share_.tile);
  }

 private:
  __device__ __forceinline__ void take() {
    if (!is_done()) share_ = shares_.take();
  }

  const abi::TileOrder& order_;
  const abi::SplitSchedule& schedule_;
  unsigned step_;
  unsigned unit_;
  UnitShares<mode> shares_;
  TileShare share_{};
  bool is_first_;
};

}  // namespace gemmery::device
