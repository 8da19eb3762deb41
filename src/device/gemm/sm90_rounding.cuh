// SPDX-License-Identifier: Apache-2.0
// The rounding phase of sm90 kernels: elements of A that threads have copied by index are rounded
// to TF32 in shared memory, as TMA rounds those of B on their way.
#pragma once

#include <device/gemm/sm90_shared.cuh>
#include <device/ptx/convert.cuh>
#include <device/ptx/fence.cuh>
#include <device/ptx/shared_memory.cuh>
#include <device/ptx/warp.cuh>

namespace gemmery::device {

template <const abi::Sm90Design& design>
class Sm90Rounding {
 public:
  /// All threads of the tile's consumers call it; it returns after a barrier. No swizzle matters:
  /// every element is rounded where it is.
  __device__ __forceinline__ static void round_stage(Sm90Shared<design>& shared, unsigned stage,
                                                     unsigned consumer) {
    constexpr unsigned rounding_barrier = 11;  // lower ones are used by turns
    constexpr unsigned unit_bytes = 16;
    const unsigned tile = ptx::cvta_shared(&shared.a[stage]);
    const unsigned first = consumer * abi::warpgroup_threads + threadIdx.x % abi::warpgroup_threads;
#pragma unroll 2
    for (unsigned unit = first; unit < abi::a_tile_bytes(design) / unit_bytes; unit += threads) {
      unsigned words[4];
      ptx::ld_shared_v4(words, tile + unit * unit_bytes);
#pragma unroll
      for (unsigned& word : words) word = ptx::cvt_rna_tf32_f32(__uint_as_float(word));
      ptx::st_shared_v4(tile + unit * unit_bytes, words);
    }
    ptx::fence_proxy_async();
    ptx::bar_sync<threads>(rounding_barrier);
  }

 private:
  static constexpr unsigned threads =
      abi::consumers_per_tile(design) * static_cast<unsigned>(abi::warpgroup_threads);
};

}  // namespace gemmery::device
