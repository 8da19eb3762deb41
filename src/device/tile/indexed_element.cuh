// SPDX-License-Identifier: Apache-2.0
// Rows (or columns) of groups that are found by indices.
#pragma once

#include <device/abi/groups.hpp>
#include <device/ptx/memory.cuh>

namespace gemmery::device {

inline constexpr int no_element = -1;

/// The element of the tensor for an element of all groups; no_element if its index is -1 or out of
/// range.
__device__ inline int find_element(const abi::IndexParams& indices, unsigned position) {
  if (indices.data == nullptr) return static_cast<int>(position);
  const abi::Int64 index =
      indices.is_wide != 0
          ? ptx::ld_global_int64(static_cast<const abi::Int64*>(indices.data) + position)
          : ptx::ld_global_int(static_cast<const int*>(indices.data) + position);
  if (index < 0) return no_element;
  const abi::Int64 element = indices.divide == 1 ? index : index / indices.divide;
  return element < indices.extent ? static_cast<int>(element) : no_element;
}

}  // namespace gemmery::device
