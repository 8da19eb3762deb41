// SPDX-License-Identifier: Apache-2.0
// Lists of problems on CUDA cores: the kernel of gemm/simt.cuh over the tiles of all problems. The
// launch parameters have the matrices, extents, alpha and beta of each problem.
#pragma once

#include <device/abi/problem_list.hpp>
#include <device/gemm/simt.cuh>
#include <device/schedule/grouped_tiles.cuh>

namespace gemmery::device {

/// The parameters of a problem of a list.
template <bool has_c, class List>
__device__ __forceinline__ abi::SimtParams params_of_problem(const List& list, unsigned problem) {
  const auto& all = list.problems;
  const auto is_column = [&](abi::ColumnMajor operand) {
    return (all.column_major & operand) != 0;
  };
  abi::SimtParams own{};
  own.a = abi::listed_matrix(all.a[problem], all.a_line[problem], is_column(abi::a_is_column));
  own.b = abi::listed_matrix(all.b[problem], all.b_line[problem], is_column(abi::b_is_column));
  own.out =
      abi::listed_matrix(all.out[problem], all.out_line[problem], is_column(abi::out_is_column));
  own.alpha = all.alpha[problem];
  if constexpr (has_c) {
    own.c = abi::listed_matrix(list.c[problem], list.c_line[problem], is_column(abi::c_is_column));
    own.beta = list.beta[problem];
  }
  own.m = all.m[problem];
  own.n = all.n[problem];
  own.k = all.k[problem];
  return own;
}

/// The kernel of a list of problems: abi::ProblemList, or ProblemListWithC; any grid of blocks
/// along x.
template <const abi::SimtDesign& design, class List>
__device__ inline void simt_list_gemm(const List& list) {
  static_assert(abi::find_fault(design) == abi::SimtFault::none,
                "find_fault names the field of the design to change");
  extern __shared__ __align__(16) char shared[];
#pragma unroll 1
  for (unsigned index = blockIdx.x;; index += gridDim.x) {
    const GroupTile tile = find_in_list(list.problems, index);
    if (!tile.is_found) return;
    const abi::SimtParams own = params_of_problem<design.has_c>(list, tile.group);
    const unsigned columns = abi::tiles_along(own.n, design.tile_n);
    SimtGemm<design> gemm(own, shared);
    gemm.compute_tile({.batch = 0, .row = tile.tile / columns, .column = tile.tile % columns});
  }
}

}  // namespace gemmery::device
