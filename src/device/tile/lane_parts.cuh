// SPDX-License-Identifier: Apache-2.0
// Parts of addresses that several lanes of a warp need: a lane finds a share of them and reads the
// others from the lanes that found them.
#pragma once

#include <device/ptx/warp.cuh>
#include <device/tile/window.cuh>

namespace gemmery::device {

/// `count` parts that `sharers` adjacent lanes need. `dimensions`: of coordinates, the last ones;
/// the others are not kept.
template <int count, int sharers, int dimensions>
class LaneParts {
  static_assert(count % sharers == 0, "lanes find the same number of parts");

 public:
  /// Called by all lanes. find(index): the part with this number, of this lane's share.
  template <class Find>
  __device__ __forceinline__ explicit LaneParts(Find&& find) {
    const unsigned own = ptx::lane_id() % sharers;
    first_lane_ = ptx::lane_id() - own;
#pragma unroll
    for (int at = 0; at < count / sharers; ++at)
      found_[at] = find(static_cast<int>(own) + at * sharers);
  }

  /// Called by all lanes.
  __device__ __forceinline__ WindowPart get(int index) const {
    WindowPart part = found_[index / sharers];
    if constexpr (sharers == 1) return part;
    const unsigned lane = first_lane_ + static_cast<unsigned>(index % sharers);
    part.offset = ptx::value_of_lane(part.offset, lane);
#pragma unroll
    for (int d = 3 - dimensions; d < 3; ++d)
      part.at[d] = static_cast<int>(ptx::value_of_lane(static_cast<unsigned>(part.at[d]), lane));
    return part;
  }

 private:
  unsigned first_lane_;
  WindowPart found_[count / sharers];
};

}  // namespace gemmery::device
