// SPDX-License-Identifier: Apache-2.0
// Convolutions: valid and invalid arguments, errors, problem lines.
#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "operation/conv_windows.hpp"
#include "tests/support/error_of.hpp"

namespace gemmery {
namespace {

using tests::error_of;

alignas(16) float memory[4096];

Tensor tensor(std::vector<std::int64_t> shape) {
  return Tensor(memory, DType::float32, std::span<const std::int64_t>(shape));
}
Tensor result(std::vector<std::int64_t> shape) {
  static float other[4096];
  return Tensor(other, DType::float32, std::span<const std::int64_t>(shape));
}

ConvArguments fprop(const Tensor& x, const Tensor& w, const Tensor& y,
                    const ConvSettings& settings = {}, const GemmOptions& options = {}) {
  return ConvArguments(ConvKind::fprop, x, w, y, settings, options);
}

// --- refusals -----------------------------------------------------------------------------------

struct Refusal {
  std::string operand, expected, got;
  std::function<void()> make;
};

TEST(ConvArguments, refuse_by_operand_with_what_was_expected) {
  const Tensor x = tensor({2, 6, 6, 4});
  const Tensor w = tensor({8, 3, 3, 4});
  const Tensor y = result({2, 4, 4, 8});
  const std::vector<Refusal> refusals{
      {"conv2d_fprop: A (x)", "channels last: adjacent channels",
       "shape (2, 6, 6, 4) with strides (144, 6, 1, 36)",
       [&] {
         fprop(Tensor(memory, DType::float32, {2, 6, 6, 4}, {144, 6, 1, 36}), w, y);
       }},
      {"conv2d_fprop: out (y)", "channels last: adjacent channels",
       "shape (2, 4, 4, 8) with strides (128, 4, 1, 16)",
       [&] {
         fprop(x, w, Tensor(y.data(), DType::float32, {2, 4, 4, 8}, {128, 4, 1, 16}));
       }},
      {"conv2d_wgrad: out (dw)", "adjacent taps of one channel",
       "shape (1, 3, 3, 1) with strides (45, 15, 5, 1)",
       [&] {
         ConvArguments(ConvKind::wgrad, tensor({1, 4, 4, 1}), tensor({1, 6, 6, 1}),
                       Tensor(y.data(), DType::float32, {1, 3, 3, 1}, {45, 15, 5, 1}));
       }},
      {"conv2d_fprop: A (x)", "rank 4, as out has", "shape (6, 6, 4)",
       [&] {
         fprop(tensor({6, 6, 4}), w, y);
       }},
      {"conv1d_fprop: out (y)", "a tensor (N, Q, K), (N, P, Q, K) or (N, O, P, Q, K)",
       "shape (4, 8)",
       [&] {
         fprop(x, w, result({4, 8}));
       }},
      {"conv2d_fprop: B (w)", "4 channels (as x has)", "3, in shape (8, 3, 3, 3)",
       [&] {
         fprop(x, tensor({8, 3, 3, 3}), y);
       }},
      {"conv2d_fprop: out (y)", "8 filters (as w has)", "7, in shape (2, 4, 4, 7)",
       [&] {
         fprop(x, w, result({2, 4, 4, 7}));
       }},
      {"conv2d_fprop: out (y)", "2 images (as x has)", "3, in shape (3, 4, 4, 8)",
       [&] {
         fprop(x, w, result({3, 4, 4, 8}));
       }},
      {"conv2d_fprop: y along height",
       "4, from an image of 6, padding 0 and 0, filter 3, dilation 1, stride 1", "5",
       [&] {
         fprop(x, w, result({2, 5, 4, 8}));
       }},
      {"conv2d_fprop: filter along width", "at most the padded image, 6",
       "3 taps that reach over 7",
       [&] {
         fprop(x, w, y, {.dilation = {1, 3}});
       }},
      {"conv2d_fprop: stride along height", "a number from 1", "0",
       [&] { fprop(x, w, y, {.stride = 0}); }},
      {"conv2d_fprop: lower padding along height", "a number from 0", "-1",
       [&] { fprop(x, w, y, {.padding = -1}); }},
      {"conv2d_fprop: dilation along width", "a number from 1", "0",
       [&] {
         fprop(x, w, y, {.dilation = {1, 0}});
       }},
      {"conv2d_fprop: stride", "1 number, or 2, one for each spatial dimension", "3 numbers",
       [&] {
         fprop(x, w, y, {.stride = {1, 1, 1}});
       }},
      {"conv2d_fprop: groups", "a divisor of the 4 channels", "3",
       [&] { fprop(x, w, y, {.groups = 3}); }},
      {"conv2d_fprop: groups", "a divisor of the 4 channels", "0",
       [&] { fprop(x, w, y, {.groups = 0}); }},
      {"conv2d_fprop: groups", "a divisor of the 7 filters", "2",
       [&] {
         fprop(x, tensor({7, 3, 3, 2}), result({2, 4, 4, 7}), {.groups = 2});
       }},
      {"conv2d_fprop: B (w)", "2 channels of each of 2 groups (as x has)",
       "4, in shape (8, 3, 3, 4)", [&] { fprop(x, w, y, {.groups = 2}); }},
      {"conv2d_fprop: C", "a shape that broadcasts to out's (2, 4, 4, 8)", "(8, 1, 1)",
       [&] {
         fprop(x, w, y, {}, {.c = tensor({8, 1, 1}), .beta = 1});
       }},
      {"conv2d_fprop: out", "pixels (of dw: taps) at one distance from each other",
       "shape (2, 4, 4, 8) with strides (200, 40, 8, 1)",
       [&] {
         fprop(x, w, Tensor(y.data(), DType::float32, {2, 4, 4, 8}, {200, 40, 8, 1}));
       }},
      {"conv2d_fprop: C",
       "a tensor that repeats along all pixels or none (of dw: taps and channels)",
       "shape (1, 4, 1, 1) with strides (4, 1, 1, 1)",
       [&] {
         fprop(x, w, y, {}, {.c = tensor({1, 4, 1, 1}), .beta = 1});
       }},
      {"gemm: out", "memory that shares nothing with A", "overlapping memory",
       [&] {
         fprop(x, w, tensor({2, 4, 4, 8}));
       }},
  };
  for (const Refusal& refusal : refusals) {
    const Error error = error_of(refusal.make);
    EXPECT_EQ(error.operand(), refusal.operand);
    EXPECT_EQ(error.expected(), refusal.expected);
    EXPECT_EQ(error.got(), refusal.got);
  }
}

TEST(ConvArguments, images_by_height_and_width_are_told_what_to_do) {
  const Error error = error_of([] {
    fprop(Tensor(memory, DType::float32, {2, 6, 6, 4}, {144, 6, 1, 36}), tensor({8, 3, 3, 4}),
          result({2, 4, 4, 8}));
  });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_NE(error.hint().find("torch.channels_last"), std::string::npos) << error.hint();
}

// torch gives such tensors either set of strides.
TEST(ConvArguments, strides_of_extents_of_one_do_not_matter) {
  const Tensor w = tensor({8, 3, 3, 1});
  const Tensor y = result({2, 4, 4, 8});
  const auto problem_of = [&](std::initializer_list<std::int64_t> strides) {
    return fprop(Tensor(memory, DType::float32, {2, 6, 6, 1}, strides), w, y).problem();
  };
  EXPECT_EQ(problem_of({36, 6, 1, 36}), problem_of({36, 6, 1, 1}));
  const Tensor pointwise = tensor({8, 1, 1, 4});
  const Tensor pixels = result({2, 1, 1, 8});
  EXPECT_EQ(fprop(Tensor(memory, DType::float32, {2, 1, 1, 4}, {4, 1, 1, 1}), pointwise, pixels)
                .problem(),
            fprop(Tensor(memory, DType::float32, {2, 1, 1, 4}, {4, 4, 4, 1}), pointwise, pixels)
                .problem());
}

TEST(ConvArguments, describe_their_gemm) {
  const auto settings = ConvSettings{.padding = 1, .groups = 2};
  const GemmProblem fprop_problem =
      fprop(tensor({2, 6, 5, 4}), tensor({8, 3, 3, 2}), result({2, 6, 5, 8}), settings).problem();
  EXPECT_EQ(fprop_problem.m, 60);
  EXPECT_EQ(fprop_problem.n, 4);
  EXPECT_EQ(fprop_problem.k, 18);
  EXPECT_EQ(fprop_problem.l, 2);
  EXPECT_EQ(fprop_problem.flops(), 2.0 * 60 * 8 * 18);
  EXPECT_EQ(fprop_problem.bytes(), 4.0 * (240 + 144 + 480));
  const GemmProblem wgrad = ConvArguments(ConvKind::wgrad, tensor({2, 6, 5, 8}),
                                          tensor({2, 6, 5, 4}), result({8, 3, 3, 2}), settings)
                                .problem();
  EXPECT_EQ(wgrad.m, 4);
  EXPECT_EQ(wgrad.n, 18);
  EXPECT_EQ(wgrad.k, 60);
  const GemmProblem dgrad =
      ConvArguments(ConvKind::dgrad, tensor({2, 3, 3, 8}), tensor({8, 3, 3, 2}),
                    result({2, 6, 5, 4}), {.stride = 2, .padding = 1, .groups = 2})
          .problem();
  EXPECT_EQ(dgrad.m, 60);
  EXPECT_EQ(dgrad.n, 2);
  EXPECT_EQ(dgrad.k, 36);
}

TEST(ConvArguments, set_data_keeps_the_alignment) {
  ConvArguments arguments = fprop(tensor({2, 6, 6, 4}), tensor({8, 3, 3, 4}), result({2, 4, 4, 8}));
  EXPECT_EQ(arguments.problem().a.alignment, 16);
  const Error error = error_of([&] { arguments.set_data("A", memory + 1); });
  EXPECT_EQ(error.got(), "an alignment of 4 bytes");
  arguments.set_data("A", memory + 8);
  EXPECT_EQ(arguments.as_gemm().a().data(), memory + 8);
}

// --- products -----------------------------------------------------------------------------------

// The number of pairs of a pixel of dx and a tap that have a pixel of dy, along one dimension.
std::int64_t count_pairs(std::int64_t image, std::int64_t filter, std::int64_t lower,
                         std::int64_t stride, std::int64_t dilation) {
  std::int64_t count = 0;
  for (std::int64_t h = 0; h < image; ++h)
    for (std::int64_t r = 0; r < filter; ++r)
      count += (h + lower - r * dilation) % stride == 0 ? 1 : 0;
  return count;
}

// Phases of a strided dgrad have no products with zeros between pixels of dy, for any stride and
// dilation.
TEST(ConvWindows, strided_dgrad_multiplies_no_zero_between_pixels) {
  for (std::int64_t stride = 1; stride <= 6; ++stride)
    for (std::int64_t dilation = 1; dilation <= 6; ++dilation)
      for (std::int64_t filter = 1; filter <= 5; ++filter) {
        const std::int64_t image = 17 + dilation * filter;
        const std::string line = "conv2d_dgrad 2x" + std::to_string(image) +
                                 "x9x3 k=5 r=" + std::to_string(filter) +
                                 " s=2 pad=1 stride=" + std::to_string(stride) +
                                 ",2 dilation=" + std::to_string(dilation) + ",3 a=f32";
        std::int64_t products = 0;
        for (const operation::WindowPart& part :
             operation::windows_of(*parse_problem(line).problem.convolution)) {
          const auto count = [](const std::array<std::int64_t, 4>& extents) {
            return extents[0] * extents[1] * extents[2] * extents[3];
          };
          products += count(part.a.pixels) * count(part.a.taps);
        }
        EXPECT_EQ(products, 2 * 5 * count_pairs(image, filter, 1, stride, dilation) *
                                count_pairs(9, 2, 1, 2, 3))
            << line;
      }
}

// Parts for a million phases would take a gigabyte, so each is made on demand.
TEST(ConvWindows, as_many_phases_as_pixels_are_made_one_at_a_time) {
  const Convolution convolution =
      *parse_problem("conv2d_dgrad 1x1024x1024x3 k=5 r=1024 s=1024 stride=1024 a=f32")
           .problem.convolution;
  const operation::WindowParts parts = operation::windows_of(convolution);
  ASSERT_EQ(parts.size(), std::size_t{1} << 20);
  for (const std::size_t index :
       {std::size_t{0}, std::size_t{1}, std::size_t{4 * 1024 + 7}, parts.size() - 1}) {
    const operation::WindowPart part = parts[index];
    const auto pixel = static_cast<std::int64_t>(index);
    EXPECT_EQ(part.rows[0], pixel) << "its only pixel";
    EXPECT_EQ(part.b.origin[1], pixel / 1024) << "its only tap";
    EXPECT_EQ(part.b.origin[2], pixel % 1024);
  }
}

// --- lines --------------------------------------------------------------------------------------

TEST(ConvLine, prints_what_it_reads) {
  for (const char* const line : {
           "conv2d_fprop 32x56x56x64 k=64 r=3 s=3 pad=1 stride=2 a=f16",
           "conv1d_fprop 2x100x8 k=16 s=4 pad=3:0 a=bf16 out=f32",
           "conv3d_dgrad 2x16x10x16x64 k=96 t=3 r=4 s=5 pad=1:0,0:2,1:0 stride=2,2,3 "
           "dilation=2,2,3 a=f32",
           "conv2d_wgrad 2x9x10x4 k=6 r=3 s=2 pad=1 groups=2 a=f16/ld=16 b=f16/ld=8 out=f32",
           "conv2d_fprop 2x8x8x8 k=8 r=3 s=3 mode=convolution a=s8 out=s32",
           "conv2d_fprop 2x8x8x8 k=8 r=3 s=3 a=f32/strides=2000,100,10 b=f32/strides=100,30,9",
           "conv2d_fprop 2x8x8x8 k=8 r=3 s=3 a=f32/align=4 out=f32/ld=9",
           "conv2d_fprop 2x8x8x8 k=8 r=3 s=3 batch=images a=f32 out=f32/batch=400",
           "conv1d_dgrad 1x14x3 k=5 s=3 pad=1 dilation=4 q=5 a=f32",
           "conv2d_fprop 2x8x8x8 k=8 r=1 s=1 a=f32 c=f32 alpha=2 beta=3",
           "conv2d_fprop 2x8x8x8 k=8 r=3 s=3 a=f32 epilogue=\"D = relu(accum + bias)\" bias=f32[n]",
           "conv2d_fprop 2x8x8x8 k=8 r=3 s=3 a=f32 epilogue=\"D = accum + k\" epilogue.k=f32[n]",
           "conv2d_fprop 0x8x8x8 k=8 r=3 s=3 a=f32",
       }) {
    const ProblemLine read = parse_problem(line);
    EXPECT_EQ(to_string(read), line);
    EXPECT_EQ(parse_problem(to_string(read)), read);
    EXPECT_EQ(hash_value(read.problem), hash_value(parse_problem(line).problem));
  }
}

TEST(ConvLine, is_the_problem_of_arguments) {
  const GemmProblem problem = fprop(tensor({2, 6, 5, 4}), tensor({8, 3, 3, 2}),
                                    result({2, 6, 5, 8}), {.padding = 1, .groups = 2})
                                  .problem();
  EXPECT_EQ(to_string(problem), "conv2d_fprop 2x6x5x4 k=8 r=3 s=3 pad=1 groups=2 a=f32");
  EXPECT_EQ(parse_problem(to_string(problem)).problem, problem);
}

TEST(ConvLine, problems_that_differ_hash_differently) {
  const auto hash = [](const char* line) { return hash_value(parse_problem(line).problem); };
  EXPECT_NE(hash("conv2d_fprop 2x8x8x8 k=8 r=3 s=3 pad=1 a=f16"),
            hash("conv2d_fprop 2x8x8x8 k=8 r=3 s=3 pad=1 mode=convolution a=f16"));
  EXPECT_NE(hash("conv2d_fprop 2x8x8x8 k=8 r=3 s=3 pad=1 a=f16"),
            hash("conv2d_fprop 2x8x8x8 k=8 r=3 s=3 pad=1 a=f16/strides=512,64,16"));
}

TEST(ConvLine, refuses_by_word) {
  const std::vector<std::pair<const char*, const char*>> rows{
      {"conv2d_fprop 32x56x56x64 r=3 s=3 a=f16", "a field k= with the number of filters"},
      {"conv2d_fprop 32x56x56x64 k=8 r=3 a=f16", "a field s= with the filter's extent"},
      {"conv2d_fprop 32x56x64 k=8 r=3 s=3 a=f16", "NxHxWxC, the extents of the images"},
      {"conv1d_fprop 32x56x64 k=8 r=3 s=3 a=f16", "no such field of a conv1d"},
      {"conv2d_fprop 2x8x8x8 k=8 r=3 s=3 pad=1,2,3 a=f16",
       "one number, or 2 with commas between them"},
      {"conv2d_fprop 2x8x8x8 k=8 r=3 s=3 pad=1:2:3 a=f16", "LOWER:UPPER of each dimension"},
      {"conv2d_fprop 2x8x8x8 k=8 r=9 s=3 a=f16", "at most the padded image, 8"},
      {"conv2d_fprop 2x8x8x8 k=8 r=3 s=3 stride=0 a=f16", "a number from 1"},
      {"conv2d_fprop 2x8x8x8 k=8 r=3 s=3 p=9 a=f16",
       "6, from an image of 8, padding 0 and 0, filter 3, dilation 1, stride 1"},
      {"conv2d_fprop 2x8x8x8 k=8 r=3 s=3 a=f16:c", "a tensor whose channels are last and adjacent"},
      {"conv2d_fprop 2x8x8x8 k=8 r=3 s=3 a=f16/pointers", "one tensor"},
      {"conv2d_fprop 2x8x8x8 k=8 r=3 s=3 a=f16/strides=1,2",
       "strides= of 3 numbers: of images (or filters), then of each spatial dimension"},
      {"conv2d_fprop 2x8x8x8 k=8 r=3 s=3 a=f16 out=f16/strides=1,2,3",
       "ld= for out: its pixels (filters of dw) are at one distance"},
      {"conv2d_fprop 2x8x8x8 k=8 r=3 s=3 groups=3 a=f16", "a divisor of the 8 channels"},
      {"conv2d_fprop 2x8x8x8 k=8 r=3 s=3 k=9 a=f16", "each field once"},
      {"conv2d_wgrad 2x8x8x8 k=8 r=3 s=3 batch=images a=f16",
       "groups: dw is one tensor of all images"},
      {"conv2d_fprop 2x8x8x8 k=8 r=3 s=3 mode=flip a=f16", "cross_correlation or convolution"},
      {"conv2d 2x8x8x8 k=8 r=3 s=3 a=f16",
       "gemm, grouped_gemm, or conv2d_fprop, conv2d_dgrad, conv2d_wgrad (and conv1d_, conv3d_)"},
      {"conv2d_fprop 2x8x8x8 k=8 r=3 s=3", "a field a= with A's element type"},
      {"conv2d_fprop 100000x8192x8192x8 k=8 r=3 s=3 a=f16", "at most 2147483647 of all images"},
  };
  for (const auto& [line, expected] : rows)
    EXPECT_EQ(error_of([&] { parse_problem(line); }).expected(), expected) << line;
}

}  // namespace
}  // namespace gemmery
