// SPDX-License-Identifier: Apache-2.0
// Modes of arguments: batches, arrays, split k, interleaved layouts, and reductions by hand.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/describe/described_gemm.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/no_disk_cache.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery::describe::tests {
namespace {

using DescribeModes = gemmery::tests::WithNvrtc;
using gemmery::tests::error_of;
using enum Element;

const Device device = test_device();

TEST_F(DescribeModes, row_01_all_six_duties) {
  const Sketch sketch{.tile = {128, 128, 8},
                      .stages = 4,
                      .warps = {2, 4, 1},
                      .instruction = {1, 1, 1},
                      .ab = float32,
                      .opcode_class = OpcodeClass::Simt,
                      .alignments = std::array{1, 1, 1}};
  expect_exact(sketch, {{512, 256, 128}}, {});
}

TEST_F(DescribeModes, row_58_batches_beyond_a_grid) {
  const Sketch sketch{.tile = {16, 16, 32},
                      .stages = 2,
                      .warps = {1, 1, 1},
                      .cd = float16,
                      .alignments = std::array{1, 1, 1},
                      .swizzle = SwizzlingFunctor::BatchedIdentitySwizzle};
  for (const int batch : {3, 70000}) {
    DescribedGemm gemm(operation_of(sketch), {2, 2, 2},
                       {.gemm_mode = Mode::Batched, .batch = batch});
    gemm.run();
    EXPECT_EQ(gemm.first_difference(), "");
  }
}

TEST_F(DescribeModes, row_83_extents_of_0_and_1) {
  const Sketch sketch{.alignments = std::array{1, 1, 1}};
  for (const GemmCoord& size : {GemmCoord{1, 1, 1},
                                {1, 56, 40},
                                {72, 1, 40},
                                {72, 56, 1},
                                {72, 56, 0},
                                {0, 56, 40},
                                {72, 0, 40}})
    expect_exact(sketch, {size}, {.output_op = {.alpha = 2, .beta = 3}});
  const GemmOperationUniversal operation = operation_of(sketch);
  EXPECT_EQ(error_of([&] {
              GemmArguments(operation, {-1, 1, 1}, {}, device);
            }).operand(),
            "problem_size.m");
  EXPECT_EQ(error_of([&] {
              GemmArguments(operation, {1, std::int64_t{1} << 31, 1}, {}, device);
            }).operand(),
            "problem_size.n");
}

TEST_F(DescribeModes, row_84_serial_split_k) {
  for (const OpcodeClass opcode_class : {OpcodeClass::TensorOp, OpcodeClass::Simt}) {
    const bool is_simt = opcode_class == OpcodeClass::Simt;
    const Sketch sketch{.tile = {32, 32, 32},
                        .stages = 2,
                        .warps = {1, 1, 1},
                        .instruction = is_simt ? std::array{1, 1, 1} : std::array{16, 8, 16},
                        .cd = float16,
                        .opcode_class = opcode_class};
    for (const int slices : {1, 2, 3, 4, 5, 7, 201}) {
      const GemmOptions options{.output_op = {.alpha = 1, .beta = 2}, .split_k_slices = slices};
      DescribedGemm gemm(operation_of(sketch), {40, 56, 248}, options);
      gemm.run();
      EXPECT_EQ(gemm.first_difference(), "") << slices;
      const auto first = gemm.d.memory();
      for (int repeat = 0; repeat < (slices == 7 ? 10 : 1); ++repeat) {
        gemm.run();
        EXPECT_EQ(gemm.d.memory(), first);
      }
    }
  }
}

TEST_F(DescribeModes, row_85_parallel_split_k_rounds_once) {
  for (const auto& layouts :
       {std::array{Layout::RowMajor, Layout::ColumnMajor, Layout::RowMajor},
        std::array{Layout::ColumnMajor, Layout::RowMajor, Layout::ColumnMajor}}) {
    const Sketch sketch{
        .tile = {32, 32, 32}, .warps = {1, 1, 1}, .cd = float16, .layouts = layouts};
    for (int slices = 1; slices <= 7; ++slices)
      expect_exact(sketch, {{40, 56, 248}, {8, 8, 40}},
                   {.gemm_mode = Mode::GemmSplitKParallel,
                    .output_op = {.alpha = 0.5, .beta = -1.5},
                    .split_k_slices = slices});
  }
}

TEST_F(DescribeModes, row_85_many_partial_sums_share_kernels) {
  const Sketch sketch{.tile = {32, 32, 8},
                      .stages = 2,
                      .warps = {1, 1, 1},
                      .instruction = {1, 1, 1},
                      .ab = float32,
                      .opcode_class = OpcodeClass::Simt,
                      .alignments = std::array{1, 1, 1}};
  DescribedGemm gemm(operation_of(sketch), {24, 40, 800},
                     {.gemm_mode = Mode::GemmSplitKParallel,
                      .output_op = {.alpha = 1, .beta = 2},
                      .split_k_slices = 100});
  gemm.run();
  EXPECT_EQ(gemm.first_difference(), "");
  std::set<std::string> names;
  for (const Kernel& kernel : gemm.arguments().kernels()) names.insert(kernel.name());
  EXPECT_LE(names.size(), 4U);
}

TEST_F(DescribeModes, row_85_partial_sums_beyond_all_memory_are_refused) {
  const GemmOperationUniversal operation = operation_of({.tile = {32, 32, 32},
                                                         .stages = 2,
                                                         .warps = {1, 1, 1},
                                                         .instruction = {1, 1, 4},
                                                         .ab = int8,
                                                         .accumulator = int32,
                                                         .cd = int8,
                                                         .opcode_class = OpcodeClass::Simt,
                                                         .alignments = std::array{1, 1, 1}});
  std::byte memory{};
  const std::int64_t many = std::int64_t{1} << 30;
  const Error error = error_of([&] {
    GemmArguments(operation, {many, many, 128}, {{&memory}, {&memory}, {}, {&memory}}, device,
                  {.gemm_mode = Mode::GemmSplitKParallel, .split_k_slices = 4});
  });
  EXPECT_EQ(error.kind(), ErrorKind::out_of_memory) << error.what();
  EXPECT_EQ(error.operand(), "partial sums");
}

TEST_F(DescribeModes, row_86_batched) {
  const Sketch sketch{.cd = float16};
  for (const int batch : {1, 2, 3, 5, 7}) {
    const GemmOptions options{
        .gemm_mode = Mode::Batched, .output_op = {.alpha = 1, .beta = 2}, .batch = batch};
    expect_exact(sketch, {{72, 56, 40}}, options);
  }
}

TEST_F(DescribeModes, row_86_a_bias_is_said_not_guessed) {
  for (const Layout layout : {Layout::RowMajor, Layout::ColumnMajor}) {
    const Sketch sketch{.layouts = {Layout::RowMajor, Layout::ColumnMajor, layout}};
    GemmOptions options{
        .gemm_mode = Mode::Batched, .output_op = {.alpha = 1, .beta = 2}, .batch = 3, .bias = true};
    expect_exact(sketch, {{72, 56, 40}}, options);
    Sketch activated = sketch;
    activated.functor = LinearCombinationGeneric(epilogue::Activation::relu, float32, 4);
    DescribedGemm gemm(operation_of(activated), {72, 56, 40}, options);
    gemm.run();
    EXPECT_EQ(
        gemm.first_difference([](double sum, double c) { return std::max(sum + 2 * c, 0.0); }), "");
  }
}

TEST_F(DescribeModes, row_87_arrays_of_pointers) {
  const GemmOperationUniversal operation = operation_of({.cd = float16});
  for (const int batch : {2, 3}) {
    DescribedGemm gemm(
        operation, {72, 56, 40},
        {.gemm_mode = Mode::Array, .output_op = {.alpha = 1, .beta = 2}, .batch = batch});
    gemm.run();
    EXPECT_EQ(gemm.first_difference(), "");
    EXPECT_EQ(error_of([&] {
                GemmArguments(operation, {72, 56, 40}, {{nullptr}, {nullptr}, {}, {nullptr}},
                              device, {.gemm_mode = Mode::Array, .batch = batch});
              }).operand(),
              "A");
  }
}

// Products at any addresses, all in one launch.
TEST_F(DescribeModes, row_87_arrays_are_one_launch) {
  for (const OpcodeClass opcode_class : {OpcodeClass::TensorOp, OpcodeClass::Simt}) {
    const bool is_simt = opcode_class == OpcodeClass::Simt;
    Sketch sketch{.instruction = is_simt ? std::array{1, 1, 1} : std::array{16, 8, 16},
                  .cd = float16,
                  .opcode_class = opcode_class};
    for (const bool is_generic : {false, true}) {
      if (is_generic)
        sketch.functor = LinearCombinationGeneric(epilogue::Activation::relu, float16, 8);
      for (const bool bias : {false, true}) {
        DescribedGemm gemm(operation_of(sketch), {72, 56, 40},
                           {.gemm_mode = Mode::Array,
                            .output_op = {.alpha = 1, .beta = 2},
                            .batch = 5,
                            .bias = bias});
        gemm.run();
        EXPECT_EQ(gemm.arguments().kernels().size(), 1U);
        EXPECT_EQ(gemm.first_difference([&](double sum, double c) {
          const double t = sum + 2 * c;
          return is_generic ? std::max(t, 0.0) : t;
        }),
                  "");
      }
    }
  }
}

TEST_F(DescribeModes, row_94_running_twice_gives_the_same_and_other_arguments_are_refused) {
  const GemmOperationUniversal operation = operation_of({});
  DescribedGemm gemm(operation, {72, 56, 40});
  gemm.upload();
  const GemmArguments arguments = gemm.arguments();
  gemm.launch(arguments);
  gemm.download();
  const auto first = gemm.d.memory();
  gemm.launch(arguments);
  gemm.download();
  EXPECT_EQ(gemm.d.memory(), first);
  EXPECT_EQ(error_of([&] { operation_of({.stages = 4}).run(arguments, gemm.stream()); }).operand(),
            "arguments");
}

TEST_F(DescribeModes, row_97_a_reduction_by_hand) {
  const Sketch sketch{.tile = {32, 32, 32}, .warps = {1, 1, 1}, .cd = float16};
  const GemmOperationUniversal operation = operation_of(sketch);
  for (const int slices : {1, 3, 5, 40}) {
    for (const bool bias : {false, true}) {
      DescribedGemm gemm(
          operation, {40, 56, 1240},
          {.gemm_mode = Mode::GemmSplitKParallel, .split_k_slices = slices, .bias = bias});
      gemm.fill(97, -1, 1);
      gemm.upload();
      const GemmArguments arguments = gemm.arguments();
      const Partials partials = arguments.partials();
      EXPECT_EQ(partials.dtype, DType::float32);
      EXPECT_LE(partials.slices, slices);
      const ReductionOperation reduction(
          {.C = {float16, Layout::RowMajor, 8},
           .element_accumulator = float32,
           .element_compute = float32,
           .epilogue_functor =
               LinearCombinationGeneric(epilogue::Activation::leaky_relu, float16, 8, float32),
           .count = 8});
      gemm.launch(arguments);
      gemm.download();
      EXPECT_NE(gemm.first_difference(), "") << "D is left to the reduction";
      reduction.run(ReductionArguments(reduction, partials, gemm.d_on_device(), gemm.c_on_device(),
                                       reduction.epilogue_type(0.5, 1, {0.25}), bias),
                    gemm.stream());
      gemm.download();
      EXPECT_EQ(gemm.first_difference([](double sum, double c) {
        const double t = 0.5 * sum + c;
        return t > 0 ? t : 0.25 * t;
      }),
                "");
    }
  }
}

// --- interleaved layouts ------------------------------------------------------------------------

Sketch interleaved(const EpilogueFunctor& functor) {
  return {.tile = {64, 64, 64},
          .instruction = {16, 8, 32},
          .ab = int8,
          .accumulator = int32,
          .cd = int8,
          .layouts = {Layout::ColumnMajorInterleaved32, Layout::RowMajorInterleaved32,
                      Layout::ColumnMajorInterleaved32},
          .alignments = std::array{16, 16, 8},
          .functor = functor};
}

TEST_F(DescribeModes, row_31_interleaved_int8) {
  const Sketch sketch = interleaved(FastLinearCombinationClamp(int8, 8));
  for (const std::int64_t m : {32, 544})
    for (const std::int64_t n : {32, 96})
      expect_exact(sketch, {{m, n, 32}, {m, n, 64 * 3 + 32}}, {});
  expect_exact(sketch, {{70, 64, 96}}, {.output_op = {.alpha = 1, .beta = 1}});
  expect_exact(sketch, {{40, 64, 96}},
               {.gemm_mode = Mode::Batched, .output_op = {.alpha = 1, .beta = 1}, .batch = 2});
  const GemmOperationUniversal operation = operation_of(sketch);
  EXPECT_EQ(error_of([&] {
              GemmArguments(operation, {32, 48, 32}, {}, device);
            }).operand(),
            "problem_size.n");
}

TEST_F(DescribeModes, row_33_operands_of_the_caller_stay_as_they_are) {
  const GemmOperationUniversal operation =
      operation_of(interleaved(LinearCombinationClamp(int8, 8, int32, float32)));
  DescribedGemm gemm(operation, {64, 64, 64});
  gemm.upload();
  const GemmArguments arguments = gemm.arguments();
  const auto before = gemm.b.memory();
  gemm.launch(arguments);
  gemm.download();
  EXPECT_EQ(gemm.first_difference(), "");
  EXPECT_EQ(gemm.b_after(), before);
}

}  // namespace
}  // namespace gemmery::describe::tests
