// SPDX-License-Identifier: Apache-2.0
// Parts of float32 operands: the products, the layout of parts, the banks of every access.
#include "device/abi/operand_parts.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

#include "device/abi/sm90_faults.hpp"

namespace gemmery::abi {
namespace {

// TMA's swizzles for lines with the swizzle's number of bytes; the unit is 16 bytes.
unsigned in_128_bytes(unsigned line, unsigned byte) {
  return line * 128 + (byte / 16 ^ line % 8) * 16 + byte % 16;
}
unsigned in_64_bytes(unsigned line, unsigned byte) {
  return line * 64 + (byte / 16 ^ line / 2 % 4) * 16 + byte % 16;
}

// The lanes of a phase, which access 128 bytes together, access each bank once.
template <class Offset>
void expect_no_conflict(unsigned lanes, unsigned bytes, const Offset& offset_of) {
  for (unsigned first = 0; first < 32; first += lanes) {
    std::set<unsigned> banks;
    for (unsigned lane = first; lane < first + lanes; ++lane)
      for (unsigned word = 0; word < bytes / 4; ++word)
        banks.insert((offset_of(split_lane(lane)) / 4 + word) % 32);
    EXPECT_EQ(banks.size(), 32U);
  }
}

TEST(OperandParts, lanes_read_all_of_a_unit_and_write_each_number_where_wgmma_finds_it) {
  std::map<unsigned, std::pair<unsigned, unsigned>> numbers;  // by offset of float32
  for (unsigned line = 0; line < lines_per_unit; ++line)
    for (unsigned index = 0; index < 32; ++index)
      numbers[in_128_bytes(line, 4 * index)] = {line, index};
  std::set<unsigned> read;
  for (unsigned step = 0; step < split_steps; ++step) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned word = 0; word < 4; ++word) {
        const unsigned from = float_offset(split_lane(lane), step) + 4 * word;
        EXPECT_TRUE(read.insert(from).second);
        const auto [line, index] = numbers.at(from);
        EXPECT_EQ(bf16_offset(split_lane(lane), step) + 2 * word, in_64_bytes(line, 2 * index));
      }
    }
  }
  EXPECT_EQ(read.size() * 4, split_unit_bytes);
}

TEST(OperandParts, no_access_has_a_bank_conflict) {
  for (unsigned step = 0; step < split_steps; ++step) {
    expect_no_conflict(8, 16, [&](const SplitLane& lane) { return float_offset(lane, step); });
    expect_no_conflict(16, 8, [&](const SplitLane& lane) { return bf16_offset(lane, step); });
  }
}

TEST(OperandParts, products_are_those_of_their_math_and_the_small_ones_come_first) {
  for (const MmaMath math : {MmaMath::tf32x3, MmaMath::bf16x3, MmaMath::bf16x6, MmaMath::bf16x9}) {
    std::set<std::pair<int, int>> products;
    int smallest = 2 * part_count(math);
    for (int index = 0; index < product_count(math); ++index) {
      const PartProduct product = part_product(math, index);
      EXPECT_LE(product.a + product.b, smallest);
      smallest = product.a + product.b;
      EXPECT_TRUE(products.emplace(product.a, product.b).second);
    }
    for (int a = 0; a < part_count(math); ++a) {
      for (int b = 0; b < part_count(math); ++b) {
        const bool is_formed = math == MmaMath::bf16x9 || a + b < part_count(math);
        EXPECT_EQ(products.contains({a, b}), is_formed) << a << ", " << b;
      }
    }
  }
  EXPECT_EQ(product_count(MmaMath::tf32), 1);
}

TEST(OperandParts, a_stage_has_room_for_the_parts_that_have_none_in_place) {
  Sm90Design design{.a = DType::float32,
                    .b = DType::float32,
                    .accumulator = DType::float32,
                    .math = MmaMath::bf16x3,
                    .c = DType::float32,
                    .out = DType::float32,
                    .a_major = Major::k,
                    .b_major = Major::extent,
                    .tile_m = 128,
                    .tile_n = 112,
                    .cluster_m = 1,
                    .cluster_n = 1,
                    .schedule = Schedule::cooperative,
                    .raster = {.along = Along::m, .band = 8},
                    .stages = 2,
                    .has_c = false};
  EXPECT_TRUE(is_legal(design));
  EXPECT_EQ(a_stage_bytes(design), 128 * 128);
  EXPECT_EQ(b_stage_bytes(design), 128 * 128) << "whole atoms";
  design.math = MmaMath::bf16x9;
  EXPECT_EQ(a_stage_bytes(design), 128 * (128 + 64));
  EXPECT_EQ(b_tile_bytes(design), 128 * 128);
  design.math = MmaMath::tf32x3;
  EXPECT_EQ(b_stage_bytes(design), 128 * 2 * 128);
  design.a = design.b = DType::bfloat16;
  EXPECT_EQ(find_fault(design), Sm90Fault::math);
}

}  // namespace
}  // namespace gemmery::abi
