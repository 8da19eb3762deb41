// SPDX-License-Identifier: Apache-2.0
// The problem of a tile in an sm90 kernel for lists, and the matrix of out of any tile.
#pragma once

#include <device/abi/problem_list.hpp>
#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>

namespace gemmery::device {

template <bool has_c>
struct ListOf {
  using Type = abi::ProblemList;
};
template <>
struct ListOf<true> {
  using Type = abi::ProblemListWithC;
};

/// The parameters of a kernel for lists, which begin with `params`.
template <const abi::Sm90Design& design>
__device__ __forceinline__ const auto& with_list(const abi::Sm90Params& params) {
  return reinterpret_cast<const abi::Sm90ListParams<typename ListOf<design.has_c>::Type>&>(params);
}

/// A matrix of one problem.
__device__ __forceinline__ abi::RowMajorMatrix matrix_of_problem(const void* data, int line,
                                                                 bool is_column) {
  const abi::SimtMatrix matrix = abi::listed_matrix(data, line, is_column);
  return {matrix.data, matrix.batch_stride, matrix.row_stride, matrix.column_stride};
}

/// The matrix in which a tile is stored: that of its problem, which is row major, since the kernel
/// computes the transpose if out is column major; or that of the launch.
template <const abi::Sm90Design& design>
__device__ __forceinline__ decltype(auto) out_of(const abi::Sm90Params& params, unsigned batch) {
  if constexpr (design.has_list) {
    const auto& list = with_list<design>(params).list.problems;
    return matrix_of_problem(list.out[batch], list.out_line[batch], false);
  } else {
    return static_cast<const abi::RowMajorMatrix&>(params.out_rows);
  }
}

/// The same for C.
template <const abi::Sm90Design& design>
__device__ __forceinline__ decltype(auto) addend_of(const abi::Sm90Params& params, unsigned batch) {
  if constexpr (design.has_list) {
    const auto& list = with_list<design>(params).list;
    return matrix_of_problem(list.c[batch], list.c_line[batch],
                             (list.problems.column_major & abi::c_is_column) != 0);
  } else {
    return static_cast<const abi::RowMajorMatrix&>(params.c);
  }
}

}  // namespace gemmery::device
