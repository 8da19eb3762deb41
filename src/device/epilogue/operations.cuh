// SPDX-License-Identifier: Apache-2.0
// The operations of ops.def as device functions, which emitted epilogues call by name.
#pragma once

#include <device/abi/epilogue.hpp>
#include <device/epilogue/math.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device::op {

#define GEMMERY_OPERATION_real_1(name, formula) \
  template <class T>                            \
  __device__ __forceinline__ T name(T x) {      \
    return formula;                             \
  }
#define GEMMERY_OPERATION_real_2(name, formula) \
  template <class T>                            \
  __device__ __forceinline__ T name(T x, T y) { \
    return formula;                             \
  }
#define GEMMERY_OPERATION_real_3(name, formula)      \
  template <class T>                                 \
  __device__ __forceinline__ T name(T x, T y, T z) { \
    return formula;                                  \
  }
#define GEMMERY_OPERATION_compare_2(name, formula) \
  template <class T>                               \
  __device__ __forceinline__ bool name(T x, T y) { \
    return formula;                                \
  }
#define GEMMERY_OPERATION_logical_1(name, formula) \
  __device__ __forceinline__ bool name(bool x) { return formula; }
#define GEMMERY_OPERATION_logical_2(name, formula) \
  __device__ __forceinline__ bool name(bool x, bool y) { return formula; }
#define GEMMERY_OPERATION_choose_3(name, formula)       \
  template <class T>                                    \
  __device__ __forceinline__ T name(bool x, T y, T z) { \
    return formula;                                     \
  }
#define GEMMERY_OP(name, arity, kind, formula, ...) \
  GEMMERY_OPERATION_##kind##_##arity(name, (formula))
#include <gemmery/ops.def>

/// The brief formulas, for operations that have one.
namespace brief {

#define GEMMERY_BRIEF(name, formula, ...) GEMMERY_OPERATION_real_1(name, (formula))
#include <gemmery/ops.def>

}  // namespace brief

#undef GEMMERY_OPERATION_real_1
#undef GEMMERY_OPERATION_real_2
#undef GEMMERY_OPERATION_real_3
#undef GEMMERY_OPERATION_compare_2
#undef GEMMERY_OPERATION_logical_1
#undef GEMMERY_OPERATION_logical_2
#undef GEMMERY_OPERATION_choose_3

// --- casts ---------------------------------------------------------------------------------------

/// NaN stays NaN.
template <class T>
__device__ __forceinline__ T limit_size(T x, T largest) {
  return math::max(math::min(x, largest), -largest);
}

/// The bits of x in a floating type of 16 bits.
template <abi::DType dtype, abi::Rounding rounding>
__device__ __forceinline__ unsigned half_bits(float x) {
  if constexpr (rounding == abi::Rounding::nearest_even) return encode<dtype>(x);
  if constexpr (dtype == abi::DType::float16) return ptx::cvt_rz_f16_f32(x);
  // The upper half of a float. NaN keeps a bit there.
  return (__float_as_uint(x) >> 16) | (x != x ? 0x40U : 0U);
}

template <abi::DType dtype, abi::Rounding rounding, abi::Overflow overflow>
__device__ __forceinline__ float narrow_float(float x) {
  constexpr float largest = dtype == abi::DType::float16 ? 65504.0F : 0x1.fep127F;
  if constexpr (overflow == abi::Overflow::saturate) x = limit_size(x, largest);
  return decode_float<dtype>(half_bits<dtype, rounding>(x));
}

template <abi::Rounding rounding, abi::Overflow overflow>
__device__ __forceinline__ double narrow_double(double x) {
  if constexpr (overflow == abi::Overflow::saturate)
    x = limit_size(x, static_cast<double>(0x1.fffffep127F));
  return rounding == abi::Rounding::toward_zero ? ptx::cvt_rz_f32_f64(x) : ptx::cvt_rn_f32_f64(x);
}

template <class T>
__device__ __forceinline__ T whole_toward_zero(T x) {
  return x < T(0) ? -math::floor(-x) : math::floor(x);
}

/// x rounded to a narrower type, as a number to compute on with.
template <abi::DType dtype, abi::Rounding rounding, abi::Overflow overflow, class T>
__device__ __forceinline__ T cast(T x) {
  if constexpr (dtype == abi::DType::float64) {
    return x;
  } else if constexpr (dtype == abi::DType::float32) {
    if constexpr (sizeof(T) == 8) return static_cast<T>(narrow_double<rounding, overflow>(x));
    return overflow == abi::Overflow::saturate ? limit_size<T>(x, 0x1.fffffep127F) : x;
  } else if constexpr (abi::is_integer(dtype)) {
    if constexpr (rounding == abi::Rounding::toward_zero) x = whole_toward_zero(x);
    return decode<dtype, T>(ptx::Registers<abi::bytes_of(dtype)>{{encode<dtype>(x)}}, 0);
  } else if constexpr (is_byte_float(dtype)) {
    return decode_float<dtype>(encode_byte_float<dtype, rounding, overflow>(to_narrowing_float(x)));
  } else {
    return narrow_float<dtype, rounding, overflow>(to_narrowing_float(x));
  }
}

}  // namespace gemmery::device::op
