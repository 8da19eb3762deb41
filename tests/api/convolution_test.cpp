// SPDX-License-Identifier: Apache-2.0
// Convolutions on the CPU against their definition: every kernel that discovery returns, on the
// awkward geometries of other libraries' reports and on random ones.
#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/naive_convolution.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery {
namespace {

using tests::ConvCase;
using tests::ConvOperands;
using tests::Extents;
using tests::HeldTensor;

constexpr std::array kinds{ConvKind::fprop, ConvKind::dgrad, ConvKind::wgrad};
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// --- cases as text ------------------------------------------------------------------------------

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

Extents numbers(std::string_view text) {
  Extents list;
  for (const std::string& part : split(text, ',')) list.push_back(std::stoll(part));
  return list;
}

Extents for_both(const Extents& list) {
  return list.size() == 1 ? Extents{list[0], list[0]} : list;
}

// N,H,W,C,K,R,S|padding (one, or h lower,h upper,w lower,w upper)|stride[|d dilation][|g
// groups]>P,Q
struct Row {
  ConvCase conv;
  Extents expected;
};
Row read_row(std::string_view text) {
  const std::size_t arrow = text.find('>');
  const auto fields = split(text.substr(0, arrow), '|');
  const Extents shape = numbers(fields[0]);
  const Extents padding = numbers(fields[1]);
  Row row{.conv = {.images = shape[0],
                   .image = {shape[1], shape[2]},
                   .channels = shape[3],
                   .filters = shape[4],
                   .filter = {shape[5], shape[6]},
                   .lower = {padding[0], padding.size() == 1 ? padding[0] : padding[2]},
                   .upper = {padding[padding.size() == 1 ? 0 : 1],
                             padding[padding.size() == 1 ? 0 : 3]},
                   .stride = for_both(numbers(fields[2])),
                   .dilation = {1, 1}},
          .expected = numbers(text.substr(arrow + 1))};
  for (std::size_t i = 3; i < fields.size(); ++i) {
    const Extents list = numbers(std::string_view(fields[i]).substr(1));
    if (fields[i][0] == 'd') row.conv.dilation = for_both(list);
    if (fields[i][0] == 'g') row.conv.groups = list[0];
  }
  return row;
}

// --- running ------------------------------------------------------------------------------------

struct Types {
  DType operands, out;
};

// Whole numbers, so that every order of additions gives the same sum.
class Draw {
 public:
  Draw(std::uint64_t seed, int limit) : random_(seed), limit_(limit) {}
  double operator()(DType dtype) {
    const int least = facts(dtype).kind == DTypeKind::unsigned_integer ? 0 : -limit_;
    return least + static_cast<double>(random_() % static_cast<unsigned>(limit_ - least + 1));
  }
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(end));
  }

 private:
  std::mt19937_64 random_;
  int limit_;
};

ConvOperands make_operands(const ConvCase& conv, ConvKind kind, Types types, Draw& draw,
                           std::int64_t gap = 0) {
  const auto [a, b, out] = tests::shapes_of(conv, kind);
  // The filters' taps are at one distance, too.
  ConvOperands operands{HeldTensor(types.operands, a, gap), HeldTensor(types.operands, b, gap),
                        HeldTensor(types.out, out, kind == ConvKind::wgrad ? 0 : gap)};
  for (HeldTensor* const tensor : {&operands.a, &operands.b})
    tensor->fill([&] { return draw(tensor->dtype()); });
  return operands;
}

// Random elements of out, as many as so many products allow; all of them if that is enough.
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

class NastyConvolutions : public testing::TestWithParam<const char*> {};

TEST_P(NastyConvolutions, all_kinds_are_exact) {
  const Row row = read_row(GetParam());
  EXPECT_EQ((Extents{row.conv.output_of(0), row.conv.output_of(1)}), row.expected);
  check_all_kinds(row.conv, f32);
}

constexpr const char* tiny[] = {
    "1,1,1,1,1,1,1|0|1>1,1",       "1,1,1,8,8,3,3|1|1>1,1",         "2,3,3,16,16,7,7|3|1>3,3",
    "1,2,2,8,24,5,5|2|1>2,2",      "3,1,17,8,8,1,5|0,0,2,2|1>1,17", "3,17,1,8,8,5,1|2,2,0,0|1>17,1",
    "4,7,7,64,48,7,7|0|1>1,1",     "4,8,8,64,40,8,8|0|8>1,1",       "2,9,9,32,32,3,3|0|1|d4>1,1",
    "2,9,10,32,32,3,3|0|2|d4>1,1", "1,4,4,16,16,3,3|5|1>12,12"};
constexpr const char* strided[] = {"1,11,7,64,8,1,1|0|2>6,4",
                                   "2,14,14,64,128,1,1|0|2>7,7",
                                   "1,12,13,24,40,1,1|0|3,5>4,3",
                                   "2,16,16,16,16,2,2|0|3>5,5",
                                   "1,15,14,16,16,3,3|1|2>8,7",
                                   "1,14,15,16,16,3,3|0,1,0,1|2>7,7",
                                   "1,32,32,16,32,3,3|1|6,2>6,16",
                                   "3,16,16,64,256,2,5|1,0,0,1|2,4|d4,2>7,3",
                                   "3,16,16,64,256,2,5|1,0,0,1|4,2|d2,4>4,1",
                                   "3,16,16,64,256,2,5|1,0,0,1|3,2|d2,3>5,3",
                                   "1,20,20,8,8,3,3|2|4|d6>3,3",
                                   "1,64,64,8,8,3,3|1|8>8,8",
                                   "1,64,64,8,8,3,3|1|9>8,8",
                                   "1,33,33,8,16,4,4|0|4>8,8",
                                   "2,224,224,3,768,16,16|0|16>14,14"};
constexpr const char* asymmetric[] = {
    "2,8,8,32,256,2,5|1,0,1,0|1>8,5",   "2,7,7,64,256,2,5|1,0,1,0|2,3>4,2",
    "1,9,20,16,16,5,10|2,2,4,5|1>9,20", "1,6,6,8,8,3,3|0,2,2,0|1>6,6",
    "2,1,64,32,32,1,4|0,0,3,0|1>1,64",  "2,16,15,64,256,2,5|1,0,1,0|2,3|d2,3>8,2"};
constexpr const char* channels[] = {
    "1,23,21,7,5,3,3|1|1>23,21",     "2,8,8,1,1,3,3|1|1>8,8",
    "2,8,8,1,16,3,3|1|1>8,8",        "2,8,8,16,1,3,3|1|1>8,8",
    "1,16,16,2,16,7,7|3|1>16,16",    "4,32,32,3,64,3,3|1|1>32,32",
    "2,56,56,3,64,7,7|3|2>28,28",    "2,56,56,4,64,7,7|3|2>28,28",
    "1,4,4,12,8,3,3|0|3>1,1",        "1,23,56,98,128,3,3|4,4,5,5|3>10,22",
    "1,9,9,72,136,3,3|1|1>9,9",      "1,9,9,65,63,3,3|1|1>9,9",
    "1,14,14,129,257,1,1|0|1>14,14", "1,16,16,40,24,3,3|2|1|d2>16,16"};
constexpr const char* grouped[] = {
    "2,6,6,4,4,3,3|0|1|g4>4,4",           "2,6,6,4,8,3,3|0|1|g4>4,4",
    "2,6,5,4,6,3,2|0|1|g2>4,4",           "2,8,8,4,2,3,3|2,2,1,1|3,2|d4|g2>2,1",
    "1,14,14,64,64,3,3|1|1|g64>14,14",    "1,14,14,96,48,3,3|1|2|g24>7,7",
    "4,14,14,256,256,3,3|1|2|g32>7,7",    "1,56,56,696,768,3,3|1|2|g3>28,28",
    "1,20,20,32,32,31,31|15|1|g32>20,20", "2,1,100,48,48,1,4|0,0,3,0|1|g48>1,100"};
constexpr const char* limits[] = {"1,40,40,8,8,33,33|16|1>40,40",
                                  "1,20,300,8,8,1,255|0,0,127,127|1>20,300",
                                  "1,20,300,8,8,1,257|0,0,128,128|1>20,300",
                                  "1,140,140,16,16,3,3|64|1|d64>140,140",
                                  "1,300,300,8,8,3,3|128|1|d128>300,300",
                                  "1,300,300,8,8,3,3|130|1|d130>300,300",
                                  "1,40,40,8,16,5,5|0|1|d9>4,4"};
// Two more of this list have more than 2^31 elements.
constexpr const char* big[] = {"65537,1,1,8,8,1,1|0|1>1,1", "70000,2,2,8,8,3,3|1|1>2,2",
                               "1,1,1000003,8,8,1,3|0,0,1,1|1>1,1000003"};
constexpr const char* empty[] = {"0,8,8,16,16,3,3|1|1>8,8", "1,8,8,0,16,3,3|1|1>8,8",
                                 "1,8,8,16,0,3,3|1|1>8,8"};

INSTANTIATE_TEST_SUITE_P(tiny, NastyConvolutions, testing::ValuesIn(tiny));
INSTANTIATE_TEST_SUITE_P(strided, NastyConvolutions, testing::ValuesIn(strided));
INSTANTIATE_TEST_SUITE_P(asymmetric, NastyConvolutions, testing::ValuesIn(asymmetric));
INSTANTIATE_TEST_SUITE_P(channels, NastyConvolutions, testing::ValuesIn(channels));
INSTANTIATE_TEST_SUITE_P(grouped, NastyConvolutions, testing::ValuesIn(grouped));
INSTANTIATE_TEST_SUITE_P(limits, NastyConvolutions, testing::ValuesIn(limits));
INSTANTIATE_TEST_SUITE_P(big, NastyConvolutions, testing::ValuesIn(big));
INSTANTIATE_TEST_SUITE_P(empty, NastyConvolutions, testing::ValuesIn(empty));

TEST(Convolution, three_dimensional_geometries_are_exact) {
  const std::vector<ConvCase> cases{
      {.images = 2,
       .image = {16, 10, 16},
       .channels = 64,
       .filters = 96,
       .filter = {3, 4, 5},
       .lower = {1, 0, 1},
       .upper = {0, 2, 0},
       .stride = {2, 2, 3},
       .dilation = {2, 2, 3}},
      {.images = 2,
       .image = {3, 5, 8},
       .channels = 32,
       .filters = 96,
       .filter = {3, 3, 3},
       .lower = {1, 1, 1},
       .upper = {1, 1, 1},
       .stride = {1, 1, 1},
       .dilation = {1, 1, 1}},
      // torch's "same" padding with dilation 3, 2, 1
      {.images = 1,
       .image = {4, 4, 4},
       .channels = 1,
       .filters = 1,
       .filter = {2, 3, 4},
       .lower = {1, 2, 1},
       .upper = {2, 2, 2},
       .stride = {1, 1, 1},
       .dilation = {3, 2, 1}},
      {.images = 1,
       .image = {5, 7, 13},
       .channels = 8,
       .filters = 8,
       .filter = {3, 1, 1},
       .lower = {1, 0, 0},
       .upper = {1, 0, 0},
       .stride = {1, 1, 1},
       .dilation = {1, 1, 1}},
  };
  for (const ConvCase& conv : cases) check_all_kinds(conv, f32);
}

// The sizes of CUTLASS's own tests that PyCUTLASS kept: N,H,W,C,K,R,S|padding|stride>P,Q.
constexpr const char* kept_sizes[] = {"1,1,1,64,8,1,1|1|1>3,3",
                                      "1,1,8,64,8,1,3|1|1>3,8",
                                      "1,7,8,64,8,3,3|1|1>7,8",
                                      "1,7,9,64,8,4,4|1|1>6,8",
                                      "2,7,9,64,8,5,5|1|1>5,7",
                                      "3,7,9,64,8,6,5|1|1>4,7",
                                      "3,7,9,64,8,6,6|1|1>4,6",
                                      "3,7,9,64,8,7,7|1|1>3,5",
                                      "1,11,7,64,8,1,1|0|2>6,4",
                                      "1,11,7,64,8,3,3|1|2>6,4",
                                      "1,13,11,64,8,1,1|1|2>8,7",
                                      "1,17,19,64,16,2,2|1|2>9,10",
                                      "1,23,5,64,16,3,3|1|2>12,3",
                                      "1,23,21,128,224,3,3|1|1>23,21",
                                      "1,16,24,128,96,3,3|1|1>16,24",
                                      "1,55,51,256,512,1,1|0|2>28,26",
                                      "1,27,23,256,512,3,3|0|3>9,7",
                                      "1,27,31,256,512,3,3|5,5,7,7|3,4>12,11",
                                      "1,27,35,256,512,7,5|11,11,7,7|3,5>15,9",
                                      "1,27,27,256,512,3,3|1|1,2>27,14",
                                      "1,27,27,256,512,3,3|1|2,1>14,27",
                                      "3,28,28,256,256,2,2|0|2>14,14",
                                      "4,4,5,128,256,3,6|0,0,1,1|1>2,2",
                                      "4,2,3,256,328,3,5|1|1>2,1"};

TEST(ConvolutionRows, row_34_and_62_to_64_kept_sizes_in_four_types) {
  constexpr std::array types{
      Types{DType::float32, DType::float32}, Types{DType::float64, DType::float64},
      Types{DType::float16, DType::float32}, Types{DType::bfloat16, DType::float32}};
  for (std::size_t index = 0; index < std::size(kept_sizes); ++index) {
    const Row row = read_row(kept_sizes[index]);
    ASSERT_EQ((Extents{row.conv.output_of(0), row.conv.output_of(1)}), row.expected)
        << kept_sizes[index];
    for (const ConvKind kind : kinds)
      check(row.conv, kind, types[(index + static_cast<std::size_t>(kind)) % types.size()],
            tests::random_seed());
  }
}

TEST(ConvolutionRows, row_35_int8_to_int32) {
  for (const char* const text : kept_sizes)
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

Types draw_types(Draw& draw) {
  constexpr std::array types{
      Types{DType::float32, DType::float32}, Types{DType::float32, DType::float32},
      Types{DType::float16, DType::float16}, Types{DType::bfloat16, DType::float32},
      Types{DType::float64, DType::float64}, Types{DType::int8, DType::int32},
      Types{DType::uint8, DType::int32},     Types{DType::float8_e4m3fn, DType::float32}};
  return types[static_cast<std::size_t>(draw.below(std::ssize(types)))];
}

ConvCase draw_case(Draw& draw) {
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return least + draw.below(most - least + 1);
  };
  ConvCase conv;
  const std::int64_t dimensions = from(1, 3);
  conv.images = from(0, 20) == 0 ? 0 : from(1, 3);
  conv.groups = from(0, 2) == 0 ? from(1, 4) : 1;
  conv.channels = conv.groups * (from(0, 30) == 0 ? 0 : from(1, 9));
  conv.filters = conv.groups * from(1, 9);
  conv.mode = from(0, 3) == 0 ? ConvMode::convolution : ConvMode::cross_correlation;
  for (std::int64_t d = 0; d < dimensions; ++d) {
    conv.filter.push_back(from(1, 5));
    conv.stride.push_back(from(0, 1) == 0 ? 1 : from(1, 5));
    conv.dilation.push_back(from(0, 1) == 0 ? 1 : from(1, 4));
    conv.lower.push_back(from(0, 1) == 0 ? 0 : from(0, 4));
    conv.upper.push_back(from(0, 1) == 0 ? conv.lower.back() : from(0, 4));
    const std::int64_t reach = conv.dilation.back() * (conv.filter.back() - 1) + 1;
    const std::int64_t least =
        std::max<std::int64_t>(1, reach - conv.lower.back() - conv.upper.back());
    conv.image.push_back(from(least, least + (dimensions == 1 ? 30 : 8)));
  }
  return conv;
}

TEST(Convolution, two_thousand_random_problems_are_exact) {
  Draw draw(tests::random_seed(), 1);
  constexpr int count = 2100;
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

// Real numbers between guard bands, with NaN in whatever is no element.
TEST(Convolution, random_problems_are_within_the_bounds_and_touch_nothing_else) {
  Draw draw(tests::random_seed(), 1);
  for (int index = 0; index < 300; ++index) {
    const ConvCase conv = draw_case(draw);
    const ConvKind kind = kinds[static_cast<std::size_t>(index % 3)];
    const ConvOperands operands = make_operands(conv, kind, draw_types(draw), draw, draw.below(3));
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
  const DeviceInfo device = *find_device_info("h200");
  EXPECT_TRUE(get_kernels(problem, device).empty());
  for (const Reason& reason : explain(problem, device).reasons) {
    if (reason.provider == "host") continue;
    EXPECT_EQ(reason.failed,
              "operation: expected a GEMM, or a convolution that this family takes, got "
              "conv2d_fprop with groups")
        << reason.family;
  }
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
