// SPDX-License-Identifier: Apache-2.0
// Convolutions on the CPU, compared with their definition: every kernel that discovery returns,
// with geometries from other libraries' bug reports and random ones.
#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/convolution_cases.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/naive_convolution.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/served_convolutions.hpp"

namespace gemmery {
namespace {

using tests::ConvCase;
using tests::ConvOperands;
using tests::Draw;
using tests::draw_case;
using tests::draw_types;
using tests::error_of;
using tests::Extents;
using tests::HeldTensor;
using tests::kinds;
using tests::numbers;
using tests::read_row;
using tests::Row;
using tests::Types;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// --- running ------------------------------------------------------------------------------------

ConvOperands make_operands(const ConvCase& conv, ConvKind kind, Types types, Draw& draw,
                           std::int64_t gap = 0) {
  const auto [a, b, out] = tests::shapes_of(conv, kind);
  // The filters' taps also have a uniform distance.
  ConvOperands operands{HeldTensor(types.operands, a, gap), HeldTensor(types.operands, b, gap),
                        HeldTensor(types.out, out, kind == ConvKind::wgrad ? 0 : gap)};
  for (HeldTensor* const tensor : {&operands.a, &operands.b})
    tensor->fill([&] { return draw(tensor->dtype()); });
  return operands;
}

// Random elements of out, limited by the number of products; all of them if possible.
std::vector<Extents> choose_elements(const ConvCase& conv, ConvKind kind, const HeldTensor& out,
                                     Draw& draw) {
  constexpr double most_products = 3e5;
  double terms = static_cast<double>(kind == ConvKind::wgrad   ? conv.images
                                     : kind == ConvKind::fprop ? conv.channels / conv.groups
                                                               : conv.filters / conv.groups);
  double search = 0;
  for (std::size_t d = 0; d < conv.dimensions(); ++d) {
    terms *= static_cast<double>(kind == ConvKind::wgrad ? conv.output_of(d) : conv.filter[d]);
    search += static_cast<double>(conv.output_of(d) * conv.filter[d]);
  }
  const auto most = static_cast<std::int64_t>(most_products / (terms + search + 1)) + 20;
  std::vector<Extents> elements;
  for (std::int64_t i = 0; i < std::min(most, out.count()); ++i)
    elements.push_back(out.index_of(out.count() <= most ? i : draw.below(out.count())));
  return elements;
}

// Runs all kernels and compares with the definition. `scalars` is alpha and beta; with a beta there
// is a C in the memory of out.
void check(const ConvCase& conv, ConvKind kind, Types types, std::uint64_t seed,
           std::int64_t gap = 0, std::pair<double, double> scalars = {1, 0}) {
  const int limit = is_integer(types.operands) ? 100 : 1;
  Draw draw(seed, limit);
  ConvOperands operands = make_operands(conv, kind, types, draw, gap);
  HeldTensor before = operands.out;
  before.fill([&] { return draw(types.out); });
  GemmOptions options{.alpha = scalars.first, .beta = scalars.second};
  if (scalars.second != 0) options.c = operands.out.view();
  const ConvArguments arguments(kind, operands.a.view(), operands.b.view(), operands.out.view(),
                                conv.settings(), options);
  SCOPED_TRACE(to_string(arguments.problem()));
  ASSERT_EQ(to_string(parse_problem(to_string(arguments.problem())).problem),
            to_string(arguments.problem()));
  const auto elements = choose_elements(conv, kind, operands.out, draw);
  std::vector<double> expected;
  for (const Extents& index : elements)
    expected.push_back(scalars.first *
                           tests::naive_sum(conv, kind, operands.a, operands.b, index).value +
                       scalars.second * before[index]);
  const auto kernels = get_kernels(arguments);
  ASSERT_FALSE(kernels.empty());
  for (const Kernel& kernel : kernels) {
    SCOPED_TRACE(kernel.name());
    operands.out.poison();
    if (scalars.second != 0)
      for (std::int64_t i = 0; i < before.count(); ++i)
        operands.out.set(before.index_of(i), before[before.index_of(i)]);
    const HeldTensor surroundings = operands.out;
    kernel.run(arguments, {.stream = Stream::cpu()});
    for (std::size_t i = 0; i < elements.size(); ++i)
      ASSERT_EQ(operands.out[elements[i]], expected[i]) << testing::PrintToString(elements[i]);
    if (gap == 0) continue;
    HeldTensor restored = surroundings;
    for (std::int64_t i = 0; i < restored.count(); ++i)
      restored.set(restored.index_of(i), operands.out[restored.index_of(i)]);
    ASSERT_EQ(restored.bytes(), operands.out.bytes()) << "something beside out was written";
  }
}

void check_all_kinds(const ConvCase& conv, Types types) {
  for (const ConvKind kind : kinds) check(conv, kind, types, tests::random_seed());
}

constexpr Types f32{DType::float32, DType::float32};

// --- tables -------------------------------------------------------------------------------------

class NastyConvolutions : public testing::TestWithParam<tests::NastyConvolution> {};

// The ones that need more memory than this are described only: their kernels on a GPU are found.
constexpr double most_elements = 1e8;

TEST_P(NastyConvolutions, all_kinds_are_exact) {
  const Row row = read_row(GetParam().text);
  for (std::size_t d = 0; d < row.conv.dimensions(); ++d)
    EXPECT_EQ(row.conv.output_of(d), row.expected[d]);
  for (const ConvKind kind : kinds) {
    if (GetParam().is_refused()) {
      const Error error = error_of([&] { tests::imaginary_problem(row.conv, kind, {}); });
      EXPECT_NE(error.operand().find("filter along height"), std::string::npos) << error.what();
    } else if (GetParam().elements() > most_elements) {
      const GemmProblem problem =
          tests::imaginary_problem(row.conv, kind, {DType::bfloat16, DType::bfloat16});
      EXPECT_FALSE(get_kernels(problem, device_info("h200")).empty()) << to_string(problem);
    } else {
      check(row.conv, kind, f32, tests::random_seed());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, NastyConvolutions, testing::ValuesIn(tests::nasty_convolutions()),
                         [](const auto& tested) { return tested.param.name; });

TEST(Convolution, there_are_77_cases) { EXPECT_EQ(tests::nasty_convolutions().size(), 77U); }

TEST(ConvolutionRows, row_34_and_62_to_64_kept_sizes_in_four_types) {
  constexpr std::array types{
      Types{DType::float32, DType::float32}, Types{DType::float64, DType::float64},
      Types{DType::float16, DType::float32}, Types{DType::bfloat16, DType::float32}};
  for (std::size_t index = 0; index < std::size(tests::kept_convolutions); ++index) {
    const Row row = read_row(tests::kept_convolutions[index]);
    ASSERT_EQ((Extents{row.conv.output_of(0), row.conv.output_of(1)}), row.expected)
        << tests::kept_convolutions[index];
    for (const ConvKind kind : kinds)
      check(row.conv, kind, types[(index + static_cast<std::size_t>(kind)) % types.size()],
            tests::random_seed());
  }
}

TEST(ConvolutionRows, row_35_int8_to_int32) {
  for (const char* const text : tests::kept_convolutions)
    check(read_row(text).conv, ConvKind::fprop, {DType::int8, DType::int32}, tests::random_seed());
}

TEST(ConvolutionRows, row_63_what_no_tap_reaches_is_beta_c) {
  // A 1x1 filter of stride 2 reaches one pixel of four.
  const ConvCase conv = read_row("2,8,6,4,8,1,1|0|2>4,3").conv;
  check(conv, ConvKind::dgrad, f32, tests::random_seed(), 0, {1, 2});
  check(conv, ConvKind::dgrad, f32, tests::random_seed(), 3, {3, 1});
}

TEST(ConvolutionRows, rows_65_and_66_filters_of_32_and_33) {
  check_all_kinds(read_row("1,40,40,8,8,32,32|16|1>41,41").conv, f32);
  check_all_kinds(read_row("1,40,40,8,8,33,33|16|1>40,40").conv, f32);
}

TEST(ConvolutionRows, row_69_strides) {
  for (const char* const stride : {"2,2", "3,3", "1,2", "2,1", "6,2", "3,5"}) {
    ConvCase conv = read_row("2,14,13,16,24,3,3|1|1>0,0").conv;
    conv.stride = numbers(stride);
    check_all_kinds(conv, f32);
  }
}

TEST(ConvolutionRows, row_90_dilations) {
  for (const std::int64_t dilation : {2, 3})
    for (const std::int64_t stride : {1, 2, 3}) {
      ConvCase conv = read_row("1,15,16,8,16,3,3|2,1,0,3|1>0,0").conv;
      conv.dilation = {dilation, dilation};
      conv.stride = {stride, stride};
      check_all_kinds(conv, f32);
    }
}

TEST(ConvolutionRows, row_91_convolution_is_the_flipped_filter) {
  ConvCase conv = read_row("2,9,8,8,16,3,2|1|2>5,5").conv;
  conv.mode = ConvMode::convolution;
  conv.dilation = {1, 2};
  check_all_kinds(conv, f32);
}

TEST(ConvolutionRows, row_92_alpha_and_beta) {
  for (const ConvKind kind : kinds)
    check(read_row("1,17,11,288,160,3,3|1|1>17,11").conv, kind, f32, tests::random_seed(), 0,
          {2, 2});
}

// --- random problems ----------------------------------------------------------------------------

TEST(Convolution, random_problems_are_exact) {
  Draw draw(tests::random_seed(), 1);
  const int count = std::getenv("GEMMERY_SOAK") != nullptr ? 2100 : 700;
  for (int index = 0; index < count && !testing::Test::HasFatalFailure(); ++index) {
    const ConvCase conv = draw_case(draw);
    const Types types = draw_types(draw);
    const std::int64_t gap = draw.below(2) * draw.below(5);
    const std::pair<double, double> scalars =
        draw.below(3) == 0 ? std::pair{2.0, -1.0} : std::pair{1.0, 0.0};
    check(conv, kinds[static_cast<std::size_t>(index % 3)], types,
          static_cast<std::uint64_t>(draw.below(1 << 30)), gap, scalars);
  }
}

// Real numbers between guard bands, with NaN in all gaps.
TEST(Convolution, random_problems_are_within_the_bounds_and_touch_nothing_else) {
  Draw draw(tests::random_seed(), 1);
  for (int index = 0; index < 300; ++index) {
    const ConvCase conv = draw_case(draw);
    const ConvKind kind = kinds[static_cast<std::size_t>(index % 3)];
    Types types = draw_types(draw);
    // oneDNN rounds results of bfloat16 itself.
    if (types.operands == DType::bfloat16 && draw.below(3) > 0) types.out = DType::bfloat16;
    const ConvOperands operands = make_operands(conv, kind, types, draw, draw.below(3));
    const GemmProblem problem = ConvArguments(kind, operands.a.view(), operands.b.view(),
                                              operands.out.view(), conv.settings())
                                    .problem();
    for (const Kernel& kernel : get_kernels(problem, device_info(Device::cpu()))) {
      const VerifyReport report = verify({.problem = problem}, kernel, {});
      ASSERT_TRUE(report.passed) << to_string(problem) << " by " << kernel.name() << ", seed "
                                 << report.seed << ": " << report.first_failure;
    }
  }
}

TEST(Convolution, operands_may_repeat_images_rows_and_pixels) {
  for (const char* const line :
       {"conv2d_fprop 2x8x8x8 k=8 r=3 s=3 pad=1 a=f32/strides=8,0,0",
        "conv2d_fprop 2x8x8x8 k=8 r=3 s=3 pad=1 a=f32/strides=0,64,8",
        "conv2d_fprop 2x8x8x8 k=8 r=3 s=3 pad=1 a=f32 b=f32/strides=8,0,0",
        "conv2d_dgrad 2x8x8x8 k=8 r=3 s=3 pad=1 a=f32/strides=8,0,0",
        "conv2d_wgrad 2x4x4x8 k=8 r=3 s=3 pad=1 a=f32/strides=8,0,0",
        "conv2d_wgrad 2x4x4x8 k=8 r=3 s=3 pad=1 a=f32 b=f32/strides=8,0,0"}) {
    const ProblemLine problem = parse_problem(line);
    const auto kernels = get_kernels(problem.problem, device_info(Device::cpu()));
    EXPECT_FALSE(kernels.empty()) << line;
    for (const Kernel& kernel : kernels) {
      const VerifyReport report = verify({.problem = problem.problem}, kernel, {});
      EXPECT_TRUE(report.passed) << line << " by " << kernel.name() << ": " << report.first_failure;
    }
  }
}

// There are at most as many phases as taps, for any stride.
TEST(Convolution, a_dgrad_of_huge_stride_takes_no_longer) {
  const GemmProblem problem =
      parse_problem("conv2d_dgrad 1x8x8x8 k=8 r=3 s=3 pad=1 stride=2147483647 a=f32").problem;
  for (const Kernel& kernel : get_kernels(problem, device_info(Device::cpu())))
    EXPECT_TRUE(verify({.problem = problem}, kernel, {}).passed) << kernel.name();
}

TEST(Convolution, infinities_beside_output_padding_are_left_out) {
  const ProblemLine line =
      parse_problem("conv1d_dgrad 1x10x1 k=1 s=1 dilation=5 stride=1 q=6 a=f32");
  for (const Kernel& kernel : get_kernels(line.problem, device_info(Device::cpu())))
    EXPECT_TRUE(verify({.problem = line.problem}, kernel, {}).passed) << kernel.name();
}

TEST(Convolution, transposed_with_every_output_padding) {
  for (std::int64_t stride = 1; stride <= 3; ++stride)
    for (std::int64_t dilation = 1; dilation <= 4; ++dilation)
      for (std::int64_t padding = 0; padding < std::max(stride, dilation); ++padding) {
        ConvCase conv{.images = 2,
                      .image = {4 * stride + 2 * dilation + 1 - 2 + padding},
                      .channels = 3,
                      .filters = 5,
                      .filter = {3},
                      .lower = {1},
                      .upper = {1},
                      .stride = {stride},
                      .dilation = {dilation}};
        conv.output = {5};  // of 5 outputs by stride, with so much output padding
        check(conv, ConvKind::dgrad, f32, tests::random_seed());
      }
}

// --- infinities beside padding ------------------------------------------------------------------

TEST(Convolution, infinities_beside_padding_are_judged_by_either_reading) {
  const ConvCase conv = read_row("1,5,5,2,3,3,3|1|1>5,5").conv;
  Draw draw(tests::random_seed(), 2);
  ConvOperands operands = make_operands(conv, ConvKind::fprop, f32, draw);
  operands.b.set({1, 0, 0, 1}, std::numeric_limits<double>::infinity());
  for (std::int64_t i = 0; i < operands.a.count(); ++i) operands.a.set(operands.a.index_of(i), 1);
  const ConvArguments arguments(ConvKind::fprop, operands.a.view(), operands.b.view(),
                                operands.out.view(), conv.settings());
  for (const Kernel& kernel : get_kernels(arguments)) {
    SCOPED_TRACE(kernel.name());
    operands.out.poison();
    kernel.run(arguments, {.stream = Stream::cpu()});
    EXPECT_TRUE(check_result(arguments, kernel).passed);
    // In the corner the infinite tap lies in padding; in the middle it does not.
    EXPECT_TRUE(std::isinf(operands.out[{0, 2, 2, 1}]));
    const double corner = operands.out[{0, 0, 0, 1}];
    operands.out.set({0, 0, 0, 1}, nan);
    EXPECT_TRUE(check_result(arguments, kernel).passed);
    operands.out.set(
        {0, 0, 0, 1},
        tests::naive_sum(conv, ConvKind::fprop, operands.a, operands.b, {0, 0, 0, 1}).value);
    EXPECT_TRUE(check_result(arguments, kernel).passed);
    operands.out.set({0, 0, 0, 1}, 1000);
    EXPECT_FALSE(check_result(arguments, kernel).passed);
    operands.out.set({0, 0, 0, 1}, corner);
    operands.out.set({0, 2, 2, 0}, nan);
    EXPECT_FALSE(check_result(arguments, kernel).passed);
  }
}

TEST(Convolution, the_reference_leaves_out_what_lies_in_padding) {
  const ConvCase conv = read_row("1,4,4,1,1,3,3|1|1>4,4").conv;
  Draw draw(1, 2);
  ConvOperands operands = make_operands(conv, ConvKind::fprop, f32, draw);
  operands.b.set({0, 0, 0, 0}, nan);
  const ConvArguments arguments(ConvKind::fprop, operands.a.view(), operands.b.view(),
                                operands.out.view(), conv.settings());
  const auto kernels = get_kernels(arguments);
  const auto reference = std::ranges::find_if(
      kernels, [](const Kernel& kernel) { return kernel.family().name() == "host_reference"; });
  ASSERT_NE(reference, kernels.end());
  reference->run(arguments, {.stream = Stream::cpu()});
  EXPECT_FALSE(std::isnan(operands.out[{0, 0, 0, 0}]));
  EXPECT_TRUE(std::isnan(operands.out[{0, 1, 1, 0}]));
}

// --- epilogues ----------------------------------------------------------------------------------

TEST(Convolution, epilogues_broadcast_by_channel_image_and_pixel) {
  const ConvCase conv = read_row("3,6,5,4,8,3,3|1|2>3,3").conv;
  Draw draw(tests::random_seed(), 2);
  ConvOperands operands = make_operands(conv, ConvKind::fprop, f32, draw);
  const auto drawn = [&](Extents shape) {
    HeldTensor tensor(DType::float32, std::move(shape));
    tensor.fill([&] { return draw(DType::float32); });
    return tensor;
  };
  const HeldTensor bias = drawn({8});
  const HeldTensor residual = drawn({3, 3, 3, 8});
  const HeldTensor embedding = drawn({3, 1, 1, 8});
  const HeldTensor positions = drawn({1, 3, 3, 1});
  HeldTensor sums(DType::float32, {8});
  HeldTensor pooled(DType::float32, {3, 1, 1, 8});
  GemmOptions options;
  options.epilogue.emplace(
      "D = relu(accum + bias + residual + embedding + positions); sums = sum(D); pooled = sum(D)",
      std::vector<EpilogueOperand>{{"bias", bias.view()},
                                   {"residual", residual.view()},
                                   {"embedding", embedding.view()},
                                   {"positions", positions.view()},
                                   {"sums", sums.view()},
                                   {"pooled", pooled.view()}});
  const ConvArguments arguments(ConvKind::fprop, operands.a.view(), operands.b.view(),
                                operands.out.view(), conv.settings(), options);
  EXPECT_EQ(arguments.problem().convolution->batch, ConvBatch::images);
  for (const Kernel& kernel : get_kernels(arguments)) {
    SCOPED_TRACE(kernel.name());
    operands.out.poison();
    kernel.run(arguments, {.stream = Stream::cpu()});
    EXPECT_TRUE(check_result(arguments, kernel).passed)
        << check_result(arguments, kernel).first_failure;
    for (std::int64_t k = 0; k < 8; ++k) {
      double sum = 0;
      for (std::int64_t n = 0; n < 3; ++n) {
        double of_image = 0;
        for (std::int64_t p = 0; p < 3; ++p)
          for (std::int64_t q = 0; q < 3; ++q) {
            const double value = std::max(
                0.0, tests::naive_sum(conv, ConvKind::fprop, operands.a, operands.b, {n, p, q, k})
                             .value +
                         bias[{k}] + residual[{n, p, q, k}] + embedding[{n, 0, 0, k}] +
                         positions[{0, p, q, 0}]);
            ASSERT_EQ((operands.out[{n, p, q, k}]), value);
            of_image += value;
          }
        EXPECT_EQ((pooled[{n, 0, 0, k}]), of_image);
        sum += of_image;
      }
      EXPECT_EQ((sums[{k}]), sum);
    }
  }
}

TEST(Convolution, groups_take_a_bias_and_sums_of_their_channels) {
  const ConvCase conv = read_row("2,5,5,6,4,3,3|1|1|g2>5,5").conv;
  Draw draw(tests::random_seed(), 2);
  ConvOperands operands = make_operands(conv, ConvKind::fprop, f32, draw);
  HeldTensor bias(DType::float32, {4});
  bias.fill([&] { return draw(DType::float32); });
  HeldTensor sums(DType::float32, {4});
  GemmOptions options;
  options.epilogue.emplace(
      "D = accum + bias; sums = sum(D)",
      std::vector<EpilogueOperand>{{"bias", bias.view()}, {"sums", sums.view()}});
  const ConvArguments arguments(ConvKind::fprop, operands.a.view(), operands.b.view(),
                                operands.out.view(), conv.settings(), options);
  for (const Kernel& kernel : get_kernels(arguments)) {
    operands.out.poison();
    kernel.run(arguments, {.stream = Stream::cpu()});
    std::vector<double> expected(4);
    for (std::int64_t i = 0; i < operands.out.count(); ++i) {
      const Extents index = operands.out.index_of(i);
      const double value =
          tests::naive_sum(conv, ConvKind::fprop, operands.a, operands.b, index).value +
          bias[{index[3]}];
      ASSERT_EQ(operands.out[index], value);
      expected[static_cast<std::size_t>(index[3])] += value;
    }
    for (std::int64_t k = 0; k < 4; ++k)
      EXPECT_EQ((sums[{k}]), expected[static_cast<std::size_t>(k)]);
  }
}

// --- as a GEMM ----------------------------------------------------------------------------------

std::string runs_as(const char* line) {
  return explain(parse_problem(line).problem, device_info(Device::cpu())).runs_as;
}

TEST(Convolution, plain_gemms_are_recognised) {
  EXPECT_EQ(runs_as("conv2d_fprop 32x56x56x64 k=256 r=1 s=1 a=f16"),
            "gemm 100352x256x64 a=f16 b=f16:c");
  EXPECT_EQ(runs_as("conv2d_dgrad 32x56x56x64 k=256 r=1 s=1 a=f16"), "gemm 100352x64x256 a=f16");
  EXPECT_EQ(runs_as("conv2d_wgrad 32x56x56x64 k=256 r=1 s=1 a=f16"), "gemm 256x64x100352 a=f16:c");
  // The filter is as large as the image.
  EXPECT_EQ(runs_as("conv2d_fprop 4x7x7x64 k=48 r=7 s=7 a=f16"), "gemm 4x48x3136 a=f16 b=f16:c");
  // Patches of a line.
  EXPECT_EQ(runs_as("conv1d_fprop 4x96x8 k=48 s=16 stride=16 a=f32"),
            "gemm 24x48x128 a=f32 b=f32:c");
  // Pixels among others; groups.
  EXPECT_EQ(runs_as("conv2d_fprop 2x4x4x8 k=16 r=1 s=1 a=f32/ld=32 out=f32/ld=20"),
            "gemm 32x16x8 a=f32/ld=32 b=f32:c out=f32/ld=20");
  EXPECT_EQ(runs_as("conv2d_fprop 2x4x4x8 k=16 r=1 s=1 groups=2 a=f32"),
            "gemm 32x8x4x2 a=f32/ld=8/batch=4 b=f32:c out=f32/ld=16/batch=8");
  for (const char* const line :
       {"conv2d_fprop 2x8x8x8 k=8 r=3 s=3 pad=1 a=f16",
        "conv2d_fprop 2x8x8x8 k=8 r=1 s=1 stride=2 a=f16",
        "conv2d_fprop 2x8x8x8 k=8 r=1 s=1 pad=1 a=f16", "conv2d_dgrad 4x7x7x64 k=48 r=7 s=7 a=f16",
        "conv2d_fprop 4x7x7x64 k=48 r=7 s=7 mode=convolution a=f16",
        "conv2d_fprop 2x32x32x3 k=48 r=16 s=16 stride=16 a=f16"})
    EXPECT_EQ(runs_as(line), "") << line;
}

TEST(Convolution, other_families_refuse_it_by_name) {
  const auto problem =
      parse_problem("conv2d_fprop 2x8x8x8 k=8 r=3 s=3 pad=1 groups=2 a=f16").problem;
  int refused = 0;
  for (const Reason& reason : explain(problem, *find_device_info("h200")).reasons) {
    if (reason.provider == "host" || reason.family == "simt" || reason.family == "sm80" ||
        reason.family == "sm90")
      continue;
    ++refused;
    EXPECT_EQ(reason.failed,
              "operation: expected a GEMM, or a convolution that this family takes, got "
              "conv2d_fprop with groups")
        << reason.family;
  }
  EXPECT_GE(refused, 1);
}

TEST(Convolution, plain_gemms_have_kernels_of_gpus) {
  EXPECT_FALSE(get_kernels(parse_problem("conv2d_fprop 32x56x56x64 k=256 r=1 s=1 a=f16").problem,
                           *find_device_info("h200"))
                   .empty());
}

TEST(Convolution, prepared_launches_take_other_memory) {
  const ConvCase conv = read_row("1,6,6,4,8,3,3|1|1>6,6").conv;
  Draw draw(tests::random_seed(), 2);
  ConvOperands operands = make_operands(conv, ConvKind::fprop, f32, draw);
  const ConvOperands others = make_operands(conv, ConvKind::fprop, f32, draw);
  const ConvArguments arguments(ConvKind::fprop, operands.a.view(), operands.b.view(),
                                operands.out.view(), conv.settings());
  for (const Kernel& kernel : get_kernels(arguments)) {
    PreparedLaunch launch = kernel.compile(arguments).bind(arguments);
    launch.set_data("A", others.a.view().data());
    launch.set_data("B", others.b.view().data());
    operands.out.poison();
    launch.launch(Stream::cpu());
    for (std::int64_t i = 0; i < operands.out.count(); ++i) {
      const Extents index = operands.out.index_of(i);
      ASSERT_EQ(operands.out[index],
                tests::naive_sum(conv, ConvKind::fprop, others.a, others.b, index).value);
    }
  }
}

TEST(Convolution, wgrad_gives_equal_bits_each_time) {
  const auto line = parse_problem("conv2d_wgrad 4x14x14x24 k=40 r=3 s=3 pad=1 a=f32");
  for (const Kernel& kernel : get_kernels(line.problem, device_info(Device::cpu()))) {
    Draw draw(7, 100);
    const ConvCase conv = read_row("4,14,14,24,40,3,3|1|1>14,14").conv;
    ConvOperands operands = make_operands(conv, ConvKind::wgrad, f32, draw);
    operands.a.fill([&] { return draw(DType::float32) / 7; });
    const ConvArguments arguments(ConvKind::wgrad, operands.a.view(), operands.b.view(),
                                  operands.out.view(), conv.settings());
    kernel.run(arguments, {.stream = Stream::cpu()});
    const auto first = operands.out.bytes();
    for (int repeat = 0; repeat < 10; ++repeat) {
      kernel.run(arguments, {.stream = Stream::cpu()});
      ASSERT_EQ(operands.out.bytes(), first) << kernel.name();
    }
  }
}

}  // namespace
}  // namespace gemmery
