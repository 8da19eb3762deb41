// SPDX-License-Identifier: Apache-2.0
// Scales a block of an operand in shared memory: looks its codes up in a table or subtracts the
// zero point, multiplies by the scales.
#pragma once

#include <device/abi/companions.hpp>
#include <device/tile/companion.cuh>

namespace gemmery::device {

template <DType dtype, bool is_swizzled>
__device__ inline float companion_at(const abi::CompanionParams& params, unsigned batch,
                                     unsigned row, unsigned k) {
  return decode_companion<dtype>(load_companion<dtype, is_swizzled>(params, batch, row, k));
}

/// The part of an operand that a block in shared memory holds: rows (columns of B) from `first` to
/// `end`, k from `first_k` to `end_k`.
struct ScaledBlock {
  unsigned batch;
  unsigned first;
  unsigned end;
  unsigned first_k;
  unsigned end_k;
};

/// The scaled element. Scales are multiplied first.
template <abi::CompanionTypes types, class Word>
__device__ inline Word scale_element(Word element, const abi::CompanionsParams& params,
                                     unsigned batch, unsigned row, unsigned k) {
  if constexpr (types.has_table)
    element = static_cast<Word>(params.table[static_cast<int>(element)]);
  if constexpr (types.has_zero_point)
    element -= companion_at<types.zero_point, false>(params.zero_point, batch, row, k);
  if constexpr (types.scale_count > 0) {
    Word scale =
        companion_at<types.scales[0], types.are_swizzled[0]>(params.scales[0], batch, row, k);
    if constexpr (types.scale_count > 1)
      scale *=
          companion_at<types.scales[1], types.are_swizzled[1]>(params.scales[1], batch, row, k);
    element *= scale;
  }
  return element;
}

/// All threads of the block share the elements. `words` is [k][pitch]; elements beyond the ends are
/// left as they are: zeros.
template <abi::CompanionTypes types, int extent, int k_elements, int pitch, int threads, class Word>
__device__ inline void scale_words(Word* words, const abi::CompanionsParams& params,
                                   const ScaledBlock& block) {
#pragma unroll 1
  for (int index = static_cast<int>(threadIdx.x); index < extent * k_elements; index += threads) {
    const unsigned row = block.first + static_cast<unsigned>(index % extent);
    const unsigned k = block.first_k + static_cast<unsigned>(index / extent);
    if (row >= block.end || k >= block.end_k) continue;
    Word& word = words[index / extent * pitch + index % extent];
    word = scale_element<types>(word, params, block.batch, row, k);
  }
}

}  // namespace gemmery::device
