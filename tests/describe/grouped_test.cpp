// SPDX-License-Identifier: Apache-2.0
// Described GEMMs of problems of different sizes.
#include <gemmery/discovery.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/describe/described_gemm.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/no_disk_cache.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery::describe::tests {
namespace {

using DescribeGrouped = gemmery::tests::WithNvrtc;
using gemmery::tests::error_of;
using enum Element;

const Device device = test_device();
const OutputOp one_and_two{.alpha = 1, .beta = 2};

// Problems, each with its own memory, and poison in every D.
class Problems {
 public:
  Problems(const GemmOperationGrouped& operation, std::vector<GemmCoord> sizes)
      : operation_(operation), sizes_(std::move(sizes)) {
    std::uint32_t seed = 1;
    for (const GemmCoord& size : sizes_) {
      gemms_.emplace_back(operation, size, GemmOptions{.output_op = one_and_two}, device);
      gemms_.back().fill(seed++);
      gemms_.back().upload();
    }
  }
  GemmPointers pointers() {
    GemmPointers all;
    for (DescribedGemm& gemm : gemms_) {
      const GemmPointers own = gemm.pointers();
      all.A.push_back(own.A.front());
      all.B.push_back(own.B.front());
      all.C.push_back(own.C.front());
      all.D.push_back(own.D.front());
    }
    return all;
  }
  GemmGroupedArguments arguments() { return {operation_, sizes_, pointers(), device, one_and_two}; }
  // Runs the problems. Returns the first element that differs, or "".
  std::string run() {
    const Stream stream = Stream::of(nullptr, device);
    operation_.run(arguments(), stream);
    synchronize(stream);
    for (std::size_t at = 0; at < gemms_.size(); ++at) {
      gemms_[at].download();
      const std::string difference = gemms_[at].first_difference();
      if (!difference.empty()) return "problem " + std::to_string(at) + ": " + difference;
    }
    return {};
  }
  std::vector<std::vector<std::byte>> results() const {
    std::vector<std::vector<std::byte>> results;
    for (const DescribedGemm& gemm : gemms_) results.push_back(gemm.d.memory());
    return results;
  }

 private:
  GemmOperationGrouped operation_;
  std::vector<GemmCoord> sizes_;
  std::vector<DescribedGemm> gemms_;
};

// Random sizes, multiples of `step`; some have no rows, some are equal.
std::vector<GemmCoord> sizes_of(std::size_t count, int step, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto extent = [&](int least, int most) {
    return std::int64_t{step} * (least + static_cast<int>(random() % static_cast<unsigned>(most)));
  };
  std::vector<GemmCoord> sizes;
  while (sizes.size() < count) {
    const bool is_repeated = !sizes.empty() && random() % 3 == 0;
    sizes.push_back(is_repeated ? sizes[random() % sizes.size()]
                                : GemmCoord{extent(0, 5), extent(1, 5), extent(1, 5)});
  }
  return sizes;
}

constexpr std::array majors{Layout::RowMajor, Layout::ColumnMajor};

void expect_every_layout(Sketch sketch, int step) {
  std::uint32_t seed = 29;
  for (const Layout a : majors)
    for (const Layout b : majors)
      for (const Layout c : majors) {
        sketch.layouts = {a, b, c};
        Problems problems(GemmOperationGrouped(description_of(sketch)), sizes_of(24, step, seed++));
        EXPECT_EQ(problems.run(), "") << name(a) << ", " << name(b) << ", " << name(c);
      }
}

const Sketch half{.tile = {32, 32, 32}, .stages = 2, .warps = {1, 1, 1}, .cd = float16};
const Sketch int8_saturating{.tile = {32, 32, 64},
                             .stages = 2,
                             .warps = {1, 1, 1},
                             .instruction = {16, 8, 32},
                             .ab = int8,
                             .accumulator = int32,
                             .cd = int32,
                             .operation = MathOperation::multiply_add_saturate};

TEST_F(DescribeGrouped, row_29_f16_in_every_layout) { expect_every_layout(half, 8); }
TEST_F(DescribeGrouped, row_29_bf16_in_every_layout) {
  Sketch sketch = half;
  sketch.ab = sketch.cd = bfloat16;
  expect_every_layout(sketch, 8);
}
TEST_F(DescribeGrouped, row_29_f32_in_every_layout) {
  Sketch sketch = half;
  sketch.instruction = {16, 8, 8};
  sketch.ab = sketch.cd = float32;
  expect_every_layout(sketch, 4);
}
TEST_F(DescribeGrouped, row_29_f64_in_every_layout) {
  expect_every_layout({.tile = {32, 32, 16},
                       .stages = 2,
                       .warps = {1, 1, 1},
                       .instruction = {8, 8, 4},
                       .ab = float64,
                       .accumulator = float64,
                       .cd = float64},
                      2);
}
TEST_F(DescribeGrouped, row_29_simt) {
  Problems problems(GemmOperationGrouped(description_of({.tile = {64, 64, 8},
                                                         .stages = 2,
                                                         .instruction = {1, 1, 1},
                                                         .ab = float32,
                                                         .opcode_class = OpcodeClass::Simt,
                                                         .alignments = std::array{1, 1, 1}})),
                    sizes_of(24, 1, 7));
  EXPECT_EQ(problems.run(), "");
}

TEST_F(DescribeGrouped, row_32_int8_in_every_layout) { expect_every_layout(int8_saturating, 32); }

TEST_F(DescribeGrouped, row_32_interleaved_int8) {
  Sketch sketch = int8_saturating;
  sketch.cd = int8;
  sketch.layouts = {Layout::ColumnMajorInterleaved32, Layout::RowMajorInterleaved32,
                    Layout::ColumnMajorInterleaved32};
  Problems problems(GemmOperationGrouped(description_of(sketch)), sizes_of(24, 32, 32));
  EXPECT_EQ(problems.run(), "");
}

TEST_F(DescribeGrouped, row_60_any_number_of_problems) {
  const GemmOperationGrouped operation(description_of(half), SchedulerMode::Host);
  for (const std::size_t count : {24, 27, 5, 1, 1000}) {
    Problems problems(operation, sizes_of(count, 8, 60));
    EXPECT_EQ(problems.run(), "") << count;
  }
  const GemmGroupedArguments none(operation, {}, {}, device);
  operation.run(none, Stream::of(nullptr, device));
  EXPECT_TRUE(none.kernels().empty());
}

// The arguments own their data on the device, which outlives the operation and the lists that they
// were made from.
TEST_F(DescribeGrouped, row_60_arguments_own_what_a_run_needs) {
  Problems problems(GemmOperationGrouped(description_of(half)), sizes_of(9, 8, 61));
  const GemmGroupedArguments arguments = [&] {
    const GemmGroupedArguments temporary = problems.arguments();
    return temporary;
  }();
  const GemmOperationGrouped another(description_of(half));
  another.run(arguments, Stream::of(nullptr, device));
  synchronize(Stream::of(nullptr, device));
  EXPECT_EQ(problems.run(), "");
}

TEST_F(DescribeGrouped, row_61_device_gives_the_bits_of_host) {
  std::vector<std::vector<std::vector<std::byte>>> results;
  for (const SchedulerMode mode : {SchedulerMode::Host, SchedulerMode::Device}) {
    Problems problems(GemmOperationGrouped(description_of(half), mode), sizes_of(27, 8, 61));
    EXPECT_EQ(problems.run(), "");
    results.push_back(problems.results());
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_F(DescribeGrouped, row_60_problems_of_equal_size_are_one_launch) {
  Problems problems(GemmOperationGrouped(description_of(half)),
                    {{8, 16, 8}, {16, 16, 8}, {8, 16, 8}, {8, 16, 8}, {16, 16, 8}});
  const auto kernels = problems.arguments().kernels();
  EXPECT_EQ(kernels.size(), 2U);
  for (const Kernel& kernel : kernels) EXPECT_EQ(find_kernel(kernel.name()), kernel);
}

TEST_F(DescribeGrouped, row_88_every_problem_has_its_result) {
  Problems problems(GemmOperationGrouped(description_of(half)),
                    {{8, 8, 8}, {0, 8, 8}, {40, 24, 0}, {8, 8, 0}, {72, 56, 88}});
  EXPECT_EQ(problems.run(), "");
  EXPECT_EQ(problems.arguments().problem_sizes().size(), 5U);
}

TEST_F(DescribeGrouped, row_88_what_does_not_fit_is_refused_by_problem_and_field) {
  const GemmOperationGrouped operation(description_of(half));
  const std::vector<GemmCoord> sizes{{8, 8, 8}, {16, 8, 8}, {24, 8, 8}};
  Problems problems(operation, sizes);
  const auto operand_of = [&](std::vector<GemmCoord> given, const GemmPointers& pointers) {
    return error_of([&] {
             GemmGroupedArguments(operation, std::move(given), pointers, device, one_and_two);
           })
        .operand();
  };
  const auto spoil = [&](const auto& change) {
    GemmPointers pointers = problems.pointers();
    change(pointers);
    return pointers;
  };
  EXPECT_EQ(operand_of(sizes, spoil([](auto& pointers) { pointers.A.pop_back(); })), "A");
  EXPECT_EQ(operand_of(sizes, spoil([](auto& pointers) { pointers.B.pop_back(); })), "B");
  EXPECT_EQ(operand_of(sizes, spoil([](auto& pointers) { pointers.C.pop_back(); })), "C");
  EXPECT_EQ(operand_of(sizes, spoil([](auto& pointers) { pointers.D.pop_back(); })), "D");
  EXPECT_EQ(operand_of(sizes, spoil([](auto& pointers) { pointers.C.clear(); })), "C[0]");
  EXPECT_EQ(operand_of(sizes, spoil([](auto& pointers) { pointers.B[1] = nullptr; })), "B[1]");
  EXPECT_EQ(operand_of({{8, 8, 8}, {16, 8, 8}, {-1, 8, 8}}, problems.pointers()),
            "problem_sizes[2].m");
  EXPECT_EQ(operand_of({{8, 8, 8}, {16, 8, 3}, {24, 8, 8}}, problems.pointers()), "A[1]");
  const GemmOperationGrouped another(description_of(int8_saturating));
  EXPECT_EQ(
      error_of([&] { another.run(problems.arguments(), Stream::of(nullptr, device)); }).operand(),
      "arguments");
}

TEST_F(DescribeGrouped, row_59_a_visitor_is_refused) {
  Sketch sketch = half;
  sketch.functor = EpilogueVisitTree(gemmery::epilogue::Program("D = accum"), {}, float16, 8);
  const Error error = error_of([&] { GemmOperationGrouped{description_of(sketch)}; });
  EXPECT_EQ(error.operand(), "epilogue_functor");
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
}

}  // namespace
}  // namespace gemmery::describe::tests
