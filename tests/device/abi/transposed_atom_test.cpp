// SPDX-License-Identifier: Apache-2.0
// Transposition in shared memory: the position of each element, and the banks of every access.
#include "device/abi/transposed_atom.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace gemmery::abi {
namespace {

using Atom = std::vector<std::uint8_t>;

constexpr unsigned line_bytes = transposed_line_bytes;

unsigned swizzled(unsigned line, unsigned byte) {
  return line * line_bytes + ((byte / 16) ^ (line % 8)) * 16 + byte % 16;
}

// Checks that the words which a warp's lanes access at once are in different banks.
template <class Offset>
void expect_no_conflict(const Offset& offset_of) {
  std::set<unsigned> banks;
  for (unsigned lane = 0; lane < 32; ++lane) banks.insert(offset_of(lane) / 4 % 32);
  EXPECT_EQ(banks.size(), 32U);
}

std::uint8_t permute(std::uint32_t low, std::uint32_t high, unsigned digit) {
  const std::uint64_t bytes = std::uint64_t{high} << 32 | low;
  return static_cast<std::uint8_t>(bytes >> 8 * digit);
}
std::uint32_t prmt(std::uint32_t low, std::uint32_t high, unsigned selector) {
  std::uint32_t word = 0;
  for (unsigned byte = 0; byte < 4; ++byte)
    word |= std::uint32_t{permute(low, high, selector >> 4 * byte & 7U)} << 8 * byte;
  return word;
}

std::uint32_t word_at(const Atom& atom, unsigned offset) {
  std::uint32_t word = 0;
  for (unsigned byte = 0; byte < 4; ++byte) word |= std::uint32_t{atom[offset + byte]} << 8 * byte;
  return word;
}
void put_word(Atom& atom, unsigned offset, std::uint32_t word) {
  for (unsigned byte = 0; byte < 4; ++byte)
    atom[offset + byte] = static_cast<std::uint8_t>(word >> 8 * byte);
}

// As copy/transposed_atom.cuh transposes a block of 4x4.
std::array<std::uint32_t, 4> transpose_block(const std::array<std::uint32_t, 4>& words,
                                             const TransposingSelectors& selectors) {
  std::array<std::uint32_t, 4> turned{};
  for (unsigned pair = 0; pair < 2; ++pair) {
    const std::uint32_t first = prmt(words[0], words[1], selectors.pairs[pair]);
    const std::uint32_t second = prmt(words[2], words[3], selectors.pairs[pair]);
    for (unsigned row = 0; row < 2; ++row)
      turned[2 * pair + row] = prmt(first, second, selectors.words[row]);
  }
  return turned;
}

// An 8-bit number for each pair of k and row.
std::uint8_t number(unsigned k, unsigned row) {
  return static_cast<std::uint8_t>(k * 7 + row * 31 + k * row);
}

TEST(TransposedAtom, bytes_go_to_their_mirror_images) {
  Atom atom(128 * line_bytes);
  for (unsigned k = 0; k < 128; ++k)
    for (unsigned row = 0; row < 128; ++row) atom[swizzled(k, row)] = number(k, row);
  for (unsigned pair = 0; pair < square_pairs; ++pair) {
    std::map<unsigned, std::uint32_t> written;  // all reads of a pair come first
    for (unsigned which = 0; which < 2; ++which) {
      for (unsigned half = 0; half < 2; ++half) {
        for (unsigned lane = 0; lane < 32; ++lane) {
          const TransposingLane place = transposing_lane(lane);
          const Square square = square_of(pair, which);
          std::array<std::uint32_t, 4> words{};
          for (unsigned step = 0; step < 4; ++step)
            words[step] = word_at(atom, read_offset(place, square, half, step));
          const auto turned = transpose_block(words, transposing_selectors(place));
          for (unsigned step = 0; step < 4; ++step)
            EXPECT_TRUE(
                written.emplace(write_offset(place, square, half, step), turned[step]).second);
        }
      }
    }
    for (const auto& [offset, word] : written) put_word(atom, offset, word);
  }
  for (unsigned k = 0; k < 128; ++k)
    for (unsigned row = 0; row < 128; ++row)
      ASSERT_EQ(atom[swizzled(row, k)], number(k, row)) << k << ", " << row;
}

TEST(TransposedAtom, pairs_of_squares_cover_an_atom_and_are_their_own_mirror_images) {
  std::set<std::pair<unsigned, unsigned>> all;
  for (unsigned pair = 0; pair < square_pairs; ++pair) {
    std::set<std::pair<unsigned, unsigned>> squares;
    std::set<std::pair<unsigned, unsigned>> mirrored;
    for (unsigned which = 0; which < 2; ++which) {
      const Square square = square_of(pair, which);
      squares.emplace(square.k, square.row);
      mirrored.emplace(square.row, square.k);
      EXPECT_TRUE(all.emplace(square.k, square.row).second) << pair;
    }
    EXPECT_EQ(squares, mirrored) << pair;
  }
  EXPECT_EQ(all.size(), 4U * 4U);
}

TEST(TransposedAtom, no_access_to_bytes_has_a_bank_conflict) {
  for (unsigned pair = 0; pair < square_pairs; ++pair) {
    for (unsigned which = 0; which < 2; ++which) {
      const Square square = square_of(pair, which);
      for (unsigned half = 0; half < 2; ++half) {
        for (unsigned step = 0; step < 4; ++step) {
          expect_no_conflict([&](unsigned lane) {
            return read_offset(transposing_lane(lane), square, half, step);
          });
          expect_no_conflict([&](unsigned lane) {
            return write_offset(transposing_lane(lane), square, half, step);
          });
        }
      }
    }
  }
}

TEST(TransposedAtom, words_go_to_their_mirror_images_without_a_bank_conflict) {
  for (unsigned step = 0; step < 32; ++step) {
    std::set<unsigned> read;
    std::set<unsigned> written;
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned k = lane ^ step;
      EXPECT_EQ(diagonal_offset(lane) ^ read_step(step), swizzled(k, lane * 4));
      EXPECT_EQ(diagonal_offset(lane) ^ write_step(step), swizzled(lane, k * 4));
      read.insert(diagonal_offset(lane) ^ read_step(step));
      written.insert(diagonal_offset(lane) ^ write_step(step));
    }
    EXPECT_EQ(read, written) << "a step leaves what others read alone";
    expect_no_conflict([&](unsigned lane) { return diagonal_offset(lane) ^ read_step(step); });
    expect_no_conflict([&](unsigned lane) { return diagonal_offset(lane) ^ write_step(step); });
  }
}

}  // namespace
}  // namespace gemmery::abi
