// SPDX-License-Identifier: Apache-2.0
// Values of scales and zero points in global memory.
#pragma once

#include <device/abi/companions.hpp>
#include <device/ptx/memory.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// 2^(code - 127); 255 is NaN.
__device__ __forceinline__ float decode_e8m0(unsigned code) {
  const unsigned normal = code == 0xffU ? 0x7fc00000U : code << 23;
  return __uint_as_float(code == 0 ? 0x00400000U : normal);
}

/// A float of 4 or 6 bits, which has no infinity and no NaN: placed in a float's fields it is a
/// power of two of its value, exactly, subnormals included.
template <abi::DType dtype>
__device__ __forceinline__ float decode_narrow_float(unsigned bits) {
  constexpr int mantissa = dtype == abi::DType::float6_e2m3fn   ? 3
                           : dtype == abi::DType::float6_e3m2fn ? 2
                                                                : 1;
  constexpr int exponent = abi::bits_of(dtype) - 1 - mantissa;
  constexpr int bias = (1 << (exponent - 1)) - 1;
  constexpr unsigned sign = 1U << (abi::bits_of(dtype) - 1);
  const unsigned scaled = (bits & (sign - 1)) << (23 - mantissa);
  const float magnitude =
      __uint_as_float(scaled) * __uint_as_float(static_cast<unsigned>(127 + 127 - bias) << 23);
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

template <abi::DType dtype>
__device__ __forceinline__ float decode_companion(unsigned bits) {
  if constexpr (dtype == abi::DType::float8_e8m0fnu)
    return decode_e8m0(bits);
  else if constexpr (dtype == abi::DType::int4)
    return static_cast<float>(static_cast<int>(bits ^ 8U) - 8);
  else if constexpr (dtype == abi::DType::int8)
    return static_cast<float>(static_cast<signed char>(bits));
  else if constexpr (dtype == abi::DType::uint4 || dtype == abi::DType::uint8)
    return static_cast<float>(bits);
  else if constexpr (dtype == abi::DType::int32)
    return static_cast<float>(static_cast<int>(bits));
  else if constexpr (abi::bits_of(dtype) < 8)
    return decode_narrow_float<dtype>(bits);
  else
    return decode_float<dtype>(bits);
}

/// The bits of the value for an element's row and k.
template <abi::DType dtype, bool is_swizzled>
__device__ __forceinline__ unsigned load_companion(const abi::CompanionParams& params,
                                                   unsigned batch, unsigned row, unsigned k) {
  const abi::Int64 of_row = params.rows.divide(row);
  const abi::Int64 of_k = params.k.divide(k);
  const abi::Int64 within = is_swizzled ? abi::swizzled_offset(of_row, of_k, params.tiles)
                                        : of_row * params.row_stride + of_k * params.k_stride;
  const abi::Int64 at = batch * params.batch_stride + within;
  const char* const data = static_cast<const char*>(params.data);
  constexpr int bits = abi::bits_of(dtype);
  if constexpr (bits < 8)
    return ptx::ld_global_nc<1>(data + (at >> 1)).words[0] >> 4 * static_cast<unsigned>(at & 1) &
           15U;
  else
    return ptx::ld_global_nc<bits / 8>(data + at * (bits / 8)).words[0];
}

}  // namespace gemmery::device
