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

template <int access>
inline constexpr int word_count = sizeof(ptx::Registers<access>) / sizeof(unsigned);

/// The elements of an access of more than one of which the row has `count`, fewer than all.
template <int bytes, int access>
__device__ __forceinline__ ptx::Registers<access> load_first(const char* source, int count) {
  ptx::Registers<access> loaded{};
  if constexpr (bytes >= 4) {
#pragma unroll
    for (int element = 0; element < access / bytes - 1; ++element)
      insert<bytes>(loaded, element,
                    ptx::ld_global_if_above<bytes>(count, element, source + element * bytes, {}));
  } else {
#pragma unroll
    for (int word = 0; word < word_count<access>; ++word)
      loaded.words[word] =
          ptx::ld_global_first<bytes>(source + 4 * word, count - word * (4 / bytes));
  }
  return loaded;
}
/// Stores them.
template <int bytes, int access>
__device__ __forceinline__ void store_first(char* target, const ptx::Registers<access>& values,
                                            int count) {
  if constexpr (bytes >= 4) {
#pragma unroll
    for (int element = 0; element < access / bytes - 1; ++element) {
      ptx::Registers<bytes> single;
#pragma unroll
      for (int word = 0; word < bytes / 4; ++word)
        single.words[word] = values.words[element * (bytes / 4) + word];
      ptx::st_global_if_above<bytes>(count, element, target + element * bytes, single);
    }
  } else {
#pragma unroll
    for (int word = 0; word < word_count<access>; ++word)
      ptx::st_global_first<bytes>(target + 4 * word, values.words[word],
                                  count - word * (4 / bytes));
  }
}

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
    auto piece = ptx::ld_global_if_above<access>(left, start + elements - 1, source, {});
    if constexpr (elements > 1) {
      if (left > start && left < start + elements)
        piece = load_first<bytes, access>(source, left - start);
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
    if constexpr (elements == 1) {
      ptx::st_global_if_above<access>(left, start, target, piece);
    } else {
      if (left >= start + elements)
        ptx::st_global<access>(target, piece);
      else if (left > start)
        store_first<bytes>(target, piece, left - start);
    }
  }
}

}  // namespace gemmery::device
