// SPDX-License-Identifier: Apache-2.0
// The division of a tile into units: every element is copied once, by one thread, and transposing
// stores have no bank conflict.
#include "device/copy/operand_plan.cuh"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace gemmery::device {
namespace {

enum class Direction { k, extent, none };

constexpr OperandPlan make_plan(abi::DType dtype, Direction direction, int vector_elements,
                                int extent, int k_elements, int threads) {
  const int k_per_word = dtype == abi::DType::int8 ? 4 : 1;
  const int word_bytes = dtype == abi::DType::float64 ? 8 : 4;
  return {.dtype = dtype,
          .is_along_k = direction == Direction::k,
          .is_along_extent = direction == Direction::extent,
          .vector_elements = vector_elements,
          .extent = extent,
          .k_elements = k_elements,
          .k_per_word = k_per_word,
          .word_bytes = word_bytes,
          .pitch = extent + 16 / word_bytes,
          .threads = threads};
}

// Device templates take plans by reference.
template <OperandPlan plan>
struct KeptPlan {
  static constexpr OperandPlan value = plan;
};

template <OperandPlan plan>
void expect_each_element_once() {
  using Units = OperandUnits<KeptPlan<plan>::value>;
  std::vector<int> moved(static_cast<std::size_t>(plan.extent * plan.k_elements));
  for (int thread = 0; thread < plan.threads && thread < Units::count; ++thread) {
    for (int pass = 0; pass < Units::passes; ++pass) {
      const int extent = Units::first_extent(thread) + Units::pass_extent(pass);
      const int k = Units::first_k(thread) + Units::pass_k(pass);
      for (int i = 0; i < Units::extent; ++i) {
        for (int j = 0; j < Units::k; ++j) {
          ASSERT_LT(extent + i, plan.extent);
          ASSERT_LT(k + j, plan.k_elements);
          ++moved[static_cast<std::size_t>((extent + i) * plan.k_elements + k + j)];
        }
      }
    }
  }
  for (const int times : moved) ASSERT_EQ(times, 1);
}

// The words that a warp writes with one instruction: one position in each thread's unit.
template <OperandPlan plan>
void expect_no_bank_conflicts() {
  using Units = OperandUnits<KeptPlan<plan>::value>;
  constexpr int banks = 128 / plan.word_bytes;
  for (int first = 0; first < 32; first += banks) {
    std::set<int> hit;
    for (int lane = first; lane < first + banks && lane < 32; ++lane) {
      const int word =
          Units::first_k(lane) / plan.k_per_word * plan.pitch + Units::first_extent(lane);
      hit.insert(word % banks);
    }
    EXPECT_EQ(static_cast<int>(hit.size()), std::min(banks, 32));
  }
}

using abi::DType;

TEST(OperandPlan, every_element_is_moved_once) {
  expect_each_element_once<make_plan(DType::float32, Direction::k, 4, 128, 8, 256)>();
  expect_each_element_once<make_plan(DType::float32, Direction::extent, 4, 128, 8, 256)>();
  expect_each_element_once<make_plan(DType::float32, Direction::extent, 4, 8, 64, 256)>();
  expect_each_element_once<make_plan(DType::float32, Direction::none, 1, 256, 16, 256)>();
  expect_each_element_once<make_plan(DType::float64, Direction::k, 2, 64, 16, 256)>();
  expect_each_element_once<make_plan(DType::float64, Direction::extent, 2, 128, 8, 256)>();
  expect_each_element_once<make_plan(DType::bfloat16, Direction::k, 8, 128, 16, 256)>();
  expect_each_element_once<make_plan(DType::bfloat16, Direction::k, 8, 32, 64, 256)>();
  expect_each_element_once<make_plan(DType::bfloat16, Direction::extent, 8, 8, 64, 128)>();
  expect_each_element_once<make_plan(DType::float8_e5m2, Direction::k, 16, 64, 8, 64)>();
  expect_each_element_once<make_plan(DType::float8_e5m2, Direction::extent, 16, 8, 128, 128)>();
  expect_each_element_once<make_plan(DType::int8, Direction::k, 16, 128, 32, 256)>();
  expect_each_element_once<make_plan(DType::int8, Direction::k, 1, 64, 32, 256)>();
  expect_each_element_once<make_plan(DType::int8, Direction::extent, 16, 128, 32, 256)>();
  expect_each_element_once<make_plan(DType::int8, Direction::none, 1, 8, 128, 128)>();
}

TEST(OperandPlan, transposing_stores_are_free_of_bank_conflicts) {
  expect_no_bank_conflicts<make_plan(DType::float32, Direction::k, 4, 128, 8, 256)>();
  expect_no_bank_conflicts<make_plan(DType::float32, Direction::none, 1, 64, 16, 256)>();
  expect_no_bank_conflicts<make_plan(DType::float64, Direction::k, 2, 64, 16, 256)>();
  expect_no_bank_conflicts<make_plan(DType::bfloat16, Direction::k, 8, 128, 16, 256)>();
  expect_no_bank_conflicts<make_plan(DType::bfloat16, Direction::k, 4, 128, 16, 256)>();
  expect_no_bank_conflicts<make_plan(DType::bfloat16, Direction::k, 2, 128, 16, 256)>();
  expect_no_bank_conflicts<make_plan(DType::int8, Direction::k, 16, 128, 32, 256)>();
}

TEST(OperandPlan, what_is_staged_as_it_lies_in_memory_is_copied_without_registers) {
  EXPECT_TRUE(make_plan(DType::float32, Direction::none, 1, 64, 8, 256).is_async());
  EXPECT_TRUE(make_plan(DType::float64, Direction::k, 2, 64, 8, 256).is_async());
  EXPECT_TRUE(make_plan(DType::int8, Direction::k, 4, 64, 32, 256).is_async());
  EXPECT_FALSE(make_plan(DType::int8, Direction::k, 2, 64, 32, 256).is_async())
      << "a word is not aligned";
  EXPECT_FALSE(make_plan(DType::int8, Direction::extent, 16, 64, 32, 256).is_async())
      << "bytes must be transposed";
  EXPECT_FALSE(make_plan(DType::float16, Direction::k, 8, 64, 8, 256).is_async())
      << "halves must be decoded";
}

}  // namespace
}  // namespace gemmery::device
