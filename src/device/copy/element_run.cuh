// SPDX-License-Identifier: Apache-2.0
// Copies a run of a row's elements between global memory and registers, in the widest accesses that
// the address allows. Nothing beyond the row's end is accessed.
#pragma once

#include <device/ptx/memory.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// A run of adjacent elements as it was loaded: `columns` of them from one row.
template <DType dtype, int columns>
using LoadedRun = ptx::Registers<columns * abi::bytes_of(dtype)>;

/// Reads `columns` elements of a row, of which `left` exist, by accesses of `vector_bytes`; the
/// others become 0 and are not read. `step_bytes` is the distance of elements that are not
/// adjacent.
template <DType dtype, int vector_bytes, int columns>
__device__ __forceinline__ LoadedRun<dtype, columns> load_run(const char* first, int left,
                                                              abi::Int64 step_bytes) {
  constexpr int bytes = abi::bytes_of(dtype);
  constexpr int run = columns * bytes;
  constexpr int access = vector_bytes == 0 ? bytes : vector_bytes < run ? vector_bytes : run;
  constexpr int elements = access / bytes;
  LoadedRun<dtype, columns> loaded{};
#pragma unroll
  for (int start = 0; start < columns; start += elements) {
    const char* const source =
        vector_bytes == 0 ? first + start * step_bytes : first + start * bytes;
    auto piece = ptx::ld_global_if<access>(left >= start + elements, source, {});
    if constexpr (elements > 1) {
      // The row ends within the access.
#pragma unroll
      for (int element = 0; element < elements - 1; ++element) {
        const bool is_single = left > start + element && left < start + elements;
        const auto single = ptx::ld_global_if<bytes>(is_single, source + element * bytes, {});
        insert<bytes>(piece, element, single);
      }
    }
    insert<access>(loaded, start / elements, piece);
  }
  return loaded;
}

/// Writes the elements, of `columns`, that exist in the row.
template <DType dtype, int vector_bytes, int columns, class Compute>
__device__ __forceinline__ void store_run(char* first, const Compute (&values)[columns], int left,
                                          abi::Int64 step_bytes) {
  constexpr int bytes = abi::bytes_of(dtype);
  constexpr int run = columns * bytes;
  constexpr int access = vector_bytes == 0 ? bytes : vector_bytes < run ? vector_bytes : run;
  constexpr int elements = access / bytes;
#pragma unroll
  for (int start = 0; start < columns; start += elements) {
    char* const target = vector_bytes == 0 ? first + start * step_bytes : first + start * bytes;
    ptx::Registers<access> piece{};
#pragma unroll
    for (int element = 0; element < elements; ++element)
      place<dtype>(piece, element, values[start + element]);
    if (left >= start + elements) {
      ptx::st_global<access>(target, piece);
    } else if constexpr (elements > 1) {
#pragma unroll
      for (int element = 0; element < elements - 1; ++element) {
        ptx::Registers<bytes> single{};
        place<dtype>(single, 0, values[start + element]);
        if (left > start + element) ptx::st_global<bytes>(target + element * bytes, single);
      }
    }
  }
}

}  // namespace gemmery::device
