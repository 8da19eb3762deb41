// SPDX-License-Identifier: Apache-2.0
// Reductions of empty groups. They have no tile that would store their results, so blocks store the
// identity of the reduction in the launch that computes the tiles, in any order.
#pragma once

#include <device/abi/epilogue.hpp>
#include <device/abi/group_regions.hpp>
#include <device/abi/groups.hpp>
#include <device/epilogue/program.cuh>
#include <device/epilogue/reduction.cuh>
#include <device/gemm/outside_groups.cuh>
#include <device/schedule/grouped_tiles.cuh>

namespace gemmery::device {

/// Rows and columns of out.
struct OutExtents {
  unsigned m;
  unsigned n;
};

/// `Params` as find_group_members takes them.
template <class Params>
__device__ __forceinline__ bool is_empty_group(const Params& params, unsigned group) {
  if constexpr (requires { params.table; }) {
    const TableSpan span = span_in_table(params.groups, params.table, group);
    return span.begin == span.end;
  } else {
    return GroupScan(params.groups, 1, 1).is_empty(group);
  }
}

/// Stores the identity of every reduction over all elements of a group, for an empty group.
template <class Epilogue, class Compute, int output = 0>
__device__ inline void store_nothing(const EpilogueParamsOf<Epilogue, Compute>& epilogue,
                                     unsigned group, abi::RaggedExtent ragged,
                                     const OutExtents& extents, const ClearingThreads& threads) {
  if constexpr (output < Epilogue::outputs) {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    if constexpr (is_reduced<Epilogue, output> && !(tensor.varies_m && tensor.varies_n)) {
      const unsigned finals = tensor.varies_m ? extents.m : tensor.varies_n ? extents.n : 1;
      // Reductions by groups of warps store their results themselves, also for empty groups.
      if (abi::reduces_ragged(tensor, ragged) && !abi::is_by_groups(tensor, epilogue.regions))
        for (unsigned at = threads.own; at < finals; at += threads.count)
          store_reduced<tensor>(epilogue.output[output],
                                ReducerOf<Epilogue, output, Compute>::nothing(), group, at, at);
    }
    store_nothing<Epilogue, Compute, output + 1>(epilogue, group, ragged, extents, threads);
  }
}

/// `threads` of all blocks, in whole warps, call it; blocks stride over groups.
template <class Epilogue, class Compute, class Params, class EpilogueParams>
__device__ __forceinline__ void store_reductions_of_nothing(const Params& params,
                                                            const EpilogueParams& epilogue,
                                                            const OutExtents& extents,
                                                            const ClearingThreads& threads) {
  if constexpr (has_reductions<Epilogue>()) {
    const abi::GroupParams& groups = params.groups;
    if (groups.ragged == abi::RaggedExtent::k || groups.form == abi::GroupForm::labels) return;
#pragma unroll 1
    for (unsigned group = blockIdx.x; group < groups.count; group += gridDim.x)
      if (is_empty_group(params, group))
        store_nothing<Epilogue, Compute>(epilogue, group, groups.ragged, extents, threads);
  }
}

}  // namespace gemmery::device
