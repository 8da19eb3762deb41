// SPDX-License-Identifier: Apache-2.0
// Clears the rows (or columns) of out that belong to no group. They are found 32 at a time, by the
// scan that finds groups. No tile stores to them, so blocks clear them in the launch that computes
// the tiles, in any order.
#pragma once

#include <device/abi/groups.hpp>
#include <device/ptx/memory.cuh>
#include <device/ptx/warp.cuh>
#include <device/schedule/grouped_tiles.cuh>
#include <device/schedule/labelled_tiles.cuh>
#include <device/tile/batch.cuh>

namespace gemmery::device {

/// out, seen `along` the extent that differs between groups and `across` it.
struct DividedMatrix {
  char* data;
  abi::Int64 stride_along;   // in bytes
  abi::Int64 stride_across;  // in bytes
  unsigned first_across;
  unsigned end_across;
};

/// The threads of a block that clear, in whole warps: the number of this thread among them, and
/// their count.
struct ClearingThreads {
  unsigned own;
  unsigned count;
};

/// Clears the elements first, first + 1, ... along whose bits are set. All of `threads` call it.
/// Adjacent threads take elements that are adjacent in memory.
template <int bytes>
__device__ inline void clear_elements(const DividedMatrix& matrix, unsigned first, unsigned bits,
                                      const ClearingThreads& threads) {
  const bool is_packed_along = matrix.stride_along == bytes;
  const auto clear = [&](unsigned along, unsigned across) {
    ptx::st_global<bytes>(matrix.data + along * matrix.stride_along + across * matrix.stride_across,
                          {});
  };
  if (is_packed_along) {
    if ((bits >> ptx::lane_id() & 1) == 0) return;
    for (unsigned across = matrix.first_across + threads.own / 32; across < matrix.end_across;
         across += threads.count / 32)
      clear(first + ptx::lane_id(), across);
    return;
  }
#pragma unroll 1
  for (; bits != 0; bits &= bits - 1) {
    const unsigned along = first + ptx::lowest_lane(bits);
    for (unsigned across = matrix.first_across + threads.own; across < matrix.end_across;
         across += threads.count)
      clear(along, across);
  }
}

/// A bit for each of the 32 elements from `first` on that belongs to a group; in the matrix of
/// `group` if every group has its own. `Params` has `groups`, and a table or sizes in memory.
template <class Params>
__device__ __forceinline__ unsigned find_group_members(const Params& params, unsigned group,
                                                       unsigned first) {
  const abi::GroupParams& groups = params.groups;
  const bool is_masked = groups.form == abi::GroupForm::masked;
  if constexpr (requires { params.table; }) {
    if (is_masked) return elements_between(0, params.table.rows[group].end, first);
    return find_members_in_table(groups, params.table, first);
  } else {
    if (groups.form == abi::GroupForm::labels) return find_labelled_members(groups, first);
    const GroupScan scan(groups, 1, 1);
    return is_masked ? scan.find_members_of(group, first) : scan.find_members(first);
  }
}

/// Sets the elements of `out` that belong to no group to zero. `threads` of all blocks call it;
/// blocks stride over pieces of 32 elements along and `piece` across, of `extent_across` in all.
template <int bytes, class Params>
__device__ inline void clear_outside_groups(const Params& params, const abi::SimtMatrix& out,
                                            unsigned extent_across,
                                            const ClearingThreads& threads) {
  constexpr unsigned piece = 128;
  const abi::GroupParams& groups = params.groups;
  const bool is_of_n = groups.ragged == abi::RaggedExtent::n;
  const unsigned strips = abi::tiles_along(groups.extent, 32);
  const unsigned pieces = abi::tiles_along(extent_across, piece);
  const unsigned matrices = groups.form == abi::GroupForm::masked ? groups.count : 1;
  const abi::UInt64 all = abi::UInt64{strips} * pieces * matrices;
#pragma unroll 1
  for (abi::UInt64 index = blockIdx.x; index < all; index += gridDim.x) {
    const auto strip = static_cast<unsigned>(index / pieces % strips);
    const auto group = static_cast<unsigned>(index / pieces / strips);
    const unsigned across = static_cast<unsigned>(index % pieces) * piece;
    const unsigned within = elements_between(0, groups.extent, strip * 32);
    const unsigned outside = within & ~find_group_members(params, group, strip * 32);
    if (outside == 0) continue;
    const DividedMatrix matrix{
        .data = matrix_of_batch<bytes>(out.data, out.batch_stride, group),
        .stride_along = (is_of_n ? out.column_stride : out.row_stride) * bytes,
        .stride_across = (is_of_n ? out.row_stride : out.column_stride) * bytes,
        .first_across = across,
        .end_across = min(across + piece, extent_across)};
    clear_elements<bytes>(matrix, strip * 32, outside, threads);
  }
}

/// The same by all threads of a block.
template <int bytes, class Params>
__device__ inline void clear_outside_groups(const Params& params, const abi::SimtMatrix& out,
                                            unsigned extent_across, unsigned threads) {
  clear_outside_groups<bytes>(params, out, extent_across,
                              ClearingThreads{.own = threadIdx.x, .count = threads});
}

}  // namespace gemmery::device
