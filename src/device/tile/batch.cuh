// SPDX-License-Identifier: Apache-2.0
// The addresses of the matrices of a batch.
#pragma once

#include <device/abi/pointer_array.hpp>
#include <device/ptx/memory.cuh>

namespace gemmery::device {

/// The address of one matrix. Matrices are `batch_stride` elements apart, or their addresses are in
/// an array.
template <int element_bytes, int element_bits = 8 * element_bytes>
__device__ __forceinline__ char* matrix_of_batch(const void* data, abi::Int64 batch_stride,
                                                 unsigned batch) {
  if (batch_stride == abi::by_pointers)
    return ptx::ld_global_nc_address(static_cast<void* const*>(data) + batch);
  const abi::Int64 elements = static_cast<abi::Int64>(batch) * batch_stride;
  const abi::Int64 offset =
      element_bits < 8 ? elements * element_bits / 8 : elements * element_bytes;
  return static_cast<char*>(const_cast<void*>(data)) + offset;
}

/// The same as an address and an offset in elements, for kernels that serve strided batches only or
/// arrays of pointers, too.
struct MatrixStart {
  char* address;
  abi::Int64 elements;
};
template <bool has_pointers>
__device__ __forceinline__ MatrixStart start_of_batch(const void* data, abi::Int64 batch_stride,
                                                      unsigned batch) {
  if constexpr (has_pointers) {
    if (batch_stride == abi::by_pointers)
      return {ptx::ld_global_nc_address(static_cast<void* const*>(data) + batch), 0};
  }
  return {static_cast<char*>(const_cast<void*>(data)),
          static_cast<abi::Int64>(batch) * batch_stride};
}

}  // namespace gemmery::device
