// SPDX-License-Identifier: Apache-2.0
// Codes of 4, 6 and 8 bits as float16, bfloat16 or e4m3 in registers, exactly, by few instructions.
//
//   a register of codes, the first in its lowest bits
//     | logic puts their bits into the fields of wider numbers, two in each register
//     | one addition removes the offset of integers; one multiplication corrects the exponent of
//     | floats, subnormal numbers included
//   registers of two numbers
//
// Instructions for the codes of one register, without constants (tests count them):
//
//   int4, uint4    8 codes    f16  9    bf16 11      pairs (j, j + 4); bf16 15 with a zero point
//   by a table     8          f16 21    bf16 21      pairs (2j, 2j + 1)
//   e2m1           8          f16 19    bf16 19      pairs (j, j + 4)
//                             e4m3  7                four even codes, four odd ones; 2^-6 of them
//   int8           4          f16  5    bf16  8      pairs (2j, 2j + 1), as of all that follow;
//   bf16
//                                                    10 with a zero point
//   uint8          4          f16  4    bf16 10
//   e4m3           4          f16  2    bf16  8      with the conversion of sm_89
//                             f16 13    bf16 15      before; minus zero becomes zero
//   e5m2           4          f16  2    bf16  8
//   e2m3, e3m2     4          f16 17    bf16 17
//
// NaN and infinities are kept. Integers count from a zero point, or from 0.
#pragma once

#include <device/abi/dtype.hpp>
#include <device/ptx/convert.cuh>
#include <device/ptx/integer.cuh>
#include <device/ptx/pair_math.cuh>

namespace gemmery::device {

/// Numbers that a decoder produces.
template <abi::DType number>
struct DecodedPair {
  static constexpr bool is_f16 = number == abi::DType::float16;

  __device__ static constexpr unsigned both(unsigned half) { return half * 0x10001U; }
  __device__ __forceinline__ static unsigned add(unsigned a, unsigned b) {
    if constexpr (is_f16) return ptx::add_rn_f16x2(a, b);
    return ptx::fma_rn_bf16x2(a, both(0x3f80U), b);
  }
  /// Keeps the sign of zeros.
  __device__ __forceinline__ static unsigned multiply(unsigned a, unsigned b) {
    if constexpr (is_f16) return ptx::mul_rn_f16x2(a, b);
    return ptx::fma_rn_bf16x2(a, b, both(0x8000U));
  }
  __device__ __forceinline__ static unsigned fma(unsigned a, unsigned b, unsigned c) {
    if constexpr (is_f16) return ptx::fma_rn_f16x2(a, b, c);
    return ptx::fma_rn_bf16x2(a, b, c);
  }
};

namespace detail {

inline constexpr unsigned and_or = 0xea;   // (a & b) | c
inline constexpr unsigned and_xor = 0x6a;  // (a & b) ^ c

/// (bits & mask) ^ other, one instruction.
__device__ __forceinline__ unsigned masked_xor(unsigned bits, unsigned mask, unsigned other) {
  return ptx::lop3<and_xor>(bits, mask, other);
}
/// (bits & mask) | other, one instruction.
__device__ __forceinline__ unsigned masked_or(unsigned bits, unsigned mask, unsigned other) {
  return ptx::lop3<and_or>(bits, mask, other);
}

}  // namespace detail

/// What is added to decoded integers, in both halves of registers, so that they count from a zero
/// point: a whole number of 8 bits at most.
template <abi::DType code, abi::DType number>
class IntegerOffset {
  using Pair = DecodedPair<number>;
  static constexpr int bits = abi::bits_of(code);
  static constexpr bool is_signed = abi::kind_of(code) == abi::Kind::signed_integer;
  // A code, counted from the lowest one, is the mantissa of a number from this one on. bfloat16
  // counts only 7 bits so; of 8 bits the eighth is subtracted before.
  static constexpr int first = Pair::is_f16 ? 1024 : 128;
  static constexpr int lowest = is_signed ? 1 << (bits - 1) : 0;
  static constexpr int base = bits == 8 && !Pair::is_f16 ? lowest - 128 : first + lowest;

 public:
  /// Of 8 bits in bfloat16, signed: nothing is added for a zero point of 0.
  static constexpr bool is_needed_without_zero = base != 0;
  /// bfloat16 has no room for the sum of both: the zero point is subtracted by itself.
  static constexpr bool has_two_steps = bits == 4 && !Pair::is_f16;

  __device__ __forceinline__ IntegerOffset() : IntegerOffset(0U) {}
  /// The negative zero point, in both halves.
  __device__ __forceinline__ explicit IntegerOffset(unsigned minus)
      : addend(has_two_steps ? whole_number(-base) : with_zero(-base, minus)),
        addend_of_sixteenths(with_zero(first - base - 64, minus)),
        minus_zero(minus) {}

  unsigned addend;
  // Of float16 whose codes are four bits further left, and 1/16 of which is taken.
  unsigned addend_of_sixteenths;
  unsigned minus_zero;

 private:
  __device__ __forceinline__ static unsigned with_zero(int value, unsigned minus) {
    return value == 0 ? minus : Pair::add(minus, whole_number(value));
  }
  /// A whole number that the type has, in both halves.
  __device__ static constexpr unsigned whole_number(int value) {
    constexpr int mantissa = Pair::is_f16 ? 10 : 7;
    constexpr int bias = Pair::is_f16 ? 15 : 127;
    const auto magnitude = static_cast<unsigned>(value < 0 ? -value : value);
    if (magnitude == 0) return 0;
    int exponent = 0;
    while (magnitude >> (exponent + 1) != 0) ++exponent;
    const unsigned fraction = exponent > mantissa ? magnitude >> (exponent - mantissa)
                                                  : magnitude << (mantissa - exponent);
    // The first bit of the fraction adds one to the exponent.
    const unsigned half = (static_cast<unsigned>(exponent + bias - 1) << mantissa) + fraction;
    return Pair::both(value < 0 ? half | 0x8000U : half);
  }
};

// --- 4 bits --------------------------------------------------------------------------------------

/// Pairs of codes (j, j + 4).
template <abi::DType code, abi::DType number, bool has_zero>
__device__ __forceinline__ void decode_nibble_integers(unsigned (&pairs)[4], unsigned codes,
                                                       const IntegerOffset<code, number>& offset) {
  using Pair = DecodedPair<number>;
  constexpr bool is_signed = code == abi::DType::int4;
  constexpr unsigned low = 0x000f000fU;
  constexpr unsigned first = Pair::both(Pair::is_f16 ? 0x6400U : 0x4300U);
  constexpr unsigned flip = is_signed ? 0x00080008U : 0U;
  if constexpr (Pair::is_f16) {
    // float16 has room for a second nibble, whose unit is 16.
    const unsigned shifted = codes >> 8;
    constexpr unsigned sixteenth = Pair::both(0x2c00U);
    pairs[0] = Pair::add(detail::masked_xor(codes, low, first ^ flip), offset.addend);
    pairs[1] = Pair::fma(detail::masked_xor(codes, low << 4, first ^ (flip << 4)), sixteenth,
                         offset.addend_of_sixteenths);
    pairs[2] = Pair::add(detail::masked_xor(shifted, low, first ^ flip), offset.addend);
    pairs[3] = Pair::fma(detail::masked_xor(shifted, low << 4, first ^ (flip << 4)), sixteenth,
                         offset.addend_of_sixteenths);
  } else {
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      pairs[pair] =
          Pair::add(detail::masked_xor(codes >> 4 * pair, low, first ^ flip), offset.addend);
      if constexpr (has_zero) pairs[pair] = Pair::add(pairs[pair], offset.minus_zero);
    }
  }
}

/// Bits shifted left, or right if `by` is negative.
template <int by>
__device__ __forceinline__ unsigned shifted(unsigned bits) {
  if constexpr (by >= 0)
    return bits << by;
  else
    return bits >> -by;
}

/// Pairs of e2m1 codes (j, j + 4): the sign goes to bit 15, the three other bits to the lowest bits
/// of the exponent and the highest one of the mantissa; what that makes of them is multiplied.
template <abi::DType number, int pair>
__device__ __forceinline__ unsigned decode_e2m1_pair(unsigned codes) {
  using Pair = DecodedPair<number>;
  constexpr int last = Pair::is_f16 ? 11 : 8;  // the highest of the three bits
  constexpr unsigned factor = Pair::both(Pair::is_f16 ? 0x7400U : 0x7e80U);  // 2^14, 2^126
  const unsigned sign = shifted<12 - 4 * pair>(codes) & 0x80008000U;
  const unsigned bits =
      detail::masked_or(shifted<last - 2 - 4 * pair>(codes), Pair::both(7U << (last - 2)), sign);
  return Pair::multiply(bits, factor);
}
template <abi::DType number>
__device__ __forceinline__ void decode_e2m1(unsigned (&pairs)[4], unsigned codes) {
  pairs[0] = decode_e2m1_pair<number, 0>(codes);
  pairs[1] = decode_e2m1_pair<number, 1>(codes);
  pairs[2] = decode_e2m1_pair<number, 2>(codes);
  pairs[3] = decode_e2m1_pair<number, 3>(codes);
}

/// 2^-6 of eight e2m1 codes as e4m3: those of even number in the first register, of odd number in
/// the second.
__device__ __forceinline__ void decode_e2m1_to_e4m3(unsigned (&bytes)[2], unsigned codes) {
  bytes[0] = detail::masked_or(codes << 2, 0x1c1c1c1cU, codes << 4 & 0x80808080U);
  bytes[1] = detail::masked_or(codes >> 2, 0x1c1c1c1cU, codes & 0x80808080U);
}

/// Sixteen 16-bit numbers in registers: their low bytes, then their high bytes.
struct RegisterTable {
  unsigned low[4];
  unsigned high[4];
};

template <abi::DType number>
__device__ __forceinline__ RegisterTable make_register_table(const float (&values)[16]) {
  RegisterTable table;
#pragma unroll
  for (int part = 0; part < 4; ++part) {
    unsigned pairs[2];
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const float first = values[4 * part + 2 * pair];
      const float second = values[4 * part + 2 * pair + 1];
      pairs[pair] = DecodedPair<number>::is_f16 ? ptx::cvt_rn_f16x2_f32(second, first)
                                                : ptx::cvt_rn_bf16x2_f32(second, first);
    }
    table.low[part] = ptx::prmt(pairs[0], pairs[1], 0x6420U);
    table.high[part] = ptx::prmt(pairs[0], pairs[1], 0x7531U);
  }
  return table;
}

/// Pairs of codes (2j, 2j + 1). A permutation of bytes looks four codes up among eight bytes at a
/// time; a third one chooses by the codes' highest bits.
__device__ __forceinline__ void look_up_codes(unsigned (&pairs)[4], unsigned codes,
                                              const RegisterTable& table) {
  const unsigned places = codes & 0x77777777U;
  const unsigned halves = detail::masked_or(codes >> 1, 0x44444444U, 0x32103210U);
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    const unsigned place = part == 0 ? places : places >> 16;
    const unsigned half = part == 0 ? halves : halves >> 16;
    const unsigned low = ptx::prmt(ptx::prmt(table.low[0], table.low[1], place),
                                   ptx::prmt(table.low[2], table.low[3], place), half);
    const unsigned high = ptx::prmt(ptx::prmt(table.high[0], table.high[1], place),
                                    ptx::prmt(table.high[2], table.high[3], place), half);
    pairs[2 * part] = ptx::prmt(low, high, 0x5140U);
    pairs[2 * part + 1] = ptx::prmt(low, high, 0x7362U);
  }
}

// --- 6 bits --------------------------------------------------------------------------------------

/// Pairs of codes (2j, 2j + 1) from the low 24 bits.
template <abi::DType code, abi::DType number>
__device__ __forceinline__ void decode_six_bits(unsigned (&pairs)[2], unsigned codes) {
  using Pair = DecodedPair<number>;
  constexpr bool is_e2m3 = code == abi::DType::float6_e2m3fn;
  constexpr int bias = is_e2m3 ? 1 : 3;
  constexpr int shift = (Pair::is_f16 ? 10 : 7) - (is_e2m3 ? 3 : 2);
  // 2 to the difference of the biases.
  constexpr unsigned factor =
      Pair::both(Pair::is_f16 ? static_cast<unsigned>(15 + 15 - bias) << 10
                              : static_cast<unsigned>(127 + 127 - bias) << 7);
#pragma unroll
  for (int pair = 0; pair < 2; ++pair) {
    const unsigned low = pair == 0 ? codes : codes >> 12;
    const unsigned high = pair == 0 ? codes << 10 : codes >> 2;
    const unsigned both = detail::masked_or(low, 0x3fU, high & 0x3f0000U);
    const unsigned bits =
        detail::masked_or(both << shift, Pair::both(0x1fU << shift), both << 10 & 0x80008000U);
    pairs[pair] = Pair::multiply(bits, factor);
  }
}

// --- 8 bits: pairs of codes (2j, 2j + 1)
// ----------------------------------------------------------

/// Bytes of a pair in the low halves of its numbers, `high` in the high ones.
__device__ __forceinline__ unsigned low_bytes(unsigned codes, int pair, unsigned high) {
  return ptx::prmt(codes, high, pair == 0 ? 0x4140U : 0x4342U);
}
/// Bytes of a pair in the high halves of its numbers, 0 in the low ones.
__device__ __forceinline__ unsigned high_bytes(unsigned codes, int pair) {
  return ptx::prmt(codes, 0, pair == 0 ? 0x1404U : 0x3424U);
}

template <abi::DType code, abi::DType number, bool has_zero>
__device__ __forceinline__ void decode_bytes(unsigned (&pairs)[2], unsigned codes,
                                             const IntegerOffset<code, number>& offset) {
  using Pair = DecodedPair<number>;
  constexpr bool is_signed = code == abi::DType::int8;
  if constexpr (Pair::is_f16) {
    const unsigned counted = is_signed ? codes ^ 0x80808080U : codes;
#pragma unroll
    for (int pair = 0; pair < 2; ++pair)
      pairs[pair] = Pair::add(low_bytes(counted, pair, 0x64646464U), offset.addend);
  } else {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      // 128 + the seven low bits, minus 128, or 256 if the eighth is set: exact, as is the rest.
      const unsigned bytes = low_bytes(codes, pair, 0);
      const unsigned low = detail::masked_or(bytes, 0x007f007fU, 0x43004300U);
      const unsigned high = is_signed ? detail::masked_or(bytes, 0x00800080U, 0x43004300U)
                                      : detail::masked_xor(bytes, 0x00800080U, 0x43804380U);
      pairs[pair] = Pair::fma(high, Pair::both(0xbf80U), low);
      if constexpr (has_zero || IntegerOffset<code, number>::is_needed_without_zero)
        pairs[pair] = Pair::add(pairs[pair], offset.addend);
    }
  }
}

/// A pair of float16 as a pair of bfloat16, exactly if it has at most 8 bits.
__device__ __forceinline__ unsigned bf16_of_f16(unsigned pair) {
  return ptx::cvt_rn_bf16x2_f32(ptx::cvt_f32_f16(static_cast<unsigned short>(pair >> 16)),
                                ptx::cvt_f32_f16(static_cast<unsigned short>(pair)));
}

template <abi::DType number>
__device__ __forceinline__ void decode_e5m2(unsigned (&pairs)[2], unsigned codes) {
#pragma unroll
  for (int pair = 0; pair < 2; ++pair) {
    const unsigned halves = high_bytes(codes, pair);  // float16 with a short mantissa
    pairs[pair] = number == abi::DType::float16 ? halves : bf16_of_f16(halves);
  }
}

/// By integer instructions, which every target has: magnitudes are shifted into place and
/// multiplied by 2 to the difference of the biases, with the sign; NaN is added to those of the
/// code 0x7f.
template <abi::DType number>
__device__ __forceinline__ void decode_e4m3_by_shifts(unsigned (&pairs)[2], unsigned codes) {
  using Pair = DecodedPair<number>;
  constexpr unsigned high_byte = Pair::is_f16 ? 0x5c5c5c5cU : 0x7b7b7b7bU;  // of 2^8, 2^120
  constexpr unsigned low_byte = Pair::is_f16 ? 0U : 0x80808080U;
  const unsigned magnitudes = codes & 0x7f7f7f7fU;
  const unsigned beyond = magnitudes + 0x01010101U;  // the sign of a byte tells of NaN
  const unsigned factors = detail::masked_or(codes, 0x80808080U, high_byte);
#pragma unroll
  for (int pair = 0; pair < 2; ++pair) {
    const unsigned bits = high_bytes(magnitudes, pair) >> (Pair::is_f16 ? 1 : 4);
    const unsigned factor = ptx::prmt(factors, low_byte, pair == 0 ? 0x1404U : 0x3424U);
    const unsigned nan = ptx::prmt(beyond, 0, pair == 0 ? 0x9988U : 0xbbaaU);  // signs of bytes
    pairs[pair] = Pair::fma(bits, factor, nan);
  }
}

template <abi::DType number>
__device__ __forceinline__ void decode_e4m3(unsigned (&pairs)[2], unsigned codes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  constexpr bool is_f16 = number == abi::DType::float16;
  const unsigned low = ptx::cvt_rn_f16x2_e4m3x2<0>(codes);
  const unsigned high = ptx::cvt_rn_f16x2_e4m3x2<1>(codes);
  pairs[0] = is_f16 ? low : bf16_of_f16(low);
  pairs[1] = is_f16 ? high : bf16_of_f16(high);
#else
  decode_e4m3_by_shifts<number>(pairs, codes);
#endif
}

// --- any type ------------------------------------------------------------------------------------

/// Codes in one register: 4 of 6 bits, which leave 8 bits unused.
GEMMERY_HOST_DEVICE
constexpr int codes_per_register(abi::DType code) { return abi::bits_of(code) == 4 ? 8 : 4; }

/// The codes of which a register of decoded numbers is made.
struct CodePair {
  int low;
  int high;
};
GEMMERY_HOST_DEVICE
constexpr CodePair decoded_pair(abi::DType code, int pair) {
  if (abi::bits_of(code) == 4) return {pair, pair + 4};
  return {2 * pair, 2 * pair + 1};
}

/// `code`: a type of 4, 6 or 8 bits but e8m0; `number`: float16 or bfloat16. `offset` is of
/// integers; `has_zero`: it has a zero point.
template <abi::DType code, abi::DType number, bool has_zero = false>
__device__ __forceinline__ void decode_codes(unsigned (&pairs)[codes_per_register(code) / 2],
                                             unsigned codes,
                                             const IntegerOffset<code, number>& offset) {
  using abi::DType;
  if constexpr (code == DType::int4 || code == DType::uint4)
    decode_nibble_integers<code, number, has_zero>(pairs, codes, offset);
  if constexpr (code == DType::int8 || code == DType::uint8)
    decode_bytes<code, number, has_zero>(pairs, codes, offset);
  if constexpr (code == DType::float4_e2m1fn) decode_e2m1<number>(pairs, codes);
  if constexpr (abi::bits_of(code) == 6) decode_six_bits<code, number>(pairs, codes);
  if constexpr (code == DType::float8_e4m3fn) decode_e4m3<number>(pairs, codes);
  if constexpr (code == DType::float8_e5m2) decode_e5m2<number>(pairs, codes);
}

}  // namespace gemmery::device
