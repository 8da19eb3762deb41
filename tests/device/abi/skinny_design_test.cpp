// SPDX-License-Identifier: Apache-2.0
// The arithmetic that host and device code share: values that follow from a design, the layout of
// A, and the designs that are refused.
#include "device/abi/skinny_design.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace gemmery::abi {
namespace {

constexpr SkinnyDesign along_k{.a = DType::bfloat16,
                               .b = DType::bfloat16,
                               .c = DType::bfloat16,
                               .out = DType::bfloat16,
                               .accumulator = DType::float32,
                               .b_major = Major::k,
                               .a_vector_bytes = 16,
                               .b_vector_bytes = 16,
                               .c_vector_bytes = 16,
                               .out_vector_bytes = 16,
                               .rows = 4,
                               .threads = 128,
                               .loads = 4,
                               .lanes = 32,
                               .slots = 3,
                               .splits_k = false,
                               .has_c = false};
static_assert(is_legal(along_k));

constexpr SkinnyDesign along_columns = [] {
  SkinnyDesign design = along_k;
  design.b_major = Major::extent;
  design.threads = 256;
  design.lanes = 8;
  return design;
}();
static_assert(is_legal(along_columns));

SkinnyDesign of_type(SkinnyDesign design, DType operand, DType accumulator) {
  design.a = design.b = operand;
  design.c = design.out = design.accumulator = accumulator;
  return design;
}

TEST(SkinnyDesign, tiles_and_steps_follow_from_lanes_and_loads) {
  EXPECT_EQ(tile_columns(along_k), 4 * 4) << "warps by loads";
  EXPECT_EQ(step_k(along_k), 32 * 8) << "lanes by elements of a load";
  EXPECT_EQ(split_unit(along_k), 3 * step_k(along_k));
  EXPECT_EQ(accumulators_per_thread(along_k), 4 * 4);
  EXPECT_EQ(tile_columns(along_columns), 8 * 8);
  EXPECT_EQ(step_k(along_columns), 256 / 8 * 4);
  EXPECT_EQ(accumulators_per_thread(along_columns), 4 * 8);
  EXPECT_EQ(parts_of_tile(along_columns), 32);
  EXPECT_EQ(bytes_under_way(along_k), 128 * 4 * 2 * 16) << "all slots but one";
}

TEST(SkinnyDesign, four_bytes_of_k_are_a_word_where_a_load_has_as_many) {
  const SkinnyDesign bytes = of_type(along_k, DType::int8, DType::int32);
  EXPECT_EQ(k_per_word(bytes), 4);
  SkinnyDesign narrow = bytes;
  narrow.b_vector_bytes = 2;
  EXPECT_EQ(k_per_word(narrow), 2);
  SkinnyDesign one_by_one = bytes;
  one_by_one.b_vector_bytes = 0;
  EXPECT_EQ(k_per_word(one_by_one), 1);
  EXPECT_EQ(k_per_word(of_type(along_columns, DType::int8, DType::int32)), 4);
}

// Each word of a panel has a different offset, and words that a thread reads at once are contiguous
// and aligned.
void expect_places(const SkinnyDesign& design) {
  std::vector<int> places;
  const int k_of_run = run_words(design) * k_per_word(design);
  for (int row = 0; row < design.rows; ++row) {
    for (int k = 0; k < panel_k(design); k += k_per_word(design)) {
      const int place = panel_place(design, row, k);
      places.push_back(place);
      const int in_run = k % k_of_run / k_per_word(design);
      EXPECT_EQ(place - in_run, panel_place(design, row, k / k_of_run * k_of_run));
      EXPECT_EQ((place - in_run) % run_words(design), 0);
    }
  }
  std::ranges::sort(places);
  for (int at = 0; at < static_cast<int>(places.size()); ++at) ASSERT_EQ(places[at], at);
  EXPECT_LE(static_cast<int>(places.size()) * word_bytes(design), shared_bytes(design));
}

TEST(SkinnyDesign, words_of_a_panel_have_places_of_their_own) {
  for (const SkinnyDesign& shape : {along_k, along_columns}) {
    for (const int rows : {1, 2, 4, 8}) {
      SkinnyDesign design = shape;
      design.rows = rows;
      expect_places(design);
      expect_places(of_type(design, DType::float64, DType::float64));
      expect_places(of_type(design, DType::int8, DType::int32));
      expect_places(of_type(design, DType::float32, DType::float32));
      design.a_vector_bytes = 0;
      expect_places(design);
    }
  }
}

TEST(SkinnyDesign, registers_decide_how_many_blocks_share_a_multiprocessor) {
  EXPECT_GE(least_blocks_per_multiprocessor(along_k), 3);
  for (const SkinnyDesign& design : {along_k, along_columns})
    for (const int architecture : {80, 90, 100, 121}) {
      const int blocks = least_blocks_per_multiprocessor(design, architecture);
      EXPECT_LE(blocks * design.threads * register_estimate(design, architecture), 65536);
    }
}

TEST(SkinnyDesign, later_targets_need_more_registers_along_k) {
  EXPECT_GT(register_estimate(along_k, 100), register_estimate(along_k, 90));
  EXPECT_EQ(register_estimate(along_columns, 100), register_estimate(along_columns, 90));
  SkinnyDesign scattered = along_k;
  scattered.b_vector_bytes = 0;
  EXPECT_GE(register_estimate(scattered, 100), 128);
  EXPECT_LT(register_estimate(scattered, 90), 104);
}

TEST(SkinnyDesign, a_target_may_have_too_few_registers_for_a_large_block) {
  SkinnyDesign large = along_k;
  large.rows = 8;
  large.threads = 512;
  large.slots = 2;
  EXPECT_TRUE(is_legal(large));
  EXPECT_TRUE(has_registers(large, 90));
  EXPECT_FALSE(has_registers(large, 100));
  large.threads = 256;
  EXPECT_TRUE(has_registers(large, 100));
}

TEST(SkinnyDesign, the_field_at_fault_is_named) {
  const auto fault = [](const std::function<void(SkinnyDesign&)>& change) {
    SkinnyDesign design = along_k;
    change(design);
    return find_fault(design);
  };
  using enum SkinnyFault;
  EXPECT_EQ(fault([](SkinnyDesign& d) { d.a = DType::float64; }), operand_types);
  EXPECT_EQ(fault([](SkinnyDesign& d) { d.out = DType::int8; }), out_type);
  EXPECT_EQ(fault([](SkinnyDesign& d) { d.b_vector_bytes = 1; }), b_vector_bytes);
  EXPECT_EQ(fault([](SkinnyDesign& d) { d.out_vector_bytes = 32; }), out_vector_bytes);
  EXPECT_EQ(fault([](SkinnyDesign& d) { d.rows = 3; }), SkinnyFault::rows);
  EXPECT_EQ(fault([](SkinnyDesign& d) { d.threads = 96; }), threads);
  EXPECT_EQ(fault([](SkinnyDesign& d) { d.loads = 16; }), loads);
  EXPECT_EQ(fault([](SkinnyDesign& d) { d.lanes = 16; }), lanes);
  EXPECT_EQ(fault([](SkinnyDesign& d) { d.slots = 1; }), slots);
  SkinnyDesign wide = of_type(along_columns, DType::int8, DType::int32);
  wide.rows = 8;
  EXPECT_EQ(find_fault(wide), accumulators) << "16 columns by 8 rows";
  SkinnyDesign e4m3 = along_k;
  e4m3.rows = 8;
  e4m3.b = DType::float8_e4m3fn;
  e4m3.slots = 3;
  EXPECT_EQ(find_fault(e4m3), none);
  e4m3.slots = 4;
  EXPECT_EQ(find_fault(e4m3), slots) << "spills on sm_120";
}

}  // namespace
}  // namespace gemmery::abi
