// SPDX-License-Identifier: Apache-2.0
// Clears elements outside of groups in an sm90 kernel: three warps of the producer's warpgroup,
// which are idle otherwise, store zeros while the others multiply.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/epilogue/output_place.cuh>
#include <device/gemm/outside_groups.cuh>

namespace gemmery::device {

/// Groups in the form that outside_groups.cuh takes.
struct GroupsInMemory {
  const abi::GroupParams& groups;
};
struct GroupsInTable {
  const abi::GroupParams& groups;
  const abi::GroupTable& table;
};

template <const abi::Sm90Design& design>
__device__ __forceinline__ auto sizes_of_groups(const abi::Sm90Params& params) {
  const abi::GroupParams& groups = with_groups(params).groups;
  if constexpr (design.has_group_table)
    return GroupsInTable{groups, table_of(params)};
  else
    return GroupsInMemory{groups};
}

/// All threads of the producer's warpgroup call it. No tile stores to the same elements.
template <const abi::Sm90Design& design>
__device__ __forceinline__ void clear_outside_of_tiles(const abi::Sm90Params& params) {
  constexpr unsigned first_thread = 32;  // after the producer warp
  if (threadIdx.x < first_thread) return;
  const abi::GroupParams& groups = with_groups(params).groups;
  const abi::RowMajorMatrix& rows = params.out_rows;
  const abi::SimtMatrix out{rows.data, rows.batch_stride, rows.row_stride, rows.column_stride};
  const unsigned across = groups.ragged == abi::RaggedExtent::n ? params.m : params.n;
  const ClearingThreads threads{.own = threadIdx.x - first_thread,
                                .count = abi::warpgroup_threads - first_thread};
  constexpr int bytes = abi::bytes_of(design.out);
  clear_outside_groups<bytes>(sizes_of_groups<design>(params), out, across, threads);
}

}  // namespace gemmery::device
