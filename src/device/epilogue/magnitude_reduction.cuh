// SPDX-License-Identifier: Apache-2.0
// The largest magnitude of all of out as one float32: each consumer applies its own maximum to the
// result by an atomic maximum when its last tile is done. Magnitudes are ordered like their bits,
// and a maximum has the same bits in any order. No warp waits at the end, unlike in
// group_reduction.cuh; instead the result must be 0 before the first maximum is applied:
//
//   block 0                stores 0 and opens the result
//   a warp of every block  waits for that while tiles are multiplied, counts itself, tells the
//                          block's consumers; the last that counts closes the result again
//   a consumer's warps     apply their maximum
#pragma once

#include <device/abi/epilogue.hpp>
#include <device/epilogue/program.cuh>
#include <device/ptx/atomic.cuh>

namespace gemmery::device {

/// True if an output is reduced this way.
GEMMERY_HOST_DEVICE
constexpr bool is_by_magnitude(const abi::EpilogueTensor& output) {
  return abi::is_of_everything(output) && output.reduction == abi::Reduction::amax &&
         output.dtype == DType::float32;
}

/// One output of a launch. Its words in the workspace start at 0 and are 0 again once all blocks
/// have seen that the result is open.
template <class Epilogue, int output>
class MagnitudeReduction {
 public:
  using Params = EpilogueParamsOf<Epilogue, float>;

  __device__ __forceinline__ explicit MagnitudeReduction(const Params& params)
      : is_open_(reinterpret_cast<unsigned*>(static_cast<char*>(params.workspace) +
                                             params.reduction[output].partials)),
        seen_(is_open_ + 1),
        result_(static_cast<unsigned*>(params.output[output].data)) {}

  /// Called by one thread of every block, once; returns when the result is open. Block 0 does not
  /// wait, so this ends if blocks start in the order of their numbers, or all get to run.
  __device__ __forceinline__ void open() const {
    if (blockIdx.x == 0) {
      ptx::st_relaxed_gpu(result_, 0);
      ptx::st_release_gpu(is_open_, 1);
    }
    while (ptx::ld_acquire_gpu(is_open_) == 0) {
    }
    if (ptx::atom_inc_acq_rel_gpu(seen_, gridDim.x - 1) + 1 == gridDim.x)
      ptx::st_relaxed_gpu(is_open_, 0);
  }

  /// Applies a thread's value. Called by all lanes of a warp, ordered after the block's `open`.
  __device__ __forceinline__ void put(float magnitude, unsigned lane) const {
    const unsigned all = __reduce_max_sync(0xffffffffU, __float_as_uint(magnitude));
    if (lane == 0) ptx::red_max_relaxed_gpu(result_, all);
  }

 private:
  unsigned* is_open_;
  unsigned* seen_;
  unsigned* result_;
};

}  // namespace gemmery::device
