// SPDX-License-Identifier: Apache-2.0
// verify and check_result: accepted and detected results, and the placement of operands.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <gemmery/gemmery.hpp>

#include "api/guarded_operand.hpp"
#include "api/random_numbers.hpp"
#include "api/trial.hpp"
#include "operation/matrix.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery {
namespace {

Kernel reference_for(const ProblemLine& line) {
  return get_kernels(line.problem, device_info(Device::cpu())).back();
}

VerifyReport verify_on_cpu(const std::string& text, const VerifyOptions& options = {}) {
  const ProblemLine line = parse_problem(text);
  return verify(line, reference_for(line), options);
}

TEST(Verify, passes_the_reference_for_every_element_type) {
  for (const char* const text :
       {"gemm 33x17x65 a=f32", "gemm 33x17x65 a=f64", "gemm 33x17x65 a=f16 b=bf16 out=f32",
        "gemm 33x17x65 a=e4m3 b=e5m2:c out=bf16", "gemm 33x17x65 a=s8 b=u8 out=s32",
        "gemm 8x9x10x3 a=u8 out=s8 c=s8 alpha=0.5 beta=-1", "gemm 5x6x0 a=f32 c=f32[n] beta=2",
        "gemm 0x6x4 a=f32",
        "gemm 5x6x7 a=f32/strides=-9,1 b=f32/strides=2,-14 out=f32/strides=3,15"}) {
    for (const Fill fill : {Fill::normal, Fill::uniform, Fill::integers}) {
      const VerifyReport report = verify_on_cpu(text, {.fill = fill});
      EXPECT_TRUE(report.passed) << text << ", seed " << report.seed << ": "
                                 << report.first_failure;
      EXPECT_EQ(report.mismatches, 0);
      EXPECT_EQ(report.guard_violations, 0);
      EXPECT_LE(report.worst_ratio, 1);
      EXPECT_TRUE(report.first_failure.empty());
    }
  }
}

TEST(Verify, tells_how_it_compared) {
  EXPECT_EQ(verify_on_cpu("gemm 16x16x16 a=f32").method, "componentwise bound");
  EXPECT_EQ(verify_on_cpu("gemm 16x16x16 a=f32", {.fill = Fill::integers}).method,
            "exact integers");
  // 0.3 is no multiple of a quarter, so that integers are not exact.
  EXPECT_EQ(verify_on_cpu("gemm 16x16x16 a=f32 alpha=0.3", {.fill = Fill::integers}).method,
            "componentwise bound");
  EXPECT_EQ(verify_on_cpu("gemm 16x16x16 a=f32").elements, 256);
}

TEST(Verify, draws_a_fresh_seed_and_repeats_a_given_one) {
  const VerifyReport first = verify_on_cpu("gemm 16x16x16 a=f32");
  const VerifyReport second = verify_on_cpu("gemm 16x16x16 a=f32");
  EXPECT_NE(first.seed, 0U);
  EXPECT_NE(first.seed, second.seed);
  const VerifyReport again = verify_on_cpu("gemm 16x16x16 a=f32", {.seed = first.seed});
  EXPECT_EQ(again.seed, first.seed);
  EXPECT_EQ(again.worst_error, first.worst_error);
}

TEST(Verify, refuses_what_the_kernel_refuses) {
  const Kernel kernel = reference_for(parse_problem("gemm 8x8x8 a=f32"));
  try {
    (void)verify(parse_problem("gemm 8x8x8 a=f64"), kernel, {});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  }
}

// A sanitizer ends the program instead of refusing such an allocation.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Verify, names_the_problem_that_no_memory_holds) {
  try {
    (void)verify_on_cpu("gemm 1000x2x2 a=f32 out=f32/strides=1099511627776,1");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_NE(error.operand().find("gemm 1000x2x2 a=f32"), std::string::npos) << error.what();
    EXPECT_NE(error.expected().find("operands of 4393648464600920 bytes"), std::string::npos)
        << error.what();
  }
}
#endif

// --- check_result ---

struct Result {
  std::vector<float> a{1, 2, 3, 4, 5, 6};
  std::vector<float> b{1, 0, 0, 1, 1, 1};
  std::vector<float> out{4, 5, 10, 11};

  VerifyReport check() const {
    const GemmArguments arguments(Tensor(a.data(), DType::float32, {2, 3}),
                                  Tensor(b.data(), DType::float32, {3, 2}),
                                  Tensor(out.data(), DType::float32, {2, 2}));
    return check_result(arguments, get_kernels(arguments).back().operands());
  }
};

TEST(CheckResult, accepts_the_product) {
  const Result result;
  EXPECT_TRUE(result.check().passed) << result.check().first_failure;
}

TEST(CheckResult, names_the_element_that_is_wrong) {
  Result result;
  result.out[2] = 10.001f;
  const VerifyReport report = result.check();
  EXPECT_FALSE(report.passed);
  EXPECT_EQ(report.mismatches, 1);
  EXPECT_GT(report.worst_ratio, 1);
  EXPECT_NE(report.first_failure.find("out[0, 1, 0]"), std::string::npos) << report.first_failure;
}

// Tensor cores truncate sums, fused multiply-adds round them.
TEST(CheckResult, knows_whose_sums_they_are) {
  const std::vector<std::uint16_t> ones(64, 0x3f80);  // bfloat16
  std::vector<float> out(64, 8);
  const auto matrix = [&](DType dtype, const void* values) {
    return Tensor(values, dtype, {8, 8});
  };
  const GemmArguments arguments(matrix(DType::bfloat16, ones.data()),
                                matrix(DType::bfloat16, ones.data()),
                                Tensor(out.data(), DType::float32, {8, 8}));
  const Kernel kernel =
      find_kernel("sm90v7_gemm_bf16r16_bf16r16_f32r16_acc-f32_64x64x64_1x1_coop_m8_s4").value();
  EXPECT_TRUE(check_result(arguments, kernel).passed);
  bool are_told_apart = false;
  for (; out[9] > 7.99F && !are_told_apart; out[9] = std::nextafter(out[9], 0.0F))
    are_told_apart = check_result(arguments, kernel).passed &&
                     !check_result(arguments, kernel.operands()).passed;
  EXPECT_TRUE(are_told_apart);
  out[9] = 7.999F;
  EXPECT_FALSE(check_result(arguments, kernel).passed);
}

// A bias that a tensor core adds is truncated, too.
TEST(CheckResult, knows_who_adds_a_bias) {
  const std::vector<std::uint16_t> ones(128 * 8, 0x3f80);
  const std::vector<std::uint16_t> bias(8, 0x4780);  // 65536
  const std::vector<std::uint16_t> out(128 * 8, 0x4780);
  const std::vector<float> peak{65544.0F - 0x1p-6F};  // two steps below the sum
  const auto matrix = [](const auto& values, std::int64_t m, std::int64_t n) {
    return Tensor(values.data(), DType::bfloat16, {m, n});
  };
  GemmOptions options;
  options.epilogue = EpilogueArguments(
      "D = accum + bias; peak = amax(D)",
      {{"bias", matrix(bias, 1, 8)}, {"peak", Tensor(peak.data(), DType::float32, {1, 1})}});
  const GemmArguments arguments(matrix(ones, 128, 8), matrix(ones, 8, 8), matrix(out, 128, 8),
                                options);
  const auto check = [&](const std::string& schedule) {
    const auto kernel = find_kernel("sm90v7_gemm_bf16r16_bf16r16_bf16r16_acc-f32_128x128x64_1x1_" +
                                    schedule + "_m8_s3_e-" + digest(arguments.problem().epilogue));
    return check_result(arguments, kernel.value());
  };
  EXPECT_TRUE(check("rotation-add").passed) << check("rotation-add").first_failure;
  EXPECT_FALSE(check("rotation").passed);
}

TEST(CheckResult, refuses_nan_and_infinity_where_the_result_is_finite) {
  for (const float wrong :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Result result;
    result.out[0] = wrong;
    EXPECT_FALSE(result.check().passed) << wrong;
  }
}

TEST(CheckResult, wants_nan_where_the_inputs_make_it) {
  Result result;
  result.a[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(result.check().passed);
  result.out[0] = result.out[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(result.check().passed) << result.check().first_failure;
}

// --- operands ---

api::GuardedOperand place(MatrixType type, api::Extents3 extents, bool guard_bands = true) {
  return api::GuardedOperand({.type = type,
                              .extents = extents,
                              .surroundings = api::Surroundings::canary,
                              .guard_bands = guard_bands});
}

TEST(GuardedOperand, lies_at_exactly_the_stated_alignment) {
  for (const std::uint8_t alignment : std::initializer_list<std::uint8_t>{1, 2, 4, 8, 16}) {
    for (const std::int64_t stride : {std::int64_t{16}, std::int64_t{-16}}) {
      const auto operand = place(
          {.dtype = DType::int8, .alignment = alignment, .row_stride = stride, .column_stride = 1},
          {1, 5, 7});
      EXPECT_EQ(operation::matrix_type(operand.here()).alignment, alignment);
      EXPECT_NE(reinterpret_cast<std::uintptr_t>(operand.here().data()) % (2u * alignment), 0U);
    }
  }
}

TEST(GuardedOperand, holds_every_element_and_nothing_behind_without_guard_bands) {
  const auto operand =
      place({.dtype = DType::float32, .alignment = 4, .row_stride = 9, .column_stride = 1},
            {1, 5, 7}, false);
  const ByteRange range = byte_range(operand.here());
  const auto first = reinterpret_cast<std::uintptr_t>(operand.bytes().data());
  EXPECT_GE(range.first, first);
  EXPECT_EQ(range.last, first + operand.bytes().size());
}

// So many elements that several threads fill them if possible.
TEST(GuardedOperand, elements_that_share_an_address_get_the_number_of_the_last) {
  const api::Extents3 extents{.batch = 1, .rows = 8192, .columns = 32};
  for (const MatrixType& type :
       {MatrixType{.dtype = DType::float64, .alignment = 8, .column_stride = 1},
        MatrixType{.dtype = DType::float64, .alignment = 8, .column_stride = 3},
        MatrixType{.dtype = DType::float64, .alignment = 8, .row_stride = 1}}) {
    api::GuardedOperand operand = place(type, extents);
    for (std::uint64_t repeat = 0; repeat < 10; ++repeat) {
      const api::Numbers numbers{.seed = tests::random_seed() + repeat};
      operand.fill(numbers);
      const auto* const first = static_cast<const double*>(operand.here().data());
      const auto number_at = [&](std::int64_t row, std::int64_t column) {
        return numbers(static_cast<std::uint64_t>(row * extents.columns + column));
      };
      const std::int64_t last = extents.rows - 1;
      if (type.row_stride == 0) {
        for (std::int64_t column = 0; column < extents.columns; ++column)
          ASSERT_EQ(first[column * type.column_stride], number_at(last, column));
      } else {
        for (std::int64_t row = 0; row < extents.rows; ++row)
          ASSERT_EQ(first[row], number_at(row, extents.columns - 1));
      }
    }
  }
}

TEST(GuardedOperand, counts_changes_outside_its_elements_only) {
  auto operand = place(
      {.dtype = DType::float32, .alignment = 16, .row_stride = 12, .column_stride = 1}, {1, 5, 7});
  const std::vector<std::byte> before = operand.snapshot();
  operand.fill({.fill = Fill::normal, .seed = 3});
  EXPECT_EQ(operand.count_changes_outside(before), 0);
  EXPECT_GT(operand.count_changes(before), 0);
  auto* const element = static_cast<float*>(operand.here().data());
  element[7] = 1;           // in the gap after the first row
  element[4 * 12 + 7] = 1;  // after the last row
  element[-1] = 1;          // before the first row
  EXPECT_EQ(operand.count_changes_outside(before), 12);
}

TEST(RandomNumbers, are_standard_normal) {
  const std::uint64_t seed = api::fresh_seed();
  double sum = 0;
  double squares = 0;
  constexpr int count = 200000;
  for (std::uint64_t index = 0; index < count; ++index) {
    const double value = api::Numbers{.fill = Fill::normal, .seed = seed}(index);
    sum += value;
    squares += value * value;
  }
  // Six standard deviations of the mean and of the variance.
  EXPECT_NEAR(sum / count, 0, 6 / std::sqrt(count)) << "seed " << seed;
  EXPECT_NEAR(squares / count, 1, 6 * std::sqrt(2.0 / count)) << "seed " << seed;
}

TEST(RandomNumbers, of_integer_fills_keep_to_their_limits) {
  const api::Numbers numbers{
      .fill = Fill::integers, .seed = api::fresh_seed(), .least = -2, .most = 2};
  std::vector<int> counts(5);
  for (std::uint64_t index = 0; index < 5000; ++index)
    ++counts.at(static_cast<std::size_t>(numbers(index) + 2));
  for (const int count : counts) EXPECT_GT(count, 700);
}

TEST(IntegerFill, is_exact_only_while_sums_fit_the_accumulator) {
  OperandRules rules;
  rules.accumulator = DType::float32;
  EXPECT_TRUE(api::is_exact_with_integers(parse_problem("gemm 4x4x4000 a=f32"), rules));
  EXPECT_TRUE(api::is_exact_with_integers(parse_problem("gemm 4x4x4000 a=f32 alpha=0.5"), rules));
  EXPECT_FALSE(api::is_exact_with_integers(parse_problem("gemm 4x4x20000000 a=f32"), rules));
  EXPECT_FALSE(api::is_exact_with_integers(parse_problem("gemm 4x4x4 a=f32 alpha=0.1"), rules));
  rules.accumulator = DType::float16;
  EXPECT_FALSE(api::is_exact_with_integers(parse_problem("gemm 4x4x4000 a=f16"), rules));
}

}  // namespace
}  // namespace gemmery
