// SPDX-License-Identifier: Apache-2.0
// Described convolutions: kinds, types, algorithms, strides, sizes, split k.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/describe/described_conv.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/no_disk_cache.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery::describe::tests {
namespace {

using DescribeConvolutions = gemmery::tests::WithNvrtc;
using DescribeConvolutionRefusals = testing::Test;
using gemmery::tests::error_of;
using enum Element;
using Cases = std::vector<std::string_view>;

const std::vector kinds{ConvKind::fprop, ConvKind::dgrad, ConvKind::wgrad};
const OutputOp one_and_two{.alpha = 1, .beta = 2};

bool is_soak() { return std::getenv("GEMMERY_SOAK") != nullptr; }

// PyCUTLASS's sizes; in short runs one of the first twelve, which have few output channels.
Cases kept_sizes() {
  Cases cases(std::begin(gemmery::tests::kept_convolutions),
              std::end(gemmery::tests::kept_convolutions));
  if (is_soak()) return cases;
  static std::uint64_t at = gemmery::tests::random_seed();
  return {cases[at++ % 12]};
}

// All values of a list in a long run, one in a short run: a kernel takes a third of a second to
// compile.
template <class Value>
std::vector<Value> sampled(std::vector<Value> values) {
  static std::uint64_t at = gemmery::tests::random_seed();
  if (!is_soak()) values = {values[at++ % values.size()]};
  return values;
}

ConvSketch sketch_of(ConvKind kind, Element ab, Element cd) {
  ConvSketch sketch{.kind = kind, .tile = {32, 32, 32}, .stages = 2, .ab = ab, .cd = cd};
  sketch.warps = {2, 1, 1};
  if (ab == float32) sketch.instruction = {16, 8, 8};
  if (ab == float64) {
    sketch.instruction = {8, 8, 4};
    sketch.tile = {32, 32, 16};
    sketch.accumulator = float64;
  }
  if (ab == int8) {
    sketch.instruction = {16, 8, 32};
    sketch.tile = {32, 32, 64};
    sketch.accumulator = int32;
  }
  return sketch;
}

void expect_every_kind(Element element) {
  for (const ConvKind kind : element == float16 ? kinds : sampled(kinds))
    expect_exact(sketch_of(kind, element, element), kept_sizes());
}

// --- types --------------------------------------------------------------------------------------

TEST_F(DescribeConvolutions, row_34_f64_nhwc) { expect_every_kind(float64); }
TEST_F(DescribeConvolutions, row_34_f32_nhwc) { expect_every_kind(float32); }
TEST_F(DescribeConvolutions, row_34_f16_nhwc) { expect_every_kind(float16); }
TEST_F(DescribeConvolutions, row_34_bf16_nhwc) { expect_every_kind(bfloat16); }

TEST_F(DescribeConvolutions, row_34_simt_nhwc) {
  for (const ConvKind kind : sampled(kinds)) expect_exact(simt_sketch(kind), kept_sizes());
}

TEST_F(DescribeConvolutions, row_35_int8_fprop) {
  ConvSketch sketch = sketch_of(ConvKind::fprop, int8, int32);
  expect_exact(sketch, kept_sizes());
  sketch.cd = int8;
  sketch.alignments = std::array{16, 16, 8};
  sketch.functor = FastLinearCombinationClamp(int8, 8);
  DescribedConv conv(sketch, read_case("1,7,8,64,8,3,3|1|1>7,8"), {.output_op = one_and_two});
  conv.run();
  EXPECT_EQ(
      conv.first_difference([](double t, double c) { return std::clamp(t + 2 * c, -128., 127.); }),
      "");
}

TEST_F(DescribeConvolutions, row_36_interleaved_int8_fprop) {
  ConvSketch sketch = sketch_of(ConvKind::fprop, int8, int8);
  sketch.is_interleaved = true;
  sketch.functor = FastLinearCombinationClamp(int8, 16);
  for (const char* const text :
       {"1,3,4,32,64,3,3|1|1>3,4", "3,5,4,64,32,2,3|0,1,1,0|2,1>3,3", "2,1,1,96,32,1,1|0|1>1,1"}) {
    DescribedConv conv(sketch, read_case(text), {.output_op = one_and_two});
    conv.run();
    EXPECT_EQ(conv.first_difference(
                  [](double t, double c) { return std::clamp(t + 2 * c, -128., 127.); }),
              "")
        << text;
    EXPECT_TRUE(conv.kept_inputs());
  }
}

TEST_F(DescribeConvolutionRefusals, row_36_int8_gradients_are_refused_by_name) {
  for (const bool is_interleaved : {false, true}) {
    for (const ConvKind kind : {ConvKind::dgrad, ConvKind::wgrad}) {
      ConvSketch sketch = sketch_of(kind, int8, int32);
      sketch.is_interleaved = is_interleaved;
      if (is_interleaved) sketch.cd = int8;
      const Error error = error_of([&] { Conv2dOperation(description_of(sketch)); });
      EXPECT_EQ(error.operand(), "conv_kind") << error.what();
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    }
  }
  ConvSketch half = sketch_of(ConvKind::fprop, float16, float16);
  half.is_interleaved = true;
  EXPECT_EQ(error_of([&] { Conv2dOperation(description_of(half)); }).operand(), "A.element");
}

// --- kinds --------------------------------------------------------------------------------------

TEST_F(DescribeConvolutions, row_62_fprop) {
  const ConvSketch sketch = sketch_of(ConvKind::fprop, float16, float16);
  if (is_soak()) expect_exact(sketch, kept_sizes());
  expect_exact(sketch, {"2,9,9,32,32,3,3|0|1|d4>1,1", "1,6,6,8,8,3,3|0,2,2,0|1>6,6",
                        "1,14,14,64,64,1,1|0|1>14,14", "2,6,6,16,32,3,3|0|1|g2>4,4"});
}

TEST_F(DescribeConvolutions, row_63_dgrad_stores_what_no_tap_reaches) {
  const ConvSketch sketch = sketch_of(ConvKind::dgrad, float16, float16);
  if (is_soak()) expect_exact(sketch, kept_sizes());
  // Most pixels of dx have no tap, so they are 2 * C.
  expect_exact(sketch, {"1,12,13,24,40,1,1|0|3,5>4,3", "2,9,9,16,16,3,3|0|1|d2>5,5"});
  // beta = 0: zeros, for any contents of D and C.
  expect_exact(sketch, {"1,12,13,24,40,1,1|0|3,5>4,3"}, {.output_op = {.alpha = 1, .beta = 0}});
}

TEST_F(DescribeConvolutions, row_64_wgrad) {
  const ConvSketch sketch = sketch_of(ConvKind::wgrad, float16, float16);
  expect_exact(sketch, kept_sizes());
  expect_exact(sketch,
               {"2,6,6,8,8,3,3|1|1>6,6", "2,7,7,16,8,1,1|0|1>7,7", "2,6,6,16,32,3,3|0|1|g2>4,4"});
}

// --- algorithms ---------------------------------------------------------------------------------

TEST_F(DescribeConvolutions, row_65_analytic_takes_every_filter) {
  for (const ConvKind kind : kinds) {
    ConvSketch sketch = sketch_of(kind, float16, float16);
    sketch.algorithm = IteratorAlgorithm::analytic;
    expect_exact(sketch, {"1,4,5,8,8,33,33|16|1>4,5"});
    expect_exact(sketch, sampled(Cases{"2,7,9,64,8,5,5|1|1>5,7", "1,11,7,64,8,3,3|1|2>6,4"}));
  }
}

TEST_F(DescribeConvolutions, row_66_optimized_takes_32_taps_along_a_dimension) {
  for (const ConvKind kind : kinds) {
    const ConvSketch sketch = sketch_of(kind, float16, float16);
    expect_exact(sketch, {"1,3,3,8,8,32,32|16|1>4,4"});
    for (const auto& [text, field] : {std::pair{"1,3,3,8,8,33,1|16,16,0,0|1>3,3", "problem_size.R"},
                                      {"1,3,3,8,8,1,33|0,0,16,16|1>3,3", "problem_size.S"}}) {
      const Error error = error_of([&] { DescribedConv(sketch, read_case(text)).arguments(); });
      EXPECT_EQ(error.operand(), field) << error.what();
    }
  }
  // A strided dgrad by `optimized`, which PyCUTLASS refuses to some strides.
  expect_exact(sketch_of(ConvKind::dgrad, float16, float16), {"1,9,7,8,8,3,3|1|2>5,4"});
}

ConvSketch few_channels(IteratorAlgorithm algorithm, int channels) {
  ConvSketch sketch = sketch_of(ConvKind::fprop, float16, float16);
  sketch.algorithm = algorithm;
  sketch.alignments = std::array{channels, channels, 8};
  return sketch;
}

std::string stem_of(int channels) {
  return "1,8,8," + std::to_string(channels) + ",16,3,3|1|2>4,4";
}

TEST_F(DescribeConvolutions, row_67_fixed_channels) {
  for (const int channels : {2, 4, 8}) {
    const ConvSketch sketch = few_channels(IteratorAlgorithm::fixed_channels, channels);
    expect_exact(sketch, {stem_of(channels)});
    const Error error =
        error_of([&] { DescribedConv(sketch, read_case(stem_of(2 * channels))).arguments(); });
    EXPECT_EQ(error.operand(), "problem_size.C") << error.what();
  }
}

TEST_F(DescribeConvolutions, row_68_few_channels) {
  for (const auto& [channels, alignment] :
       {std::pair{1, 1}, std::pair{2, 2}, std::pair{4, 4}, std::pair{6, 2}})
    expect_exact(few_channels(IteratorAlgorithm::few_channels, alignment), {stem_of(channels)});
  const ConvSketch sketch = few_channels(IteratorAlgorithm::few_channels, 2);
  const Error error = error_of([&] { DescribedConv(sketch, read_case(stem_of(3))).arguments(); });
  EXPECT_EQ(error.operand(), "A") << error.what();
}

TEST_F(DescribeConvolutionRefusals, row_68_only_fprop_on_tensor_cores_has_few_channels) {
  for (const IteratorAlgorithm algorithm :
       {IteratorAlgorithm::fixed_channels, IteratorAlgorithm::few_channels}) {
    for (const ConvKind kind : {ConvKind::dgrad, ConvKind::wgrad}) {
      ConvSketch sketch = few_channels(algorithm, 2);
      sketch.kind = kind;
      const Error error = error_of([&] { Conv2dOperation(description_of(sketch)); });
      EXPECT_EQ(error.operand(), "iterator_algorithm") << error.what();
    }
    ConvSketch simt = simt_sketch(ConvKind::fprop);
    simt.algorithm = algorithm;
    EXPECT_EQ(error_of([&] { Conv2dOperation(description_of(simt)); }).operand(),
              "iterator_algorithm");
  }
}

// --- strides ------------------------------------------------------------------------------------

TEST_F(DescribeConvolutions, row_69_strides) {
  for (const ConvKind kind : kinds) {
    for (const char* const stride : {"2,2", "3,3", "1,2", "2,1", "6,2", "3,5"})
      expect_exact(sketch_of(kind, float16, float16),
                   {"1,9,8,8,16,3,3|1|" + std::string(stride) + ">0,0"});
  }
}

TEST_F(DescribeConvolutions, row_69_swizzles_of_a_strided_dgrad) {
  ConvSketch sketch = sketch_of(ConvKind::dgrad, float16, float16);
  for (const SwizzlingFunctor swizzle :
       sampled(std::vector{SwizzlingFunctor::StridedDgradIdentitySwizzle4,
                           SwizzlingFunctor::StridedDgradHorizontalSwizzle})) {
    sketch.swizzle = swizzle;
    expect_exact(sketch, {"1,9,8,8,16,3,3|1|2>5,4"});
  }
  sketch.support = StrideSupport::Unity;
  EXPECT_EQ(error_of([&] { Conv2dOperation(description_of(sketch)); }).operand(),
            "swizzling_functor");
  sketch.kind = ConvKind::fprop;
  EXPECT_EQ(error_of([&] { Conv2dOperation(description_of(sketch)); }).operand(),
            "swizzling_functor");
  Sketch gemm;
  gemm.swizzle = SwizzlingFunctor::StridedDgradIdentitySwizzle1;
  EXPECT_EQ(error_of([&] { operation_of(gemm); }).operand(), "swizzling_functor");
}

TEST_F(DescribeConvolutions, row_70_unity) {
  const ConvCase unity = read_case("1,9,8,16,16,3,3|1|1>9,8");
  const Conv2dOptions options{.output_op = one_and_two};
  for (const ConvKind kind : kinds) {
    ConvSketch sketch = sketch_of(kind, float16, float16);
    DescribedConv strided(sketch, unity, options);
    strided.run();
    EXPECT_EQ(strided.first_difference(), "");
    sketch.support = StrideSupport::Unity;
    DescribedConv without(sketch, unity, options);
    without.run();
    EXPECT_EQ(without.result(), strided.result());
    if (kind != ConvKind::dgrad) continue;
    const Error error =
        error_of([&] { DescribedConv(sketch, read_case("1,9,8,16,16,3,3|1|2>5,4")).arguments(); });
    EXPECT_EQ(error.operand(), "problem_size.stride") << error.what();
  }
}

// --- sizes and arguments ------------------------------------------------------------------------

TEST_F(DescribeConvolutions, row_89_arguments) {
  const ConvSketch sketch = sketch_of(ConvKind::fprop, float16, float16);
  const ConvCase conv = read_case("1,7,8,16,8,3,3|1|1>7,8");
  DescribedConv plain(sketch, conv, {.split_k_mode = SplitKMode::None_, .output_op = one_and_two});
  plain.run();
  DescribedConv serial(sketch, conv, {.output_op = one_and_two});
  serial.run();
  EXPECT_EQ(plain.first_difference(), "");
  EXPECT_EQ(plain.result(), serial.result()) << "Serial with one slice is a plain convolution";
  EXPECT_EQ(plain.arguments().kernels().size(), 1U);
  DescribedConv with_bias(sketch, conv, {.output_op = one_and_two, .bias = true});
  with_bias.run();
  EXPECT_EQ(with_bias.first_difference(), "");
  const auto operand_of = [&](const Conv2dOptions& options) {
    return error_of([&] { DescribedConv(sketch, conv, options).arguments(); }).operand();
  };
  EXPECT_EQ(operand_of({.split_k_mode = SplitKMode::None_, .split_k_slices = 2}), "split_k_slices");
  EXPECT_EQ(operand_of({.split_k_slices = 0}), "split_k_slices");
  EXPECT_EQ(operand_of({.output_op = {.alpha = 1, .beta = 0, .activation_args = {1}}}),
            "output_op.activation_args");
}

TEST_F(DescribeConvolutions, row_89_pointers_and_channels_keep_the_alignment) {
  const ConvSketch sketch = sketch_of(ConvKind::fprop, float16, float16);
  const Conv2dOperation operation(description_of(sketch));
  alignas(16) static std::byte memory[64];
  const Conv2dProblemSize size{.N = 1, .H = 8, .W = 8, .C = 8, .K = 8, .R = 3, .S = 3};
  const auto refused = [&](const Conv2dProblemSize& of, const Conv2dPointers& pointers,
                           const Conv2dOptions& options = {}) {
    return error_of([&] { Conv2dArguments(operation, of, pointers, test_device(), options); })
        .operand();
  };
  EXPECT_EQ(refused(size, {memory + 2, memory, nullptr, memory}), "A");
  EXPECT_EQ(refused(size, {memory, nullptr, nullptr, memory}), "B");
  EXPECT_EQ(refused(size, {memory, memory, nullptr, nullptr}), "D");
  EXPECT_EQ(refused(size, {memory, memory, nullptr, memory}, {.output_op = one_and_two}), "C");
  Conv2dProblemSize other = size;
  other.C = 12;
  EXPECT_EQ(refused(other, {memory, memory, nullptr, memory}), "A");
  other = size;
  other.K = 6;
  EXPECT_EQ(refused(other, {memory, memory, nullptr, memory}), "C");
  other = size;
  other.stride = {1, 0};
  EXPECT_EQ(refused(other, {memory, memory, nullptr, memory}), "problem_size.stride[1]");
  other = size;
  other.groups = 3;
  EXPECT_EQ(refused(other, {memory, memory, nullptr, memory}), "problem_size.groups");
  other = size;
  other.R = 9;
  EXPECT_EQ(refused(other, {memory, memory, nullptr, memory}), "problem_size.H");
}

TEST_F(DescribeConvolutions, row_90_problem_sizes) {
  const Conv2dProblemSize size = size_of(read_case("1,13,11,8,8,3,3|1|2|d2>0,0"));
  EXPECT_EQ(size.P(), 6) << "torch's formula";
  EXPECT_EQ(implicit_gemm_problem_size(ConvKind::fprop, size), (GemmCoord{6 * 5, 8, 72}));
  EXPECT_EQ(implicit_gemm_problem_size(ConvKind::dgrad, size), (GemmCoord{13 * 11, 8, 72}));
  EXPECT_EQ(implicit_gemm_problem_size(ConvKind::wgrad, size), (GemmCoord{8, 72, 6 * 5}));
  struct Given {
    const char* text;
    std::array<std::int64_t, 2> output;
  };
  // PyCUTLASS's formula, (H + 2 * pad - R * dilation) / stride + 1, gives less for these; its tests
  // set the last two explicitly.
  for (const auto& [text, output] :
       {Given{"1,13,11,8,8,3,3|1|2|d2>0,0", {5, 4}}, Given{"1,13,11,8,8,3,3|1|2|d3>0,0", {4, 3}},
        Given{"2,4,5,8,8,3,6|0|1>0,0", {3, 3}}, Given{"2,2,3,8,8,3,5|1|1>0,0", {1, 1}}}) {
    for (const ConvKind kind : kinds) {
      DescribedConv conv(sketch_of(kind, float16, float16), read_case(text),
                         {.output_op = one_and_two}, output);
      conv.run();
      EXPECT_EQ(conv.first_difference(), "") << text << " " << name(kind);
    }
    expect_exact(sketch_of(ConvKind::fprop, float16, float16), {"1,13,11,8,8,3,3|1|2|d3>0,0"});
  }
}

TEST_F(DescribeConvolutions, row_90_padding_of_two_sides_and_groups) {
  for (const ConvKind kind : kinds)
    expect_exact(sketch_of(kind, float16, float16),
                 {"2,6,5,16,32,3,2|2,0,0,1|1|g2>6,5", "1,6,6,8,8,3,3|0,2,2,0|1>6,6"});
}

TEST_F(DescribeConvolutions, row_91_convolution_mode_reverses_the_taps) {
  for (const ConvKind kind : kinds) {
    ConvCase conv = read_case("1,7,8,8,8,3,2|1|1>7,9");
    conv.mode = ConvMode::convolution;
    DescribedConv reversed(sketch_of(kind, float16, float16), conv, {.output_op = one_and_two});
    reversed.run();
    EXPECT_EQ(reversed.first_difference(), "");
  }
}

// --- split k ------------------------------------------------------------------------------------

// PyCUTLASS's size with all extents reduced, but as many slices.
constexpr const char* split_case = "2,5,3,64,64,3,3|1|1>5,3";

TEST_F(DescribeConvolutions, row_92_split_k) {
  const std::string_view text = is_soak() ? "1,17,11,288,160,3,3|1|1>17,11" : split_case;
  for (const ConvKind kind : kinds) {
    for (const SplitKMode mode : {SplitKMode::Serial, SplitKMode::Parallel}) {
      for (const int slices : sampled(std::vector{1, 2, 3, 4, 201})) {
        expect_exact(
            sketch_of(kind, float16, float16), {text},
            {.split_k_mode = mode, .output_op = {.alpha = 2, .beta = 2}, .split_k_slices = slices});
      }
    }
  }
}

TEST_F(DescribeConvolutions, row_92_split_k_in_two_passes) {
  const Conv2dOptions options{.output_op = {.alpha = 2, .beta = 2}, .split_k_slices = 3};
  for (const ConvKind kind : sampled(kinds)) expect_exact(simt_sketch(kind), {split_case}, options);
  expect_exact(sketch_of(ConvKind::dgrad, float16, float16), {"1,9,8,16,96,3,3|1|2>5,4"}, options);
}

TEST_F(DescribeConvolutions, row_98_a_reduction_by_hand) {
  for (const ConvKind kind : kinds) {
    ConvSketch sketch = sketch_of(kind, float16, float16);
    DescribedConv conv(sketch, read_case(split_case),
                       {.split_k_mode = SplitKMode::Parallel,
                        .output_op = {.alpha = 1, .beta = 1},
                        .split_k_slices = 3});
    const Conv2dArguments arguments = conv.arguments();
    const Partials partials = arguments.partials();
    EXPECT_EQ(partials.dtype, DType::float32);
    EXPECT_GT(partials.slices, 1);
    EXPECT_LE(partials.slices, 3);
    const ReductionOperation reduction({.C = {float16, Layout::RowMajor, 8},
                                        .element_accumulator = float32,
                                        .element_compute = float32,
                                        .epilogue_functor = LinearCombinationGeneric(
                                            epilogue::Activation::leaky_relu, float16, 8, float32),
                                        .count = 8});
    conv.operation().run(arguments, conv.stream());
    conv.download();
    EXPECT_NE(conv.first_difference(), "") << "D is left to the reduction";
    reduction.run(
        ReductionArguments(reduction, partials, conv.memory(3).data(), conv.memory(2).data(),
                           reduction.epilogue_type(0.5, 1, {0.25})),
        conv.stream());
    conv.download();
    EXPECT_EQ(conv.first_difference([](double sum, double c) {
      const double t = 0.5 * sum + c;
      return t > 0 ? t : 0.25 * t;
    }),
              "");
  }
}

// --- operations as values -----------------------------------------------------------------------

TEST_F(DescribeConvolutionRefusals, by_field) {
  const auto operand_of = [](auto&& change) {
    Conv2dDescription description = description_of(sketch_of(ConvKind::fprop, float16, float16));
    change(description);
    return error_of([&] { Conv2dOperation{description}; }).operand();
  };
  using D = Conv2dDescription;
  EXPECT_EQ(operand_of([](D& it) { it.A.layout = Layout::RowMajor; }), "A.layout");
  EXPECT_EQ(operand_of([](D& it) { it.C.layout = Layout::TensorNC32HW32; }), "C.layout");
  EXPECT_EQ(operand_of([](D& it) { it.A.alignment = 16; }), "A.alignment");
  EXPECT_EQ(operand_of([](D& it) { it.compute_capability = 75; }), "compute_capability");
  EXPECT_EQ(operand_of([](D& it) {
              it.tile_description.warp_count = {3, 1, 1};
            }),
            "tile_description.warp_count");
  EXPECT_EQ(operand_of([](D& it) {
              it.epilogue_functor =
                  EpilogueVisitTree(epilogue::Program("D = accum"), {}, float16, 8);
            }),
            "epilogue_functor");
}

TEST_F(DescribeConvolutionRefusals, an_operation_is_a_kernel_that_its_name_finds) {
  for (const ConvKind kind : kinds) {
    const Conv2dDescription description = description_of(sketch_of(kind, float16, float16));
    const Conv2dOperation operation(description);
    EXPECT_EQ(find_kernel(operation.name()), Kernel(operation));
    EXPECT_EQ(operation, Conv2dOperation(description));
    EXPECT_EQ(operation.emit(), Conv2dOperation(description).emit());
    EXPECT_NE(to_string(description).find(name(kind)), std::string::npos);
  }
}

}  // namespace
}  // namespace gemmery::describe::tests
