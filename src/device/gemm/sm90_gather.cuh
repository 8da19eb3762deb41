// SPDX-License-Identifier: Apache-2.0
// Gathers rows of A by index in an sm90 kernel. TMA on Hopper cannot, so three warps of the
// producer's warpgroup, which are idle otherwise, copy the rows by cp.async.
//
//   GroupTileSender: sends the tiles of groups, to these warps as to the consumers
//     | find_rows: lanes read the indices of their warp's rows, once per tile
//   numbers of the rows of A in shared memory (in registers, 4 to 168 bytes spilled with tiles of
//   192 rows and more; ptxas 13.0)
//     | cp.async of 16 bytes, zeros for rows with index -1 and beyond the last k
//   a[stage] in shared memory, in the swizzle that TMA gives B
//     | cp.async.mbarrier.arrive: the stage's full barrier counts each thread
//   consumers, whose wgmmas read it after a fence between the proxies (sm90_mainloop)
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/epilogue/output_place.cuh>
#include <device/gemm/sm90_group_tiles.cuh>
#include <device/gemm/sm90_shared.cuh>
#include <device/ptx/async_copy.cuh>
#include <device/ptx/mbarrier.cuh>
#include <device/tile/indexed_element.cuh>

namespace gemmery::device {

__device__ __forceinline__ const abi::Sm90GatherParams& with_gather(const abi::Sm90Params& params) {
  return reinterpret_cast<const abi::Sm90GatherParams&>(params);
}

template <const abi::Sm90Design& design>
class Sm90Gather {
 public:
  using Shared = Sm90Shared<design>;
  using Ring = Sm90Ring<design>;

  __device__ __forceinline__ Sm90Gather(const abi::Sm90Params& params, Shared& shared,
                                        const Ring& ring)
      : params_(params), shared_(shared), ring_(ring), thread_(threadIdx.x - first_thread) {}

  /// Copies the rows of all tiles of this block. Warps 1 to 3 of the producer's warpgroup call it.
  __device__ __forceinline__ void copy_tiles() {
    typename Ring::Cursor cursor;
    ReceivedGroupTiles<design> tiles(shared_.group_tiles);
#pragma unroll 1
    for (; !tiles.is_done(); tiles.advance()) {
      find_rows(tiles.position());
      int k = params_.first_k;
#pragma unroll 1
      for (unsigned k_block = 0; k_block < tiles.k_blocks(); ++k_block, k += tile_k) {
        ring_.wait_for_release(cursor);
        copy_stage(cursor.stage, k);
        ptx::cp_async_mbarrier_arrive_noinc(ring_.barrier_of(cursor));
        cursor.advance();
      }
    }
    ptx::cp_async_commit_group();
    ptx::cp_async_wait_group<0>();  // no thread exits before its copies have ended
  }

 private:
  static constexpr unsigned first_thread = 32;
  static constexpr unsigned units = abi::sm90_swizzle_bytes / 16;  // of a row of a stage
  static constexpr unsigned row_step = abi::gathering_threads / units;
  static constexpr unsigned rows = design.tile_m;
  static constexpr unsigned passes = (rows + row_step - 1) / row_step;
  static constexpr int tile_k = abi::tile_k(design);
  static constexpr int element_bytes = abi::bytes_of(design.a);

  /// A thread copies the same unit of every row_step-th row. The threads of a row are in one warp.
  __device__ unsigned row_of(unsigned pass) const { return thread_ / units + pass * row_step; }
  __device__ unsigned unit() const { return thread_ % units; }
  __device__ bool has_row(unsigned pass) const {
    return (pass + 1) * row_step <= rows || row_of(pass) < rows;
  }

  /// The first lane of each row looks up its index.
  __device__ __forceinline__ void find_rows(const OutputPlace& place) const {
    const abi::IndexParams& gather = with_gather(params_).gather;
    __syncwarp();  // waits until the rows of the previous tile have been read
#pragma unroll 1
    for (unsigned pass = 0; pass < passes && unit() == 0; ++pass) {
      const unsigned element = place.row + row_of(pass);
      if (has_row(pass))
        shared_.gathered.rows[row_of(pass)] =
            element < place.row_end ? find_element(gather, element) : no_element;
    }
    __syncwarp();  // waits for them
  }

  __device__ __forceinline__ void copy_stage(unsigned stage, int k) const {
    const abi::Sm90GatherParams& params = with_gather(params_);
    const int first = k + static_cast<int>(unit()) * (16 / element_bytes);
    const int left = (static_cast<int>(params.k) - first) * element_bytes;
    const int bytes = min(max(left, 0), 16);
    const char* const source =
        static_cast<const char*>(params.a.data) + static_cast<abi::Int64>(first) * element_bytes;
    const unsigned target = ptx::cvta_shared(&shared_.a) + stage * sizeof shared_.a[0];
#pragma unroll 4
    for (unsigned pass = 0; pass < passes; ++pass) {
      if (!has_row(pass)) break;
      const unsigned row = row_of(pass);
      const int of_a = shared_.gathered.rows[row];
      const bool is_there = of_a != no_element && bytes > 0;
      // If nothing is read, any valid address.
      ptx::cp_async_cg(target + row * abi::sm90_swizzle_bytes + ((unit() ^ row % units) << 4),
                       is_there ? source + of_a * params.a.row_stride * element_bytes
                                : static_cast<const char*>(params.a.data),
                       is_there ? bytes : 0);
    }
  }

  const abi::Sm90Params& params_;
  Shared& shared_;
  const Ring ring_;
  unsigned thread_;
};

}  // namespace gemmery::device
