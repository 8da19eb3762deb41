// SPDX-License-Identifier: Apache-2.0
// Parts of addresses of a convolution's elements in shared memory: of the pixels of a tile's rows,
// and of the taps of a block of k.
#pragma once

#include <device/abi/staged_operand.hpp>
#include <device/tile/window.cuh>

namespace gemmery::device {

/// `count` parts, whose offsets are in bytes and include those of the coordinates.
template <int count, int dimensions>
struct KeptParts {
  abi::Int64 offset[count];
  int at[dimensions][count];

  __device__ __forceinline__ void put(int index, const WindowPart& part) {
    offset[index] = part.offset;
#pragma unroll
    for (int d = 0; d < dimensions; ++d) at[d][index] = part.at[3 - dimensions + d];
  }
  __device__ __forceinline__ WindowPart get(int index) const {
    WindowPart part;
    part.offset = offset[index];
#pragma unroll
    for (int d = 0; d < dimensions; ++d) part.at[3 - dimensions + d] = at[d][index];
    return part;
  }
};

/// The pixels of a tile's rows: the parts of the first tap's first channel.
template <const abi::StagedOperand& operand, int dimensions>
struct PixelRows : KeptParts<operand.extent, dimensions> {
  /// Called by all threads before the first copy.
  template <int threads>
  __device__ __forceinline__ void find(const abi::WindowParams& window, unsigned first,
                                       int thread) {
#pragma unroll 1
    for (int row = thread; row < operand.extent; row += threads)
      this->put(row,
                in_bytes<dimensions>(
                    window, window_pixel<dimensions>(window, first + static_cast<unsigned>(row)),
                    abi::bytes_of(operand.dtype)));
    __syncthreads();  // waits until every row's pixel is known to all threads
  }
};

/// The taps, and channels, of a block of k.
template <const abi::StagedOperand& operand, int dimensions>
using TapsOfBlock = KeptParts<operand.k, dimensions>;

}  // namespace gemmery::device
