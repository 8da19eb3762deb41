// SPDX-License-Identifier: Apache-2.0
// The coordinates of a batch's matrices in tensor maps: the matrix's number if the batch has a
// stride, or its distance from the map in a batch by pointers (abi/pointer_array.hpp). No map is
// changed on the device, so no wait for a changed map is needed.
#pragma once

#include <device/abi/pointer_array.hpp>
#include <device/ptx/memory.cuh>
#include <device/ptx/tma.cuh>

namespace gemmery::device {

/// Kernels for strided batches only.
template <bool has_pointers>
struct MapMatrix {
  int batch = 0;
};
/// Kernels for both.
template <>
struct MapMatrix<true> {
  abi::MapDistance distance{};
};

/// The array of a batch by pointers; null if the batch has a stride.
__device__ __forceinline__ void* const* array_of(const void* data, abi::Int64 batch_stride) {
  return batch_stride == abi::by_pointers ? static_cast<void* const*>(data) : nullptr;
}

/// Finds matrix `batch`; `array` is the result of array_of. Traps if an address is not aligned as
/// promised, since the rounded address would be that of other memory.
template <bool has_pointers>
__device__ __forceinline__ MapMatrix<has_pointers> find_in_map(void* const* array, unsigned batch) {
  if constexpr (has_pointers) {
    if (array == nullptr) return {{static_cast<int>(batch), 0}};
    const auto matrix = reinterpret_cast<abi::UInt64>(ptx::ld_global_nc_address(array + batch));
    if (matrix % abi::near_step_bytes != 0) __trap();
    return {abi::map_distance(abi::map_address(reinterpret_cast<abi::UInt64>(array)), matrix)};
  } else {
    return {static_cast<int>(batch)};
  }
}

/// The place of a box in a matrix.
__device__ __forceinline__ ptx::BoxPlace box_at(int adjacent, int row,
                                                const MapMatrix<false>& matrix) {
  return {.adjacent = adjacent, .row = row, .batch = matrix.batch};
}
__device__ __forceinline__ ptx::FarBoxPlace box_at(int adjacent, int row,
                                                   const MapMatrix<true>& matrix) {
  return {
      .adjacent = adjacent, .row = row, .near = matrix.distance.near, .far = matrix.distance.far};
}

}  // namespace gemmery::device
