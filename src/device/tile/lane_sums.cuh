// SPDX-License-Identifier: Apache-2.0
// Sums over the lanes of a warp.
#pragma once

namespace gemmery::device {

/// Adds `count` values (a power of two) over the warp, by a butterfly in which lanes exchange
/// halves of their values: count + log2(32 / count) shuffles. Afterwards the first
/// max(count / 32, 1) values of lane `lane` are the sums from lane * count / 32 on. All lanes call
/// it.
template <int count, int distance = 16, class Number, int all>
__device__ __forceinline__ void sum_over_lanes(Number (&values)[all], unsigned lane) {
  if constexpr (distance > 0) {
    constexpr int half = count > 1 ? count / 2 : 1;
    const bool is_upper = (lane & distance) != 0;
#pragma unroll
    for (int at = 0; at < half; ++at) {
      if constexpr (count > 1) {
        const Number sent = is_upper ? values[at] : values[at + half];
        const Number kept = is_upper ? values[at + half] : values[at];
        values[at] = kept + __shfl_xor_sync(0xffffffffU, sent, distance);
      } else {
        values[at] += __shfl_xor_sync(0xffffffffU, values[at], distance);
      }
    }
    sum_over_lanes<half, distance / 2>(values, lane);
  }
}

}  // namespace gemmery::device
