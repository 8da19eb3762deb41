// SPDX-License-Identifier: Apache-2.0
// Valid descriptions: values, the table of valid combinations, and errors that name a field,
// without any compilation.
#include <gtest/gtest.h>

#include <gemmery/discovery.hpp>

#include <chrono>
#include <set>
#include <string>

#include "describe/combinations.hpp"
#include "describe/functor_program.hpp"
#include "tests/describe/described_gemm.hpp"
#include "tests/support/error_of.hpp"

namespace gemmery::describe::tests {
namespace {

using gemmery::tests::error_of;

bool is_row(const MathInstruction& asked) {
  for (const Combination& row : combinations())
    if (row.opcode_class == asked.opcode_class &&
        row.instruction_shape == asked.instruction_shape && row.element_a == asked.element_a &&
        row.element_b == asked.element_b && row.element_accumulator == asked.element_accumulator &&
        row.math_operation == asked.math_operation)
      return true;
  return false;
}

// The field in the error of a description.
std::string refused_field(const GemmDescription& description) {
  return error_of([&] { GemmOperationUniversal{description}; }).operand();
}

TEST(DescribeTable, row_05_equal_descriptions_are_equal_operations) {
  const GemmOperationUniversal one = operation_of({});
  const GemmOperationUniversal other = operation_of({});
  EXPECT_TRUE(one == other);
  EXPECT_TRUE(static_cast<const Kernel&>(one) == static_cast<const Kernel&>(other));
  EXPECT_EQ(one.emit(), other.emit());
  EXPECT_EQ(one.name(), other.name());
  EXPECT_EQ(to_string(one.description()), to_string(other.description()));
  EXPECT_EQ(to_string(one.description().tile_description),
            "TileDescription([64, 64, 32], 3, [2, 2, 1], MathInstruction([16, 8, 16], float16, "
            "float16, float32, TensorOp, multiply_add))");
  EXPECT_FALSE(one == operation_of({.stages = 4}));
  EXPECT_NE(one.emit(), operation_of({.stages = 4}).emit());
}

TEST(DescribeTable, row_05_an_operation_is_a_kernel_that_its_name_finds) {
  for (const Combination& row : combinations()) {
    const GemmOperationUniversal operation(description_of_row(row));
    const auto found = find_kernel(operation.name());
    ASSERT_TRUE(found.has_value()) << operation.name();
    EXPECT_EQ(*found, static_cast<const Kernel&>(operation));
    EXPECT_EQ(operation.metadata().provider, "templates");
  }
}

TEST(DescribeTable, row_22_what_is_in_the_table_builds_and_what_is_not_is_refused_by_field) {
  const std::set<std::string> fields{
      "math_instruction.opcode_class",        "math_instruction.instruction_shape",
      "math_instruction.element_a",           "math_instruction.element_b",
      "math_instruction.element_accumulator", "math_instruction.math_operation"};
  for (const Combination& row : combinations()) GemmOperationUniversal{description_of_row(row)};
  int refused = 0;
  GemmDescription description = description_of({});
  const auto begin = std::chrono::steady_clock::now();
  for (const OpcodeClass opcode_class : {OpcodeClass::Simt, OpcodeClass::TensorOp})
    for (const auto& shape : {std::array{1, 1, 1},
                              {1, 1, 4},
                              {8, 8, 4},
                              {16, 8, 4},
                              {16, 8, 8},
                              {16, 8, 16},
                              {16, 8, 32},
                              {16, 8, 64},
                              {64, 128, 16}})
      for (int a = 0; a < 10; ++a)
        for (int b = 0; b < 10; ++b)
          for (int accumulator = 0; accumulator < 10; ++accumulator)
            for (int operation = 0; operation < 10; ++operation) {
              const MathInstruction asked{shape,
                                          static_cast<Element>(a),
                                          static_cast<Element>(b),
                                          static_cast<Element>(accumulator),
                                          opcode_class,
                                          static_cast<MathOperation>(operation)};
              if (is_row(asked)) continue;
              description.tile_description.math_instruction = asked;
              if (++refused % 97 != 0) continue;  // only some, since errors are slow
              EXPECT_TRUE(fields.contains(refused_field(description))) << to_string(asked);
            }
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(refused, 2 * 9 * 10000 - static_cast<int>(combinations().size()));
  EXPECT_LT(elapsed.count() / (refused / 97.0), 10.0);
}

TEST(DescribeTable, row_22_the_documented_table_is_the_one_that_is_searched) {
  EXPECT_EQ(combinations().size(), 38U);
}

// A description with one invalid field, and the name in the error.
struct Refusal {
  const char* field;
  std::function<void(GemmDescription&)> spoil;
};

class DescribeRefusals : public testing::TestWithParam<Refusal> {};

TEST_P(DescribeRefusals, row_22_by_field) {
  GemmDescription description = description_of({});
  GetParam().spoil(description);
  EXPECT_EQ(refused_field(description), GetParam().field);
}

INSTANTIATE_TEST_SUITE_P(
    Fields, DescribeRefusals,
    testing::Values(
        Refusal{"compute_capability", [](auto& d) { d.compute_capability = 75; }},
        Refusal{"compute_capability", [](auto& d) { d.compute_capability = 81; }},
        Refusal{"A.element", [](auto& d) { d.A.element = Element::bfloat16; }},
        Refusal{"B.element", [](auto& d) { d.B.element = Element::float32; }},
        Refusal{"C.element", [](auto& d) { d.C.element = Element::int8; }},
        Refusal{"A.layout", [](auto& d) { d.A.layout = Layout::TensorNHWC; }},
        Refusal{"B.layout", [](auto& d) { d.B.layout = Layout::RowMajorInterleaved32; }},
        Refusal{"C.layout", [](auto& d) { d.C.layout = Layout::ColumnMajorInterleaved32; }},
        Refusal{"A.alignment", [](auto& d) { d.A.alignment = 16; }},
        Refusal{"A.alignment", [](auto& d) { d.A.alignment = 3; }},
        Refusal{"B.alignment", [](auto& d) { d.B.alignment = 0; }},
        Refusal{"C.alignment", [](auto& d) { d.C.alignment = 8; }},
        Refusal{"visitor", [](auto& d) { d.visitor = true; }},
        Refusal{"tile_description.cluster_shape",
                [](auto& d) {
                  d.tile_description.cluster_shape = {2, 1, 1};
                }},
        Refusal{"tile_description.threadblock_shape",
                [](auto& d) {
                  d.tile_description.threadblock_shape = {96, 64, 32};
                }},
        Refusal{"tile_description.threadblock_shape",
                [](auto& d) {
                  d.tile_description.threadblock_shape = {64, 64, 16};
                }},
        Refusal{"tile_description.threadblock_shape",
                [](auto& d) {
                  d.tile_description.threadblock_shape = {64, -64, 32};
                }},
        Refusal{"tile_description.warp_count",
                [](auto& d) {
                  d.tile_description.warp_count = {3, 2, 1};
                }},
        Refusal{"tile_description.warp_count",
                [](auto& d) {
                  d.tile_description.warp_count = {0, 2, 1};
                }},
        Refusal{"tile_description.stages", [](auto& d) { d.tile_description.stages = 1; }},
        Refusal{"tile_description.stages", [](auto& d) { d.tile_description.stages = 13; }},
        Refusal{"epilogue_functor.element_output",
                [](auto& d) { d.epilogue_functor.element_output = Element::float16; }},
        Refusal{"epilogue_functor.epilogue_vector_length",
                [](auto& d) { d.epilogue_functor.epilogue_vector_length = 2; }},
        Refusal{"epilogue_functor.element_accumulator",
                [](auto& d) { d.epilogue_functor.element_accumulator = Element::float16; }},
        Refusal{"epilogue_functor.element_compute",
                [](auto& d) { d.epilogue_functor.element_compute = Element::float64; }}));

TEST(DescribeTable, row_24_more_stages_than_shared_memory_holds_are_refused_with_the_bytes) {
  const Error error = error_of([] {
    operation_of({.tile = {256, 128, 64}, .stages = 5, .warps = {4, 2, 1}});
  });
  EXPECT_EQ(error.operand(), "tile_description.stages");
  EXPECT_EQ(error.expected(), "at most 166912 bytes of shared memory for a block");
  EXPECT_EQ(error.got(), "245760 bytes for 5 stages of [256, 128, 64]");
}

TEST(DescribeTable, row_25_a_tile_that_warps_do_not_divide_is_refused) {
  for (const auto& warps : {std::array{3, 2, 1}, {2, 0, 1}, {2, 2, 3}, {8, 8, 1}})
    EXPECT_EQ(error_of([&] { operation_of({.warps = warps}); }).operand(),
              "tile_description.warp_count");
  const TileDescription tile = description_of({.warps = {2, 1, 2}}).tile_description;
  EXPECT_EQ(tile.num_threads(), 128);
}

TEST(DescribeTable, row_26_d_is_like_c_and_alignments_over_16_bytes_are_refused) {
  const OperandRules rules =
      operation_of({.cd = Element::float16, .alignments = std::array{8, 4, 2}}).operands();
  EXPECT_EQ(rules.a.alignment, 16);
  EXPECT_EQ(rules.b.alignment, 8);
  EXPECT_EQ(rules.out.alignment, 4);
  EXPECT_EQ(rules.c, rules.out);
  const Error error = error_of([] { operation_of({.alignments = std::array{16, 8, 4}}); });
  EXPECT_EQ(error.operand(), "A.alignment");
  EXPECT_NE(error.expected().find("at most 8 elements of float16 (16 bytes)"), std::string::npos);
}

TEST(DescribeTable, row_47_the_four_functors_are_made_as_documented) {
  const EpilogueFunctor plain =
      LinearCombination(Element::float16, 8, Element::float32, Element::float32);
  EXPECT_EQ(plain.epilogue_vector_length, 8);
  LinearCombinationClamp(Element::int8, 16, Element::int32, Element::float32);
  FastLinearCombinationClamp(Element::int8, 16);
  LinearCombinationGeneric(epilogue::Activation::relu, Element::float32, 4, Element::float32,
                           Element::float32);
  Sketch sketch{.functor = LinearCombination(Element::float32, 2)};
  EXPECT_EQ(error_of([&] { operation_of(sketch); }).operand(),
            "epilogue_functor.epilogue_vector_length");
  EXPECT_EQ(to_string(plain), "LinearCombination(float16, 8, float32, float32)");
}

TEST(DescribeTable, row_56_a_capability_beyond_the_device_is_refused_with_both_numbers) {
  const GemmOperationUniversal operation = operation_of({.compute_capability = 90});
  DescribedGemm gemm(operation, {16, 16, 16});
  gemm.upload();
  const Error error = error_of([&] { gemm.arguments(); });
  EXPECT_EQ(error.operand(), "compute_capability");
  EXPECT_EQ(error.expected(), "at most 80, that of emulated:a100");
  EXPECT_EQ(error.got(), "90");
}

TEST(DescribeTable, row_59_visitors_and_functors_are_told_apart) {
  GemmDescription description = description_of({});
  description.visitor = true;
  EXPECT_EQ(refused_field(description), "visitor");
  description.epilogue_functor =
      EpilogueVisitTree(epilogue::Program("D = accum"), {}, Element::float32, 4);
  GemmOperationUniversal{description};
  description.visitor = false;
  EXPECT_EQ(refused_field(description), "visitor");
}

TEST(DescribeTable, row_93_activation_arguments_are_counted) {
  const GemmOperationUniversal plain = operation_of({});
  EXPECT_EQ(plain.epilogue_type(2, 3).beta, 3);
  EXPECT_EQ(error_of([&] { plain.epilogue_type(1, 0, {0.5}); }).operand(),
            "output_op.activation_args");
  const GemmOperationUniversal leaky = operation_of(
      {.functor = LinearCombinationGeneric(epilogue::Activation::leaky_relu, Element::float32, 4)});
  EXPECT_EQ(leaky.epilogue_type(1, 0, {0.5}).activation_args.size(), 1U);
  EXPECT_EQ(error_of([&] {
              leaky.epilogue_type(1, 0, {0.5, 0.5});
            }).operand(),
            "output_op.activation_args");
}

TEST(DescribeTable, row_33_the_reordered_columns_of_interleaved_filters) {
  constexpr int expected[32] = {0, 1, 8,  9,  16, 17, 24, 25, 2, 3, 10, 11, 18, 19, 26, 27,
                                4, 5, 12, 13, 20, 21, 28, 29, 6, 7, 14, 15, 22, 23, 30, 31};
  for (std::int64_t n = 0; n < 96; ++n) {
    EXPECT_EQ(reordered_column(n), n / 32 * 32 + expected[n % 32]);
    EXPECT_EQ(reordered_column(reordered_column(n)), n);
  }
}

}  // namespace
}  // namespace gemmery::describe::tests
