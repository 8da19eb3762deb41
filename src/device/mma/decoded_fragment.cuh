// SPDX-License-Identifier: Apache-2.0
// The fragments of two mmas of 16-bit floats of which one operand has codes that are decoded in
// registers.
//
// A lane has eight adjacent k of a row of A (column of B), four lanes have 32. Products do not
// depend on which k an mma takes as which of its own, if A and B agree: they take pairs in the
// order in which codes are decoded, two pairs in each mma.
#pragma once

#include <device/abi/sm80_design.hpp>
#include <device/ptx/integer.cuh>
#include <device/tile/decode_codes.cuh>

namespace gemmery::device {

/// `parts`: rows of a lane, 2 of A (t / 4 and 8 further), 1 of B. Registers of a pair of k for all
/// parts are adjacent, as an mma takes them.
template <abi::DType code, abi::DType number, int parts>
struct DecodedCodes {
  static constexpr int words = abi::bits_of(code) / 4;  // of the eight codes of a part
  static constexpr int registers_in_all = 4 * parts;
  unsigned high[registers_in_all];

  __device__ __forceinline__ void split(const unsigned (&values)[words * parts]) {
    const unsigned none[parts]{};
    split<false>(values, none);
  }

  /// Codes of 4 bits with a table: adjacent k are decoded together.
  __device__ __forceinline__ void split(const unsigned (&values)[words * parts],
                                        const RegisterTable& table) {
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      unsigned pairs[4];
      look_up_codes(pairs, values[part], table);
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) high[pair * parts + part] = pairs[pair];
    }
  }

  /// `minus_zeros`: the negative zero point of each part, in both halves.
  template <bool has_zero = true>
  __device__ __forceinline__ void split(const unsigned (&values)[words * parts],
                                        const unsigned (&minus_zeros)[parts]) {
    constexpr int count = codes_per_register(code) / 2;
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      const IntegerOffset<code, number> offset(minus_zeros[part]);
#pragma unroll
      for (int word = 0; word < words; ++word) {
        unsigned pairs[count];
        decode_codes<code, number, has_zero>(pairs, values[part * words + word], offset);
#pragma unroll
        for (int pair = 0; pair < count; ++pair)
          high[(word * count + pair) * parts + part] = pairs[pair];
      }
    }
  }
};

/// Multiplies decoded codes by a scale for each part, in both halves of registers.
template <abi::DType code, abi::DType number, int parts>
__device__ __forceinline__ void scale_codes(DecodedCodes<code, number, parts>& decoded,
                                            const unsigned (&scales)[parts]) {
#pragma unroll
  for (int at = 0; at < DecodedCodes<code, number, parts>::registers_in_all; ++at)
    decoded.high[at] = DecodedPair<number>::multiply(decoded.high[at], scales[at % parts]);
}

/// The operand that is multiplied by decoded codes, in their order: pairs of adjacent k, or of k
/// and k + 4.
template <bool are_adjacent, int parts>
struct OrderedNumbers {
  static constexpr int registers_in_all = 4 * parts;
  unsigned high[registers_in_all];

  __device__ __forceinline__ void split(const unsigned (&values)[4 * parts]) {
#pragma unroll
    for (int part = 0; part < parts; ++part) {
#pragma unroll
      for (int pair = 0; pair < 4; ++pair)
        high[pair * parts + part] = pair_of(&values[4 * part], pair);
    }
  }

 private:
  __device__ __forceinline__ static unsigned pair_of(const unsigned* words, int pair) {
    if constexpr (are_adjacent) return words[pair];
    return ptx::prmt(words[pair / 2], words[pair / 2 + 2], pair % 2 == 0 ? 0x5410U : 0x7632U);
  }
};

/// What a fragment of a design's operand becomes. `Other`: in kernels that decode nothing.
template <const abi::Sm80Design& design, abi::Side side, class Other>
struct FactorOf {
  using Type = Other;
};
template <const abi::Sm80Design& design, abi::Side side, class Other>
requires(abi::is_mixed(design)) struct FactorOf<design, side, Other> {
  static constexpr bool is_code =
      side == abi::Side::a ? abi::decodes_a(design) : abi::decodes_b(design);
  static constexpr int parts = side == abi::Side::a ? 2 : 1;
  static constexpr abi::DType code = abi::decodes_a(design) ? design.a : design.b;
  template <bool decodes, int = 0>
  struct Choice {
    using Type = DecodedCodes<code, abi::multiplied_type(design), parts>;
  };
  template <int unused>
  struct Choice<false, unused> {
    using Type = OrderedNumbers<abi::decodes_adjacent_k(design), parts>;
  };
  using Type = typename Choice<is_code>::Type;
};

}  // namespace gemmery::device
