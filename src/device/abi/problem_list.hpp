// SPDX-License-Identifier: Apache-2.0
// A list of problems in the launch parameters: the addresses and extents of their matrices, and
// their first tiles. The host makes it; a block finds its problem by bisection.
#pragma once

#include <device/abi/host_device.hpp>
#include <device/abi/simt_params.hpp>

namespace gemmery::abi {

/// A bit for each operand of a list, set if its matrices are column major.
enum ColumnMajor : unsigned {
  a_is_column = 1,
  b_is_column = 2,
  c_is_column = 4,
  out_is_column = 8
};

/// The fields of all lists. A line is a row of a row-major matrix, or a column of a column-major
/// one; its elements are adjacent. `first_tile` ascends; a problem without tiles has the first tile
/// of the next one, and the entry after the last problem is the number of all tiles.
template <unsigned most>
struct ProblemsOfList {
  const void* a[most];
  const void* b[most];
  const void* out[most];
  double alpha[most];
  int a_line[most];  // elements from line to line
  int b_line[most];
  int out_line[most];
  unsigned m[most];
  unsigned n[most];
  unsigned k[most];  // 0 with alpha = 0
  unsigned first_tile[most + 1];
  unsigned count;
  unsigned column_major;  // of ColumnMajor
};

/// As many problems as the 4 KB of a launch's parameters hold.
struct ProblemList {
  static constexpr unsigned most = 64;
  ProblemsOfList<most> problems;
};
struct ProblemListWithC {
  static constexpr unsigned most = 48;
  ProblemsOfList<most> problems;
  const void* c[most];
  double beta[most];
  int c_line[most];
};
static_assert(sizeof(ProblemList) <= 4096 && sizeof(ProblemListWithC) <= 4096);

/// A matrix of a list in the form of a batch's matrix.
GEMMERY_HOST_DEVICE
constexpr SimtMatrix listed_matrix(const void* data, int line, bool is_column) {
  return {.data = data,
          .batch_stride = 0,
          .row_stride = is_column ? 1 : line,
          .column_stride = is_column ? line : 1};
}

}  // namespace gemmery::abi
