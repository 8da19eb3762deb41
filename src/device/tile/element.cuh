// SPDX-License-Identifier: Apache-2.0
// Elements as bits in registers: extracted from loads, decoded to the compute type, encoded for
// stores.
#pragma once

#include <device/abi/dtype.hpp>
#include <device/abi/epilogue.hpp>
#include <device/ptx/convert.cuh>
#include <device/ptx/convert_sequences.cuh>
#include <device/ptx/integer.cuh>
#include <device/ptx/memory.cuh>

namespace gemmery::device {

using abi::DType;

/// The types of products and of the epilogue's operands for an accumulator type.
template <DType accumulator>
struct ArithmeticOf {
  using Accumulator = float;  // accumulator type
  using Word = float;         // type in shared memory
  using Compute = float;      // the epilogue's compute type
};
template <>
struct ArithmeticOf<DType::float64> {
  using Accumulator = double;
  using Word = double;
  using Compute = double;
};
template <>
struct ArithmeticOf<DType::int32> {
  using Accumulator = int;
  using Word = unsigned;   // four packed bytes
  using Compute = double;  // holds every int32
};

/// The bits of element `position` of a load; not for elements of 8 bytes.
template <int element_bytes, int bytes>
__device__ inline unsigned extract(const ptx::Registers<bytes>& registers, int position) {
  if constexpr (element_bytes == 4) {
    return registers.words[position];
  } else {
    constexpr int per_word = 4 / element_bytes;
    constexpr unsigned mask = (1U << (8 * element_bytes)) - 1U;
    return (registers.words[position / per_word] >> (8 * element_bytes * (position % per_word))) &
           mask;
  }
}

/// Inserts a separately loaded part at its position among `bytes` of a wider load; the position
/// must hold 0.
template <int part_bytes, int bytes>
__device__ inline void insert(ptx::Registers<bytes>& registers, int position,
                              const ptx::Registers<part_bytes>& part) {
  if constexpr (part_bytes >= 4) {
    constexpr int words = part_bytes / 4;
#pragma unroll
    for (int word = 0; word < words; ++word)
      registers.words[position * words + word] |= part.words[word];
  } else {
    constexpr int per_word = 4 / part_bytes;
    registers.words[position / per_word] |= part.words[0]
                                            << (8 * part_bytes * (position % per_word));
  }
}

/// Byte `position` of each of four words, as one word.
__device__ inline unsigned column_of_bytes(unsigned first, unsigned second, unsigned third,
                                           unsigned fourth, int position) {
  const unsigned selector = static_cast<unsigned>(position) * 0x11U + 0x40U;
  return ptx::prmt(ptx::prmt(first, second, selector), ptx::prmt(third, fourth, selector), 0x5410U);
}

/// e4m3 is f16's layout with 4 exponent bits: placed in a float's fields it is 2^-120 of its value,
/// exactly, subnormals included.
__device__ inline float decode_e4m3(unsigned bits) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  return ptx::unpack_e4m3(bits);
#else
  constexpr unsigned nan_magnitude = 0x7fU;
  const unsigned magnitude = bits & 0x7fU;
  const float value = __uint_as_float(magnitude << 20) * 0x1p120F;
  const float unsigned_value = magnitude == nan_magnitude ? __uint_as_float(0x7fc00000U) : value;
  return __uint_as_float(__float_as_uint(unsigned_value) | ((bits & 0x80U) << 24));
#endif
}

template <DType dtype>
__device__ inline float decode_float(unsigned bits) {
  if constexpr (dtype == DType::float32) return __uint_as_float(bits);
  if constexpr (dtype == DType::float16) return ptx::cvt_f32_f16(static_cast<unsigned short>(bits));
  if constexpr (dtype == DType::bfloat16) return __uint_as_float(bits << 16);
  if constexpr (dtype == DType::float8_e5m2)
    return ptx::cvt_f32_f16(static_cast<unsigned short>(bits << 8));
  if constexpr (dtype == DType::float8_e4m3fn) return decode_e4m3(bits);
}

/// Element `position` as a number to compute with.
template <DType dtype, class Compute, int bytes>
__device__ inline Compute decode(const ptx::Registers<bytes>& registers, int position) {
  if constexpr (dtype == DType::float64) {
    return __hiloint2double(static_cast<int>(registers.words[2 * position + 1]),
                            static_cast<int>(registers.words[2 * position]));
  } else {
    const unsigned bits = extract<abi::bytes_of(dtype)>(registers, position);
    if constexpr (dtype == DType::int32)
      return static_cast<Compute>(static_cast<int>(bits));
    else if constexpr (dtype == DType::int8)
      return static_cast<Compute>(static_cast<signed char>(bits));
    else if constexpr (dtype == DType::uint8 || dtype == DType::uint32)
      return static_cast<Compute>(bits);
    else
      return static_cast<Compute>(decode_float<dtype>(bits));
  }
}

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(double value) { return ptx::cvt_rn_f32_f64(value); }

/// A float that rounds to the same result as the value: its last bit is set if anything was
/// truncated.
__device__ inline float to_narrowing_float(float value) { return value; }
__device__ inline float to_narrowing_float(double value) { return ptx::round_to_odd(value); }

__device__ inline int clamp(int value, int lowest, int highest) {
  return min(max(value, lowest), highest);
}

/// Rounds to the nearest integer; saturates; NaN gives 0, unlike the instructions for double.
__device__ inline int to_int(float value) { return ptx::cvt_rni_s32_f32(value); }
__device__ inline int to_int(double value) { return ptx::round_to_s32(value); }
__device__ inline unsigned to_unsigned(float value) { return ptx::cvt_rni_u32_f32(value); }
__device__ inline unsigned to_unsigned(double value) { return ptx::round_to_u32(value); }

/// Two of them, saturated to 8 bits, the second in the upper byte of 16 bits.
__device__ inline unsigned round_pack_s8(float first, float second) {
  return ptx::pack_s8(to_int(first), to_int(second));
}
__device__ inline unsigned round_pack_s8(double first, double second) {
  return ptx::round_pack_s8(first, second);
}
__device__ inline unsigned round_pack_u8(float first, float second) {
  return ptx::pack_u8(to_int(first), to_int(second));
}
__device__ inline unsigned round_pack_u8(double first, double second) {
  return ptx::round_pack_u8(first, second);
}

GEMMERY_HOST_DEVICE
constexpr bool is_byte_float(DType dtype) {
  return dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2;
}

/// The codes of an 8-bit floating type, without sign.
template <DType dtype>
struct ByteFloat {
  static constexpr bool is_e4m3 = dtype == DType::float8_e4m3fn;
  static constexpr int mantissa_bits = is_e4m3 ? 3 : 2;
  static constexpr int bias = is_e4m3 ? 7 : 15;
  static constexpr unsigned largest = is_e4m3 ? 0x7eU : 0x7bU;
  static constexpr unsigned overflow = largest + 1;  // e4m3 has no infinity; this is its NaN
  static constexpr unsigned nan = 0x7fU;
};

/// Encodes by integer instructions, which every target has: the float's fields are rounded if the
/// result is normal; otherwise multiples of the smallest number are counted.
template <DType dtype, abi::Rounding rounding, abi::Overflow overflow>
__device__ inline unsigned encode_byte_float(float value) {
  using Format = ByteFloat<dtype>;
  constexpr bool is_cut = rounding == abi::Rounding::toward_zero;
  constexpr int shift = 23 - Format::mantissa_bits;
  constexpr unsigned infinity = 0x7f800000U;
  constexpr unsigned smallest_normal = (128U - Format::bias) << 23;
  constexpr float steps_per_one =
      static_cast<float>(1 << (Format::bias - 1 + Format::mantissa_bits));
  const unsigned bits = __float_as_uint(value);
  const unsigned size = bits & 0x7fffffffU;
  const unsigned half = is_cut ? 0U : (1U << (shift - 1)) - 1U + (size >> shift & 1U);
  const unsigned normal =
      ((size + half) >> shift) - ((127U - Format::bias) << Format::mantissa_bits);
  const float steps = __uint_as_float(size) * steps_per_one;
  const unsigned subnormal = is_cut ? static_cast<unsigned>(steps) : to_unsigned(steps);
  constexpr unsigned most =
      overflow == abi::Overflow::saturate || is_cut ? Format::largest : Format::overflow;
  unsigned code = min(size < smallest_normal ? subnormal : normal, most);
  if (is_cut && overflow == abi::Overflow::natural && size == infinity) code = Format::overflow;
  if (size > infinity) code = Format::nan;
  return code | (bits >> 24 & 0x80U);
}

/// The code of the nearest power of two from 2^-127 to 2^127, which 1.5 rounds up to; NaN's is 255.
/// 2^-127 is subnormal, half of the smallest normal number: 1.5 times it has a fraction of three
/// quarters.
__device__ inline unsigned encode_e8m0(float value) {
  const unsigned size = __float_as_uint(value) & 0x7fffffffU;
  const unsigned to_middle = size < 0x00800000U ? 0x00200000U : 0x00400000U;
  const unsigned code = min((size + to_middle) >> 23, 254U);
  return size > 0x7f800000U ? 255U : code;
}

/// The bits of a number rounded to nearest even; integers saturate.
template <DType dtype, class Compute>
__device__ inline unsigned encode(Compute value) {
  if constexpr (dtype == DType::float32) return __float_as_uint(to_float(value));
  if constexpr (dtype == DType::float16) return ptx::cvt_rn_f16_f32(to_narrowing_float(value));
  if constexpr (dtype == DType::bfloat16) return ptx::cvt_rn_bf16_f32(to_narrowing_float(value));
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  if constexpr (dtype == DType::float8_e4m3fn)
    return ptx::pack_e4m3(to_narrowing_float(value), 0.0F);
  if constexpr (dtype == DType::float8_e5m2) return ptx::pack_e5m2(to_narrowing_float(value), 0.0F);
#endif
  if constexpr (is_byte_float(dtype))
    return encode_byte_float<dtype, abi::Rounding::nearest_even, abi::Overflow::natural>(
        to_narrowing_float(value));
  if constexpr (dtype == DType::float8_e8m0fnu) return encode_e8m0(to_narrowing_float(value));
  if constexpr (dtype == DType::int32) return static_cast<unsigned>(to_int(value));
  if constexpr (dtype == DType::uint32) return to_unsigned(value);
  if constexpr (dtype == DType::int8)
    return static_cast<unsigned>(clamp(to_int(value), -128, 127)) & 0xffU;
  if constexpr (dtype == DType::uint8) return static_cast<unsigned>(clamp(to_int(value), 0, 255));
}

/// Two numbers rounded to an 8-bit type, the second in the upper byte of 16 bits.
template <DType dtype, class Compute>
__device__ inline unsigned encode_pair_of_bytes(const Compute (&values)[2]) {
  static_assert(abi::bytes_of(dtype) == 1);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  if constexpr (dtype == DType::float8_e4m3fn)
    return ptx::pack_e4m3(to_narrowing_float(values[0]), to_narrowing_float(values[1]));
  if constexpr (dtype == DType::float8_e5m2)
    return ptx::pack_e5m2(to_narrowing_float(values[0]), to_narrowing_float(values[1]));
#endif
  if constexpr (dtype == DType::int8) return round_pack_s8(values[0], values[1]);
  if constexpr (dtype == DType::uint8) return round_pack_u8(values[0], values[1]);
  return encode<dtype>(values[0]) | encode<dtype>(values[1]) << 8;
}

/// Inserts a number at `position` of the data to be stored. Positions are filled in ascending
/// order, starting from zeroed registers.
template <DType dtype, class Compute, int bytes>
__device__ inline void place(ptx::Registers<bytes>& registers, int position, Compute value) {
  if constexpr (dtype == DType::float64) {
    registers.words[2 * position] = static_cast<unsigned>(__double2loint(value));
    registers.words[2 * position + 1] = static_cast<unsigned>(__double2hiint(value));
  } else {
    constexpr int per_word = 4 / abi::bytes_of(dtype);
    const unsigned bits = encode<dtype>(value);
    registers.words[position / per_word] |= bits
                                            << (abi::bits_of(dtype) * (position % per_word) % 32);
  }
}

}  // namespace gemmery::device
