// SPDX-License-Identifier: Apache-2.0
// Scales a block of an operand in shared memory: subtracts the zero point, multiplies by the
// scales.
#pragma once

#include <device/abi/companions.hpp>
#include <device/ptx/memory.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// 2^(code - 127); 255 is NaN.
__device__ inline float decode_e8m0(unsigned code) {
  const unsigned normal = code == 0xffU ? 0x7fc00000U : code << 23;
  return __uint_as_float(code == 0 ? 0x00400000U : normal);
}

template <DType dtype>
__device__ inline float decode_companion(unsigned bits) {
  if constexpr (dtype == DType::float8_e8m0fnu)
    return decode_e8m0(bits);
  else if constexpr (dtype == DType::int4)
    return static_cast<float>(static_cast<int>(bits ^ 8U) - 8);
  else if constexpr (dtype == DType::int8)
    return static_cast<float>(static_cast<signed char>(bits));
  else if constexpr (dtype == DType::uint4 || dtype == DType::uint8)
    return static_cast<float>(bits);
  else if constexpr (dtype == DType::int32)
    return static_cast<float>(static_cast<int>(bits));
  else
    return decode_float<dtype>(bits);
}

/// The value at an offset, which counts values.
template <DType dtype>
__device__ inline float load_companion(const void* data, abi::Int64 offset) {
  const char* const bytes = static_cast<const char*>(data);
  if constexpr (abi::bits_of(dtype) == 4) {
    const unsigned pair = ptx::ld_global_nc<1>(bytes + (offset >> 1)).words[0];
    return decode_companion<dtype>(pair >> (4 * (offset & 1)) & 15U);
  } else {
    constexpr int width = abi::bits_of(dtype) / 8;
    return decode_companion<dtype>(ptx::ld_global_nc<width>(bytes + offset * width).words[0]);
  }
}

template <DType dtype, bool is_swizzled>
__device__ inline float companion_at(const abi::CompanionParams& params, unsigned batch,
                                     unsigned row, unsigned k) {
  const unsigned row_block = params.row_block == 0 ? 0 : row / params.row_block;
  const unsigned k_block = params.k_block == 0 ? 0 : k / params.k_block;
  const abi::Int64 within = is_swizzled ? abi::swizzled_offset(row_block, k_block, params.tiles)
                                        : row_block * params.row_stride + k_block * params.k_stride;
  return load_companion<dtype>(params.data, batch * params.batch_stride + within);
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
