// SPDX-License-Identifier: Apache-2.0
// Loads a consumer's rows of codes from shared memory and decodes them to the A registers of wgmmas
// (abi/code_fragment.hpp has the addresses, tile/decode_codes.cuh the arithmetic). Zero points of
// rows are subtracted from them, and scales multiply them where that is exact.
#pragma once

#include <device/abi/code_fragment.hpp>
#include <device/abi/sm90_design.hpp>
#include <device/ptx/integer.cuh>
#include <device/ptx/shared_memory.cuh>
#include <device/tile/decode_codes.cuh>
#include <device/tile/operand_fragments.cuh>

namespace gemmery::device {

template <const abi::Sm90Design& design>
class DecodedOperand {
  static constexpr bool has_scales = abi::scales_codes(design);
  static constexpr bool has_zeros = design.a_scales.has_zero_point;

 public:
  static constexpr int blocks = abi::blocks_per_consumer(design);
  using Fragments = OperandFragments<blocks>;

  /// Of each block's rows of a lane, numbers of the decoded type in both halves.
  struct Companions {
    unsigned scales[has_scales ? blocks : 1][2];
    unsigned minus_zeros[has_zeros ? blocks : 1][2];
  };

  /// `first_row`: the consumer's first row in the tile; `thread` of the warpgroup; `companions`:
  /// the shared address of those of all stages, if there are any.
  __device__ DecodedOperand(unsigned first_row, unsigned thread, unsigned companions)
      : first_(abi::code_offset(bits,
                                first_row + thread / 32 * abi::sm90_warp_rows +
                                    abi::first_code_row(has_row_pairs, thread % 32),
                                thread % 32, 0, 0)),
        selector_(selector_of(thread % 32)),
        companions_(companions + (first_row + thread / 32 * abi::sm90_warp_rows +
                                  abi::first_row_of_lane(design, thread % 32)) *
                                     4) {}

  /// Reads the codes of the step-th wgmmas of a stage; `stage`: the shared address of its A. Of
  /// each block both units of the row that is read first, then those of the other one.
  __device__ __forceinline__ void read(Fragments& words, unsigned stage, unsigned step) const {
    const unsigned first =
        stage + (first_ ^ abi::code_step_flip(bits, step)) + abi::code_step_offset(bits, step);
    const unsigned second = has_row_pairs ? first ^ line_bytes : first + 8 * line_bytes;
#pragma unroll
    for (unsigned block = 0; block < blocks; ++block) {
      const unsigned rows = block * abi::sm90_block_rows * line_bytes;
#pragma unroll
      for (unsigned half = 0; half < 2; ++half) {
        const unsigned offset = rows + half * bits;
        words.block[block][half] = ptx::ld_shared<unit_bytes>(first + offset);
        words.block[block][2 + half] = ptx::ld_shared<unit_bytes>(second + offset);
      }
    }
  }

  /// Reads those of a step's codes, in the stage-th stage, if there are any.
  __device__ __forceinline__ void read_companions(Companions& companions, unsigned stage,
                                                  unsigned step) const {
    if constexpr (has_scales || has_zeros) {
      constexpr unsigned parts = abi::scale_parts(design);
      const unsigned part = step / (steps / parts);
      const unsigned at = companions_ + (stage * parts + part) * abi::part_values(design) * 4;
      if constexpr (has_scales) read_rows(companions.scales, at);
      if constexpr (has_zeros) read_rows(companions.minus_zeros, at + zeros_at);
    }
  }

  /// Decodes the codes that were read to the fragments that wgmmas take.
  __device__ __forceinline__ void arrange(Fragments& fragments, const Fragments& words,
                                          const Companions& companions) const {
#pragma unroll
    for (int block = 0; block < blocks; ++block) {
      unsigned(&fragment)[4] = fragments.block[block];
      decode(fragment, words.block[block]);
#pragma unroll
      for (int at = 0; at < 4; ++at) {  // exact
        if constexpr (has_zeros)
          fragment[at] = Pair::add(fragment[at], companions.minus_zeros[block][at % 2]);
        if constexpr (has_scales)
          fragment[at] = Pair::multiply(fragment[at], companions.scales[block][at % 2]);
      }
    }
  }

 private:
  static constexpr unsigned bits = abi::bits_of(design.a);
  static constexpr unsigned line_bytes = abi::code_line_bytes(bits);
  static constexpr int unit_bytes = bits / 4;
  static constexpr bool has_row_pairs = abi::has_row_pairs(design);
  static_assert(line_bytes == abi::a_line_bytes(design));
  static constexpr unsigned steps = abi::code_line_k / abi::code_step_k;
  static constexpr unsigned zeros_at = (abi::part_values(design) - abi::row_zeros(design)) * 4;
  using Offset = IntegerOffset<design.a, design.b>;
  using Pair = DecodedPair<design.b>;

  /// Selects the unit of the lane's first row, then that of its second one.
  __device__ static unsigned selector_of(unsigned lane) {
    const bool is_swapped = abi::reads_second_row_first(has_row_pairs, lane);
    if constexpr (bits == 8) return is_swapped ? 0x1054U : 0x5410U;
    return is_swapped ? 0x0004U : 0x0040U;
  }

  __device__ __forceinline__ static void read_rows(unsigned (&values)[blocks][2], unsigned at) {
#pragma unroll
    for (unsigned block = 0; block < blocks; ++block) {
#pragma unroll
      for (unsigned second = 0; second < 2; ++second)
        values[block][second] = ptx::ld_shared<4>(
            at + (block * abi::sm90_block_rows + second * abi::second_row_distance(design)) * 4);
    }
  }

  /// Registers of both rows for the first eight k, then for the last eight.
  __device__ __forceinline__ void decode(unsigned (&fragment)[4],
                                         const unsigned (&words)[4]) const {
    const unsigned low = ptx::prmt(words[0], words[2], selector_);
    const unsigned high = ptx::prmt(words[1], words[3], selector_);
    if constexpr (bits == 8)
      decode_bytes_of(fragment, low, high);
    else
      decode_nibbles_of(fragment, ptx::prmt(low, high, 0x5410U));
  }

  __device__ __forceinline__ static void decode_bytes_of(unsigned (&fragment)[4], unsigned low,
                                                         unsigned high) {
    unsigned pairs[2][2];
    decode_codes<design.a, design.b>(pairs[0], low, Offset());
    decode_codes<design.a, design.b>(pairs[1], high, Offset());
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      fragment[2 * half] = pairs[half][0];
      fragment[2 * half + 1] = pairs[half][1];
    }
  }

  /// Even k of two units are decoded together, and their odd k.
  __device__ __forceinline__ static void decode_nibbles_of(unsigned (&fragment)[4],
                                                           unsigned codes) {
    unsigned pairs[4];
    decode_codes<design.a, design.b>(pairs, codes, Offset());
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      fragment[row] = ptx::prmt(pairs[2 * row], pairs[2 * row + 1], 0x5410U);
      fragment[2 + row] = ptx::prmt(pairs[2 * row], pairs[2 * row + 1], 0x7632U);
    }
  }

  unsigned first_;
  unsigned selector_;
  unsigned companions_;
};

}  // namespace gemmery::device
