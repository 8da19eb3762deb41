// SPDX-License-Identifier: Apache-2.0
// The matrices of a batch as tensor maps find them: by their number where they have one stride, or
// anywhere, by their distance from the map (abi/pointer_array.hpp). No map is changed on the
// device, so nothing waits for one.
#pragma once

#include <device/abi/pointer_array.hpp>
#include <device/ptx/memory.cuh>
#include <device/ptx/tma.cuh>

namespace gemmery::device {

/// In kernels for strided batches alone.
template <bool has_pointers>
struct MapMatrix {
  int batch = 0;
};
/// In kernels for both.
template <>
struct MapMatrix<true> {
  abi::MapDistance distance{};
};

/// The array of a batch, null where its matrices have one stride.
__device__ __forceinline__ void* const* array_of(const void* data, abi::Int64 batch_stride) {
  return batch_stride == abi::by_pointers ? static_cast<void* const*>(data) : nullptr;
}

/// Matrix number `batch`; `array` is that of array_of. An address that is not aligned as promised
/// traps, as a load from there would: rounded, it would be another matrix's.
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

/// A box of a matrix.
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
