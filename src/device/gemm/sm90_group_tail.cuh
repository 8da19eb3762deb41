// SPDX-License-Identifier: Apache-2.0
// The end of a group along k in an sm90 kernel. A stage that reaches beyond it contains elements of
// the next group or of no group; both operands are cleared there before they are multiplied.
#pragma once

#include <device/gemm/sm90_shared.cuh>
#include <device/ptx/fence.cuh>
#include <device/ptx/shared_memory.cuh>
#include <device/ptx/warp.cuh>

namespace gemmery::device {

template <const abi::Sm90Design& design>
class Sm90GroupTail {
 public:
  /// Clears the stage from k element `k_left` on, which is less than a stage has. All threads of
  /// the tile's consumers call it; it returns after a barrier.
  __device__ __forceinline__ static void clear(Sm90Shared<design>& shared, unsigned stage,
                                               unsigned consumer, unsigned k_left) {
    constexpr unsigned first_barrier = 11;  // lower ones are used by turns
    clear_tile<design.a_major, abi::a_tile_bytes(design)>(ptx::cvta_shared(&shared.a[stage]),
                                                          consumer, k_left);
    clear_tile<design.b_major, abi::b_tile_bytes(design)>(ptx::cvta_shared(&shared.b[stage]),
                                                          consumer, k_left);
    ptx::fence_proxy_async();
    ptx::bar_sync<threads>(first_barrier);
  }

 private:
  static constexpr unsigned threads =
      abi::consumers_per_tile(design) * static_cast<unsigned>(abi::warpgroup_threads);
  static constexpr unsigned element_bytes = abi::bytes_of(design.a);
  static constexpr unsigned line_bytes = abi::sm90_swizzle_bytes;
  static constexpr unsigned unit_bytes = 16;  // of the swizzle

  /// A tile has lines of 128 bytes. A line of a K-major tile is a row or column with all k of the
  /// stage; in other tiles it is one k with the rows or columns of an atom.
  template <abi::Major major, unsigned tile_bytes>
  __device__ __forceinline__ static void clear_tile(unsigned tile, unsigned consumer,
                                                    unsigned k_left) {
    const unsigned first = consumer * abi::warpgroup_threads + threadIdx.x % abi::warpgroup_threads;
#pragma unroll 1
    for (unsigned unit = first; unit < tile_bytes / unit_bytes; unit += threads) {
      constexpr unsigned units = line_bytes / unit_bytes;
      const unsigned line = unit / units;
      const unsigned address = tile + unit * unit_bytes;
      if constexpr (major == abi::Major::k) {
        const unsigned logical = unit % units ^ line % units;
        clear_unit(address, k_left * element_bytes, logical * unit_bytes);
      } else {
        const bool is_beyond = line % static_cast<unsigned>(abi::atom_extent(design)) >= k_left;
        clear_unit(address, is_beyond ? 0 : line_bytes, 0);
      }
    }
  }

  /// Clears the bytes of a unit from byte `end` of its line on. The unit begins at byte `begin`.
  __device__ __forceinline__ static void clear_unit(unsigned address, unsigned end,
                                                    unsigned begin) {
    constexpr unsigned zeros[4] = {};
    if (begin >= end) {
      ptx::st_shared_v4(address, zeros);
      return;
    }
#pragma unroll 1
    for (unsigned byte = end - begin; byte < unit_bytes; byte += element_bytes)
      ptx::st_shared<element_bytes>(address + byte, {{0}});
  }
};

}  // namespace gemmery::device
