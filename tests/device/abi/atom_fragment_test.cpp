// SPDX-License-Identifier: Apache-2.0
// 8-bit operands loaded to the registers of a wgmma: the elements of each lane, and the banks of
// every access.
#include "device/abi/atom_fragment.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <vector>

namespace gemmery::abi {
namespace {

constexpr unsigned lanes = 32;
constexpr unsigned atom_lines = 128;
constexpr unsigned chunks = fragment_line_bytes / fragment_rows;

// An 8-bit number for each pair of k and row.
std::uint8_t number(unsigned k, unsigned row) {
  return static_cast<std::uint8_t>(k * 7 + row * 31 + k * row);
}

// An atom as written by TMA: a line for each k, its chunks of 16 bytes swizzled.
std::vector<std::uint8_t> make_atom() {
  std::vector<std::uint8_t> atom(atom_lines * fragment_line_bytes);
  for (unsigned k = 0; k < atom_lines; ++k)
    for (unsigned row = 0; row < fragment_line_bytes; ++row)
      atom[k * fragment_line_bytes + ((row / 16) ^ (k % 8)) * 16 + row % 16] = number(k, row);
  return atom;
}

// ldmatrix.x4.trans of 16-bit elements (PTX ISA): lane 8 j + i has the address of line i of matrix
// j, and lane t receives from each matrix the elements of lines 2 (t % 4) and the next at t / 4.
std::array<std::uint32_t, 4> load_transposed(const std::vector<std::uint8_t>& atom, unsigned first,
                                             unsigned chunk, unsigned lane) {
  std::array<std::uint32_t, 4> words{};
  for (unsigned matrix = 0; matrix < 4; ++matrix) {
    for (unsigned byte = 0; byte < 4; ++byte) {
      const unsigned giver = 8 * matrix + 2 * (lane % 4) + byte / 2;
      const unsigned at = first + fragment_offset(giver, chunk) + 2 * (lane / 4) + byte % 2;
      words[matrix] |= std::uint32_t{atom[at]} << 8 * byte;
    }
  }
  return words;
}

std::uint32_t prmt(std::uint32_t low, std::uint32_t high, unsigned selector) {
  const std::uint64_t bytes = std::uint64_t{high} << 32 | low;
  std::uint32_t word = 0;
  for (unsigned byte = 0; byte < 4; ++byte)
    word |= static_cast<std::uint32_t>(bytes >> 8 * (selector >> 4 * byte & 7U) & 0xffU)
            << 8 * byte;
  return word;
}

// A wgmma's registers of A (PTX ISA): 0 and 1 have k from 4 (t % 4) on, 2 and 3 the same plus 16; 0
// and 2 belong to row t / 4, 1 and 3 to row t / 4 + 8, which are adjacent rows here.
TEST(AtomFragment, registers_hold_four_k_of_adjacent_rows) {
  const std::vector<std::uint8_t> atom = make_atom();
  for (unsigned step = 0; step < atom_lines / fragment_k; ++step) {
    for (unsigned chunk = 0; chunk < chunks; ++chunk) {
      for (unsigned lane = 0; lane < lanes; ++lane) {
        const auto words =
            load_transposed(atom, step * fragment_k * fragment_line_bytes, chunk, lane);
        const FragmentSelectors selectors = fragment_selectors(lane);
        for (unsigned index = 0; index < 4; ++index) {
          const unsigned half = index / 2;
          const unsigned second = index % 2;
          const std::uint32_t word = prmt(words[2 * half], words[2 * half + 1],
                                          second ? selectors.second : selectors.first);
          for (unsigned byte = 0; byte < 4; ++byte) {
            const unsigned k = step * fragment_k + 16 * half + 4 * (lane % 4) + byte;
            const unsigned row = chunk * fragment_rows + 2 * (lane / 4) + second;
            ASSERT_EQ(static_cast<std::uint8_t>(word >> 8 * byte), number(k, row))
                << "k " << k << ", row " << row << ", lane " << lane;
          }
        }
      }
    }
  }
}

// ldmatrix reads one matrix at a time: eight lines of 16 bytes, in all 32 banks.
TEST(AtomFragment, no_matrix_has_a_bank_conflict) {
  for (unsigned chunk = 0; chunk < chunks; ++chunk) {
    for (unsigned matrix = 0; matrix < 4; ++matrix) {
      std::set<unsigned> banks;
      for (unsigned line = 0; line < 8; ++line)
        for (unsigned word = 0; word < 4; ++word)
          banks.insert((fragment_offset(8 * matrix + line, chunk) / 4 + word) % 32);
      EXPECT_EQ(banks.size(), 32U) << "chunk " << chunk << ", matrix " << matrix;
    }
  }
}

TEST(AtomFragment, each_line_is_read_once) {
  std::set<unsigned> read;
  for (unsigned lane = 0; lane < lanes; ++lane) read.insert(fragment_line(lane));
  EXPECT_EQ(read.size(), fragment_k);
  EXPECT_EQ(*read.rbegin(), fragment_k - 1);
}

}  // namespace
}  // namespace gemmery::abi
