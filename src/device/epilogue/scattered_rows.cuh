// SPDX-License-Identifier: Apache-2.0
// The rows of out of a lane's two accumulator rows in an sm90 kernel whose rows are scattered.
#pragma once

#include <device/abi/sm90_params.hpp>
#include <device/epilogue/output_place.cuh>
#include <device/tile/indexed_element.cuh>

namespace gemmery::device {

/// Rows with index -1 and rows beyond the group are neither read nor stored.
struct ScatteredRows {
  int first;    // a valid one if there is any
  int between;  // from the first to the second
  bool has_row[2];
};

/// `row` of all groups, and the one `distance` after it.
template <unsigned distance>
__device__ __forceinline__ ScatteredRows rows_of_out(const abi::Sm90Params& params,
                                                     const OutputPlace& place, unsigned row) {
  const auto find = [&](unsigned own) {
    return own < place.row_end ? find_element(scatter_of(params), own) : no_element;
  };
  const int first = find(row);
  const int second = find(row + distance);
  const int valid = first == no_element ? max(second, 0) : first;
  return {.first = valid,
          .between = second == no_element ? 0 : second - valid,
          .has_row = {first != no_element, second != no_element}};
}

}  // namespace gemmery::device
