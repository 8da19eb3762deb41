// SPDX-License-Identifier: Apache-2.0
// Repacked operands, host half: their layout, the distribution of the copy over blocks, the banks
// of a transposed tile. The kernels themselves: sm90/repacking_emulated_test.cpp.
#include "providers/templates/repacking.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>

namespace gemmery::templates {
namespace {

OperandRules rules_of(DType dtype, LayoutRule a, LayoutRule b) {
  OperandRules rules;
  rules.a = repacked_rule(dtype, a);
  rules.b = repacked_rule(dtype, b);
  rules.accumulator = DType::float32;
  return rules;
}

// Lanes of a warp that access one bank for different words at a time.
int most_in_a_bank(const std::array<unsigned, 32>& addresses) {
  std::map<unsigned, std::set<unsigned>> words;
  for (const unsigned address : addresses) words[address / 4 % 32].insert(address / 4);
  std::size_t most = 0;
  for (const auto& [bank, of_bank] : words) most = std::max(most, of_bank.size());
  return static_cast<int>(most);
}

class TransposedTile : public testing::TestWithParam<int> {};

TEST_P(TransposedTile, is_written_without_bank_conflicts) {
  const int bytes = GetParam();
  for (unsigned first_row = 0; first_row < static_cast<unsigned>(abi::repack_side(bytes));
       first_row += 4) {
    for (unsigned turn = 0; turn < 4; ++turn) {
      std::array<unsigned, 32> addresses;
      for (unsigned lane = 0; lane < 32; ++lane) {
        const unsigned row = first_row + lane / 8;
        addresses[lane] =
            abi::repack_offset(row, 4 * (lane % 8) + abi::repack_word(row, turn), bytes);
      }
      EXPECT_EQ(most_in_a_bank(addresses), 1) << first_row << " " << turn;
    }
  }
}

TEST_P(TransposedTile, is_read_without_bank_conflicts) {
  const int bytes = GetParam();
  const auto per_word = static_cast<unsigned>(4 / bytes);
  const auto per_unit = static_cast<unsigned>(abi::elements_per_unit(bytes));
  for (unsigned first_line = 0; first_line < static_cast<unsigned>(abi::repack_side(bytes));
       first_line += 4) {
    for (unsigned element = 0; element < per_unit; ++element) {
      std::array<unsigned, 32> addresses;
      for (unsigned lane = 0; lane < 32; ++lane) {
        const unsigned line = first_line + lane / 8;
        addresses[lane] = abi::repack_offset(lane % 8 * per_unit + element, line / per_word, bytes);
      }
      EXPECT_EQ(most_in_a_bank(addresses), 1) << first_line << " " << element;
    }
  }
}

TEST_P(TransposedTile, has_a_place_for_every_word) {
  const int bytes = GetParam();
  std::set<unsigned> places;
  const auto rows = static_cast<unsigned>(abi::repack_side(bytes));
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned word = 0; word < 32; ++word) places.insert(abi::repack_offset(row, word, bytes));
  EXPECT_EQ(places.size(), 32 * rows);
  EXPECT_EQ(*places.rbegin(), rows * abi::repack_row_bytes - 4);
}

INSTANTIATE_TEST_SUITE_P(EveryWidth, TransposedTile, testing::Values(1, 2, 4));

TEST(Repacking, copies_have_lines_that_tma_walks) {
  struct Row {
    const char* line;
    LayoutRule layout;
    std::int64_t pitch_bytes;
    std::size_t bytes;
  };
  for (const Row& row :
       std::initializer_list<Row>{{"gemm 5x8x3 a=bf16", LayoutRule::row, 16, 5 * 16},
                                  {"gemm 5x8x9x2 a=bf16", LayoutRule::row, 32, 2 * 5 * 32},
                                  {"gemm 5x8x9x2 a=bf16/batch=0", LayoutRule::row, 32, 5 * 32},
                                  {"gemm 5x8x257 a=bf16", LayoutRule::row, 640, 5 * 640},
                                  {"gemm 5x8x3 a=bf16:c", LayoutRule::column, 16, 3 * 16},
                                  {"gemm 5x8x3 a=bf16/strides=20,3", LayoutRule::any, 16, 5 * 16},
                                  {"gemm 5x8x0 a=bf16", LayoutRule::row, 0, 0}}) {
    const GemmProblem problem = parse_problem(row.line).problem;
    const ProductOperand a =
        product_a(rules_of(DType::bfloat16, row.layout, LayoutRule::row), problem);
    EXPECT_TRUE(a.is_copy);
    EXPECT_EQ(a.copied_bytes(), row.bytes) << row.line;
    if (row.bytes == 0) continue;
    EXPECT_EQ(a.view().stride_bytes, row.pitch_bytes) << row.line;
    EXPECT_EQ(find_misfit(a), "") << row.line;
  }
}

TEST(Repacking, workspace_lies_behind_what_the_plan_asks_for) {
  const GemmProblem problem = parse_problem("gemm 5x8x9x2 a=bf16 b=bf16:c").problem;
  const OperandRules rules = rules_of(DType::bfloat16, LayoutRule::row, LayoutRule::column);
  runtime::LaunchPlan plan;
  plan.workspace_bytes = 300;
  const std::array operands{product_a(rules, problem), product_b(rules, problem)};
  const auto offsets = reserve_copies(operands, plan);
  EXPECT_EQ(offsets[0], 512U);
  EXPECT_EQ(offsets[1], 1024U);  // 512 + 320 bytes, rounded up to a multiple of 256
  EXPECT_EQ(plan.workspace_bytes, 1024U + 2 * 8 * 32);
}

TEST(Repacking, every_unit_of_a_copy_is_of_one_tile) {
  for (const char* line :
       {"gemm 1x8x1 a=bf16", "gemm 700x8x3 a=bf16", "gemm 3x8x5000 a=bf16/ld=5001",
        "gemm 1000x8x100 a=bf16/strides=2,3001", "gemm 65x8x129x3 a=bf16/strides=1001,7"}) {
    const GemmProblem problem = parse_problem(line).problem;
    const OperandRules rules = rules_of(DType::bfloat16, LayoutRule::any, LayoutRule::any);
    const ProductOperand a = product_a(rules, problem);
    const ProductOperand none{.name = "B",
                              .rule = {},
                              .source = {},
                              .matrix = {},
                              .rows = 0,
                              .columns = 0,
                              .batches = 0,
                              .is_copy = false};
    runtime::LaunchPlan plan;
    prepare_copies({OperandData{a, nullptr}, OperandData{none, nullptr}}, {0, 0}, plan);
    ASSERT_TRUE(plan.has_preparation) << line;
    abi::RepackParams params;
    std::memcpy(&params, plan.preparation.parameter_bytes, sizeof params);
    const abi::RepackOperand& operand = params.operand[0];
    EXPECT_EQ(params.first_tiles, plan.preparation.shape.grid[0]) << line;
    EXPECT_EQ(params.first_tiles, operand.near_tiles * operand.far_tiles * problem.l) << line;
    const unsigned near_bytes = operand.near_tiles * 16U << operand.unit_bits;
    EXPECT_GE(near_bytes, operand.near * 2) << line;
    EXPECT_LT(near_bytes - (16U << operand.unit_bits), operand.near * 2) << line;
    EXPECT_GE(operand.far_tiles * abi::far_of_tile(operand, 2), operand.far) << line;
    EXPECT_EQ(abi::lines_of(operand), problem.m) << line;
  }
}

}  // namespace
}  // namespace gemmery::templates
