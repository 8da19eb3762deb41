// SPDX-License-Identifier: Apache-2.0
// Codes loaded to the registers of a wgmma of 16-bit floats: the codes of each lane, and the banks
// of every access.
#include "device/abi/code_fragment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

namespace gemmery::abi {
namespace {

constexpr unsigned lanes = 32;
constexpr unsigned tile_rows = 64;
constexpr unsigned warp_rows = 16;

// A tile as written by TMA: for each byte of it, the row and the first k of its codes.
struct Place {
  unsigned row;
  unsigned k;
};
std::vector<Place> make_tile(unsigned bits) {
  const unsigned line = code_line_bytes(bits);
  std::vector<Place> tile(tile_rows * line);
  for (unsigned row = 0; row < tile_rows; ++row)
    for (unsigned byte = 0; byte < line; ++byte) {
      const unsigned at = row * line + byte;
      // The swizzle as wide as a line (PTX ISA): of the address in units of 16 bytes, the lowest
      // bits are exclusive-ored with those from bit 3 on.
      const unsigned flip = (at / 128) % (line / 16) * 16;
      tile[at ^ flip] = {row, byte * 8 / bits};
    }
  return tile;
}

// Calls visit(lane, step, half, second, address) for every access of a warp.
template <class Visit>
void for_each_access(unsigned bits, bool has_row_pairs, unsigned first_row, Visit&& visit) {
  const unsigned line = code_line_bytes(bits);
  for (unsigned step = 0; step < code_line_k / code_step_k; ++step)
    for (unsigned half = 0; half < 2; ++half)
      for (unsigned second = 0; second < 2; ++second)
        for (unsigned lane = 0; lane < lanes; ++lane) {
          const unsigned row = first_row + first_code_row(has_row_pairs, lane);
          const unsigned first = (code_offset(bits, row, lane, 0, 0) ^ code_step_flip(bits, step)) +
                                 code_step_offset(bits, step) + half * bits;
          const unsigned other = has_row_pairs ? first ^ line : first + 8 * line;
          visit(lane, step, half, second, second == 0 ? first : other);
        }
}

TEST(CodeFragment, lanes_have_the_codes_that_a_wgmma_takes) {
  for (const unsigned bits : {4U, 8U})
    for (const bool has_row_pairs : {false, true})
      for (unsigned first_row = 0; first_row < tile_rows; first_row += warp_rows) {
        const std::vector<Place> tile = make_tile(bits);
        for_each_access(
            bits, has_row_pairs, first_row,
            [&](unsigned lane, unsigned step, unsigned half, unsigned second, unsigned address) {
              const bool is_swapped = reads_second_row_first(has_row_pairs, lane);
              const unsigned of_lane = (second != 0) == is_swapped ? 0 : 1;
              const unsigned row = has_row_pairs ? lane / 4 * 2 + of_lane : lane / 4 + 8 * of_lane;
              ASSERT_EQ(tile[address].row, first_row + row);
              ASSERT_EQ(tile[address].k, 16 * step + 8 * half + lane % 4 * 2);
            });
      }
}

TEST(CodeFragment, no_access_has_a_bank_conflict) {
  for (const unsigned bits : {4U, 8U})
    for (const bool has_row_pairs : {false, true}) {
      std::array<std::set<unsigned>, 32> words;  // of each bank, in one access
      for_each_access(bits, has_row_pairs, warp_rows,
                      [&](unsigned lane, unsigned, unsigned, unsigned, unsigned address) {
                        if (lane == 0) std::ranges::fill(words, std::set<unsigned>{});
                        words[address / 4 % 32].insert(address / 4);
                        ASSERT_LE(words[address / 4 % 32].size(), 1U)
                            << bits << " bits, lane " << lane << ", address " << address;
                      });
    }
}

}  // namespace
}  // namespace gemmery::abi
