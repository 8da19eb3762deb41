// SPDX-License-Identifier: Apache-2.0
// Epilogues that quantise: data and scales against their definition, exactly, by every kernel of
// the CPU and on an emulated device.
#include <gemmery/discovery.hpp>
#include <gemmery/emulator.hpp>
#include <gemmery/error.hpp>
#include <gemmery/verify.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/number.hpp"
#include "device/abi/scale_layout.hpp"
#include "jit/nvrtc.hpp"
#include "tests/support/random_scaled.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// A tensor with memory of its own.
struct Owned {
  DType dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  Owned(DType type, std::vector<std::int64_t> extents) : dtype(type), shape(std::move(extents)) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    bytes.resize(static_cast<std::size_t>(count) * byte_width(dtype) + 1, std::byte{0x5a});
  }
  double get(std::int64_t index) const { return number::load(dtype, bytes.data(), index); }
  Tensor view() const { return Tensor(bytes.data(), dtype, shape); }
};

// One value along the blocks of the accumulators' matrix, another across: their product is the
// accumulator. The first factor is 1 at the start of each block and at most 1 elsewhere.
struct Accumulators {
  std::vector<float> lines, along;

  // The accumulator of a line's element, as float32.
  double at(std::size_t line, std::size_t element) const {
    return static_cast<double>(lines[line] * along[element]);
  }
};

enum class Order { rows, columns };  // blocks of one row, or of one column

class QuantisedGemm : public ::testing::Test {
 protected:
  std::mt19937_64 random{tests::random_seed()};

  // out = lines x along for rows, and its transpose for columns: K = 1.
  GemmArguments arguments_of(const Accumulators& sums, Order order, const Tensor& out,
                             EpilogueArguments epilogue) const {
    const auto lines = static_cast<std::int64_t>(sums.lines.size());
    const auto along = static_cast<std::int64_t>(sums.along.size());
    const bool is_rows = order == Order::rows;
    const Tensor first(is_rows ? sums.lines.data() : sums.along.data(), DType::float32,
                       {is_rows ? lines : along, 1});
    const Tensor second(is_rows ? sums.along.data() : sums.lines.data(), DType::float32,
                        {1, is_rows ? along : lines});
    GemmOptions options;
    options.epilogue = std::move(epilogue);
    return GemmArguments(first, second, out, DType::float32, options);
  }
};

// --- microscaling -------------------------------------------------------------------------------

double scale_by_definition(double amax, double largest, bool is_floor) {
  if (std::isnan(amax)) return nan;
  if (amax == 0) return 0x1p-127;
  if (std::isinf(amax)) return 0x1p127;
  int exponent = std::ilogb(amax) - std::ilogb(largest);
  if (!is_floor)
    for (exponent -= 1; std::ldexp(largest, exponent) < amax;) ++exponent;
  return std::ldexp(1.0, std::min(std::max(exponent, -127), 127));
}

double quantised(double value, DType dtype) {
  const double largest = number::rounding_of(dtype).largest;
  if (std::isinf(value)) return std::copysign(largest, value);
  return number::rounded_to(dtype, {std::min(std::max(value, -largest), largest), 0});
}

// Every amax of row 47, and each as the amax of a block with smaller elements of both signs.
Accumulators special_blocks(std::size_t blocks) {
  Accumulators sums;
  for (const int exponent : {-130, -20, -3, 0, 5, 100})
    for (const float base : {448.0F, 1.0F}) {
      const float amax = std::ldexp(base, exponent);
      sums.lines.insert(sums.lines.end(),
                        {amax, std::nextafter(amax, 1e38F), -std::nextafter(amax, 0.0F)});
    }
  sums.lines.insert(sums.lines.end(),
                    {0.0F, -0.0F, 0x1p-140F, 0x1p-126F, std::numeric_limits<float>::quiet_NaN(),
                     std::numeric_limits<float>::infinity(), std::numeric_limits<float>::max()});
  constexpr std::array<float, 8> parts{1.0F,    0.5F,     -0.25F,  0.75F,
                                       -0.625F, 0.03125F, 0.4375F, -1.0F};
  for (std::size_t element = 0; element < 32 * blocks; ++element)
    sums.along.push_back(element % 32 == 0 ? 1.0F : parts[element % parts.size()]);
  return sums;
}

std::string mx_program(std::string_view block, std::string_view rule) {
  return "scale = mx_scale(block_amax(accum, " + std::string(block) + "), e4m3, " +
         std::string(rule) + "); D = cast(accum / scale, e4m3, saturate)";
}

struct MxCase {
  Order order;
  bool is_floor;
  ScaleLayout layout;
};

class MxRows : public QuantisedGemm, public ::testing::WithParamInterface<MxCase> {};

TEST_P(MxRows, row_47_special_values_of_amax_by_both_rules_in_both_orders) {
  const auto [order, is_floor, layout] = GetParam();
  const bool is_rows = order == Order::rows;
  const Accumulators sums = special_blocks(5);
  const auto lines = static_cast<std::int64_t>(sums.lines.size());
  const std::int64_t along = 160, blocks = 5;
  Owned out(DType::float8_e4m3fn, is_rows ? std::vector{lines, along} : std::vector{along, lines});
  const bool is_swizzled = layout == ScaleLayout::swizzled_128x4;
  Owned scale(DType::float8_e8m0fnu, is_swizzled ? std::vector<std::int64_t>{128 * 8}
                                     : is_rows   ? std::vector{lines, blocks}
                                                 : std::vector{blocks, lines});
  const EpilogueArguments epilogue(
      mx_program(is_rows ? "1, 32" : "32, 1", is_floor ? "floor" : "rceil"),
      {{"scale", scale.view(), layout}});
  const GemmArguments arguments = arguments_of(sums, order, out.view(), epilogue);
  const auto kernels = get_kernels(arguments);
  ASSERT_FALSE(kernels.empty());
  for (const Kernel& kernel : kernels) {
    kernel.run(arguments, {.stream = Stream::cpu()});
    for (std::int64_t line = 0; line < lines; ++line)
      for (std::int64_t element = 0; element < along; ++element) {
        const auto i = static_cast<std::size_t>(line);
        const double s = scale_by_definition(std::fabs(sums.at(i, 0)), 448, is_floor);
        const std::int64_t block = element / 32;
        const std::int64_t place = is_swizzled ? abi::swizzled_offset(line, block, 2)
                                   : is_rows   ? line * blocks + block
                                               : block * lines + line;
        const double value = sums.at(i, static_cast<std::size_t>(element)) / s;
        const double got = out.get(is_rows ? line * along + element : element * lines + line);
        const std::string where = kernel.name() + ", amax " + std::to_string(sums.at(i, 0));
        if (std::isnan(s)) {
          ASSERT_TRUE(std::isnan(scale.get(place)) && std::isnan(got)) << where;
        } else {
          ASSERT_EQ(scale.get(place), s) << where;
          ASSERT_EQ(got, quantised(value, DType::float8_e4m3fn)) << where << ", " << value;
        }
      }
    const VerifyReport report = check_result(arguments, kernel);
    EXPECT_TRUE(report.passed) << kernel.name() << ": " << report.first_failure;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, MxRows,
                         ::testing::Values(MxCase{Order::rows, true, ScaleLayout::strided},
                                           MxCase{Order::rows, false, ScaleLayout::swizzled_128x4},
                                           MxCase{Order::columns, true,
                                                  ScaleLayout::swizzled_128x4},
                                           MxCase{Order::columns, false, ScaleLayout::strided}));

// --- NVFP4 --------------------------------------------------------------------------------------

TEST_F(QuantisedGemm, row_48_ties_of_e2m1_with_a_global_scale) {
  // The largest element makes the block's scale 1 * global / 2^line.
  Accumulators sums;
  for (const int exponent : {0, 3, -5}) sums.lines.push_back(std::ldexp(1.0F, exponent));
  constexpr std::array<float, 16> elements{6.0F,  0.25F,  0.75F, 1.25F,  1.75F, 2.5F,  3.5F, 5.0F,
                                           -6.0F, -0.25F, -5.0F, -3.49F, 4.0F,  -0.5F, 3.0F, 0.0F};
  constexpr std::array<double, 16> expected{6, 0, 1, 1, 2, 2, 4, 4, -6, 0, -4, -3, 4, -0.5, 3, 0};
  for (int block = 0; block < 3; ++block)
    sums.along.insert(sums.along.end(), elements.begin(), elements.end());
  const double global = 4;
  Owned out(DType::float4_e2m1fn, {3, 48});
  Owned scale(DType::float8_e4m3fn, {3, 3});
  const EpilogueArguments epilogue(
      "scale = cast(block_amax(accum, 1, 16) / 6 * global, e4m3, saturate); "
      "D = accum * global / scale",
      {{"scale", scale.view()}, {"global", global}});
  const GemmArguments arguments = arguments_of(sums, Order::rows, out.view(), epilogue);
  for (const Kernel& kernel : get_kernels(arguments)) {
    kernel.run(arguments, {.stream = Stream::cpu()});
    for (std::int64_t line = 0; line < 3; ++line)
      for (std::int64_t element = 0; element < 48; ++element) {
        ASSERT_EQ(scale.get(line * 3 + element / 16),
                  global * static_cast<double>(sums.lines[static_cast<std::size_t>(line)]));
        ASSERT_EQ(out.get(line * 48 + element), expected[static_cast<std::size_t>(element % 16)])
            << kernel.name() << " at " << element;
      }
    const VerifyReport report = check_result(arguments, kernel);
    EXPECT_TRUE(report.passed) << kernel.name() << ": " << report.first_failure;
  }
}

// e2m1 has no NaN and no infinity.
TEST_F(QuantisedGemm, row_48_nan_and_infinity_as_e2m1_are_6) {
  Accumulators sums;
  sums.lines = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                -std::numeric_limits<float>::infinity()};
  sums.along = {1, 1};
  Owned out(DType::float4_e2m1fn, {3, 2});
  const GemmArguments arguments =
      arguments_of(sums, Order::rows, out.view(), EpilogueArguments("D = accum * 1"));
  for (const Kernel& kernel : get_kernels(arguments)) {
    kernel.run(arguments, {.stream = Stream::cpu()});
    for (const auto& [line, value] : {std::pair{0, 6.0}, {1, 6.0}, {2, -6.0}})
      for (const int column : {0, 1}) ASSERT_EQ(out.get(2 * line + column), value) << line;
  }
}

// --- any blocks ---------------------------------------------------------------------------------

bool is_soak() {
  const char* const text = std::getenv("GEMMERY_SOAK");
  return text != nullptr && std::string_view(text) == "1";
}

// Programs of blocks and the fields of their results.
constexpr std::array programs{
    "epilogue=\"scale = mx_scale(block_amax(accum, 1, 32), e4m3, rceil); q = cast(accum / scale, "
    "e4m3, "
    "saturate); D = accum\" scale=e8m0 q=e4m3",
    "epilogue=\"scale = mx_scale(block_amax(accum, 32, 1), e5m2, floor); q = cast(accum / scale, "
    "e5m2, "
    "saturate); D = accum\" scale=e8m0:swizzled q=e5m2",
    "epilogue=\"scale = cast(block_amax(accum, 1, 16) / 6 * global, e4m3, saturate); D = accum * "
    "global "
    "/ scale\" global=f32[1] scale=e4m3:swizzled",
    "epilogue=\"x = gelu(accum + bias); s = block_amax(x, 1, 32) / 448; D = x / s; peak = "
    "amax(x)\" "
    "bias=f32[n] s=f32 peak=f32[m]",
    "epilogue=\"high = block_max(accum, 8, 8); low = block_min(accum, 8, 8); D = (accum - low) / "
    "(high - low + "
    "1)\" high=f32:c low=bf16"};
// Those that CUDA cores refuse: sums of blocks, whole rows, reductions of reductions.
constexpr std::array of_host{"epilogue=\"s = block_amax(accum, 1, 0); D = accum / s\" s=f32",
                             "epilogue=\"mean = block_sum(accum, 1, 0) / 96; x = accum - mean; D = "
                             "x * rsqrt(block_sum(x * x, 1, 0) + "
                             "1)\" mean=f32",
                             "epilogue=\"t = block_amax(accum, 0, 0); D = accum / t\" t=f32",
                             "epilogue=\"s = block_sum(accum, 3, 7); D = accum + s\" s=f32/ld=40"};

// Sums of blocks of one row, which shuffles add up.
constexpr const char* of_rows =
    "epilogue=\"mean = block_sum(accum, 1, 32) / 32; D = accum - mean; q = cast(D / "
    "(block_amax(accum, 1, 2) + 1), e4m3, saturate)\" mean=f32 q=e4m3";

class QuantisedRows : public ::testing::Test {
 protected:
  std::mt19937_64 random_{tests::random_seed()};

  std::string line(const char* program) {
    const auto draw = [&](int least, int most) {
      return std::to_string(std::uniform_int_distribution<int>(least, most)(random_));
    };
    return "gemm " + draw(1, 150) + "x" + draw(1, 150) + "x" + draw(1, 70) +
           (random_() % 4 == 0 ? "x2" : "") + (random_() % 2 == 0 ? " a=bf16" : " a=f32") +
           " out=f32 acc=f32 " + program;
  }
  void expect_by(const ProblemLine& line, const Kernel& kernel, Device device) {
    const VerifyReport report = verify(line, kernel, {.seed = random_() | 1, .device = device});
    EXPECT_TRUE(report.passed) << to_string(line) << " by " << kernel.name() << ": "
                               << report.first_failure;
    EXPECT_LT(report.without_bound, std::max<std::int64_t>(report.elements, 1));
  }
};

TEST_F(QuantisedRows, row_47_random_problems_on_the_cpu) {
  for (int round = 0; round < (is_soak() ? 200 : 2); ++round)
    for (const auto& list : {std::vector<const char*>(programs.begin(), programs.end()),
                             std::vector<const char*>(of_host.begin(), of_host.end())})
      for (const char* const program : list) {
        const ProblemLine problem = parse_problem(line(program));
        EXPECT_EQ(to_string(parse_problem(to_string(problem))), to_string(problem));
        for (const Kernel& kernel : get_kernels(problem.problem, device_info(Device::cpu())))
          expect_by(problem, kernel, Device::cpu());
      }
}

TEST_F(QuantisedRows, row_48_random_groups_with_results_of_e2m1) {
  for (const char* const form :
       {"ends=i32", "gather=i32/of=50", "scatter=i64/of=200", "masked=i32", "ragged=k"}) {
    const ProblemLine problem = parse_problem(fmt::format(
        "grouped_gemm {}x{}x{} groups={} {} a=bf16 out=e2m1 acc=f32 epilogue=\"scale = "
        "cast(block_amax(accum, 1, 16) / 6, e4m3, saturate); D = accum / scale\" "
        "scale=e4m3:swizzled",
        1 + random_() % 90, 2 + 2 * (random_() % 40), 1 + random_() % 70, 1 + random_() % 7, form));
    const auto kernels = get_kernels(problem.problem, device_info(Device::cpu()));
    ASSERT_FALSE(kernels.empty());
    for (const Kernel& kernel : kernels) expect_by(problem, kernel, Device::cpu());
  }
}

TEST_F(QuantisedRows, row_48_random_problems_with_results_of_e2m1) {
  for (int round = 0; round < 3; ++round) {
    const std::string m = std::to_string(1 + random_() % 60);
    const std::string n = std::to_string(2 + 2 * (random_() % 40));
    const ProblemLine problem =
        parse_problem("gemm " + m + "x" + n +
                      "x33 a=bf16 out=e2m1 acc=f32 epilogue=\"scale = cast(block_amax(accum, 1, "
                      "16) / 6, e4m3, saturate); D = accum / scale\" scale=e4m3:swizzled");
    const auto kernels = get_kernels(problem.problem, device_info(Device::cpu()));
    ASSERT_FALSE(kernels.empty());
    for (const Kernel& kernel : kernels) expect_by(problem, kernel, Device::cpu());
  }
}

// Groups of rows, with blocks of one row; of columns, with blocks of one column; of k and masked
// ones, with any blocks.
std::string draw_groups(std::mt19937_64& random) {
  const auto draw = [&](std::size_t count) { return random() % count; };
  struct Form {
    const char* words;
    const char* block;
    const char* major;
  };
  constexpr std::array forms{
      Form{"ends=i32", "1, 32", ""},
      Form{"counts=i64/align=128", "1, 16", ""},
      Form{"labels=i32/align=128", "1, 32", ""},
      Form{"prefix=i32/host", "1, 8", ""},
      Form{"gather=i32/of=90/divide=2", "1, 32", ""},
      Form{"ends=i64 scatter=i32/of=700", "1, 16", ""},
      Form{"ragged=n ends=i32/align=16", "32, 1", ":c"},
      Form{"masked=i32", "1, 32", ""},
      Form{"masked=i32 outside=zero", "1, 32", ""},
      Form{"ragged=k ends=i32/align=8", "1, 32", ""},
  };
  constexpr std::array programs_of_lines{
      "scale = mx_scale(block_amax(accum, {0}), e4m3, rceil); q = cast(accum / scale, e4m3, "
      "saturate); D = accum\" scale=e8m0{1} q=e4m3{2}",
      "x = silu(accum) * weight; s = block_amax(x, {0}) / 448; D = x; q = cast(where(s > 0, x / s, "
      "0), e5m2, saturate)\" s=f32{1} q=e5m2{2} weight=f32[l,1]"};
  const Form& form = forms[draw(forms.size())];
  const bool is_zeroed = std::string_view(form.words).find("zero") != std::string_view::npos;
  const char* const layout = is_zeroed ? "" : draw(2) == 0 ? ":swizzled" : form.major;
  return fmt::format("grouped_gemm {}x{}x{} groups={} {} a=bf16 out=f32{} epilogue=\"",
                     1 + draw(300), 8 * (1 + draw(12)), 8 * (1 + draw(12)), 1 + draw(9), form.words,
                     form.major) +
         fmt::format(fmt::runtime(programs_of_lines[draw(programs_of_lines.size())]), form.block,
                     layout, form.major);
}

TEST_F(QuantisedRows, row_47_random_groups_on_the_cpu) {
  for (int round = 0; round < (is_soak() ? 1000 : 20); ++round) {
    const ProblemLine problem = parse_problem(draw_groups(random_));
    EXPECT_EQ(to_string(parse_problem(to_string(problem))), to_string(problem));
    const auto kernels = get_kernels(problem.problem, device_info(Device::cpu()));
    ASSERT_FALSE(kernels.empty()) << to_string(problem);
    for (const Kernel& kernel : kernels) expect_by(problem, kernel, Device::cpu());
  }
}

// By a kernel of each of two families, in a short run.
TEST_F(QuantisedRows, row_47_random_groups_on_an_emulated_device) {
  if (!jit::compiler_status().found) GTEST_SKIP() << jit::compiler_status().searched;
  const Device device = parse_device("emulated:h200").value();
  for (int count = 0; count < (is_soak() ? 150 : 2); ++count) {
    const ProblemLine problem = parse_problem(draw_groups(random_));
    const auto kernels = get_kernels(problem.problem, device_info(device));
    const bool is_zeroed = problem.problem.groups->outside == OutsideGroups::zero;
    ASSERT_TRUE(is_zeroed || !kernels.empty()) << to_string(problem);
    if (kernels.empty()) continue;
    const std::size_t first = random_() % kernels.size();
    const auto other = std::ranges::find_if(kernels, [&](const Kernel& kernel) {
      return kernel.family().name() != kernels[first].family().name();
    });
    expect_by(problem, kernels[first], device);
    if (other != kernels.end()) expect_by(problem, *other, device);
  }
}

// By one kernel of each family that has the program, or of one of them in a short run.
TEST_F(QuantisedRows, row_47_random_problems_on_an_emulated_device) {
  if (!jit::compiler_status().found) GTEST_SKIP() << jit::compiler_status().searched;
  const Device device = parse_device("emulated:h200").value();
  std::vector<const char*> all(programs.begin(), programs.end());
  all.push_back(of_rows);
  const std::size_t only = random_() % all.size();
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (!is_soak() && at != only) continue;
    const ProblemLine problem = parse_problem(line(all[at]));
    std::vector<Kernel> kernels;
    for (const Kernel& kernel : get_kernels(problem.problem, device_info(device)))
      if (std::ranges::none_of(kernels, [&](const Kernel& known) {
            return known.family().name() == kernel.family().name();
          }))
        kernels.push_back(kernel);
    const bool needs_kernel = all[at] != of_rows || problem.problem.a.dtype == DType::bfloat16;
    EXPECT_TRUE(!kernels.empty() || !needs_kernel) << to_string(problem);
    const std::size_t family = random_() % std::max<std::size_t>(kernels.size(), 1);
    for (std::size_t i = 0; i < kernels.size(); ++i)
      if (is_soak() || i == family) expect_by(problem, kernels[i], device);
  }
}

TEST_F(QuantisedRows, row_47_random_problems_by_any_kernel_of_sm90) {
  if (!jit::compiler_status().found) GTEST_SKIP() << jit::compiler_status().searched;
  const Device device = parse_device("emulated:h200").value();
  for (int count = 0; count < (is_soak() ? 120 : 3); ++count) {
    const ProblemLine problem = parse_problem(tests::draw_quantised(random_));
    std::vector<Kernel> kernels;
    for (const Kernel& kernel : get_kernels(problem.problem, device_info(device)))
      if (kernel.family().name() == "sm90") kernels.push_back(kernel);
    ASSERT_FALSE(kernels.empty()) << to_string(problem);
    expect_by(problem, kernels[random_() % kernels.size()], device);
  }
}

TEST_F(QuantisedRows, families_without_reductions_of_blocks_name_the_node) {
  const auto reasons_of = [](const char* program) {
    const ProblemLine problem =
        parse_problem(std::string("gemm 128x96x64 a=bf16 out=f32 acc=f32 ") + program);
    std::string all;
    for (const Reason& reason :
         explain(problem.problem, device_info(parse_device("emulated:h200").value())).reasons)
      all += reason.family + ": " + reason.failed + "\n";
    return all;
  };
  EXPECT_NE(reasons_of(programs[0]).find("reduction of blocks of 1x32"), std::string::npos);
  EXPECT_NE(reasons_of(of_host[0]).find("reduction of blocks of 1xall"), std::string::npos);
  EXPECT_NE(reasons_of(of_host[3]).find("expected amax, max or min of blocks"), std::string::npos);
}

TEST_F(QuantisedRows, refusals_name_what_does_not_fit) {
  const auto message = [](const std::string& text) {
    try {
      parse_problem(text);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto expect = [&](const std::string& text, const char* part) {
    EXPECT_NE(message(text).find(part), std::string::npos) << message(text);
  };
  const std::string gemm = "gemm 64x64x64 a=f32 epilogue=";
  expect(gemm + "\"s = block_amax(accum, 8, 8); D = accum / s\" s=f32:swizzled",
         "blocks of one row");
  expect(gemm + "\"s = block_amax(accum, 1, 32); D = accum / s\" s=f32[n]", "no dims");
  expect(gemm + "\"D = block_amax(accum, 1, accum)\"", "whole numbers");
  expect(gemm + "\"D = accum / block_amax(accum, -1, 2)\"", "whole numbers");
  expect(gemm + "\"D = mx_scale(accum, e4m3, up)\"", "floor");
  expect(gemm + "\"D = mx_scale(accum, f32, floor)\"", "the type that is scaled");
  expect("gemm 64x64x64 a=f32 out=e2m1", "an epilogue's program");
  expect(
      "grouped_gemm 64x64x64 groups=2 ends=i32 a=bf16 epilogue=\"D = accum / block_amax(accum, "
      "32, 1)\"",
      "blocks of one row where groups divide the rows of out");
  expect(
      "grouped_gemm 64x64x64 groups=2 ragged=n a=bf16 epilogue=\"D = accum / block_amax(accum, 1, "
      "32)\"",
      "blocks of one column where groups divide the columns of out");
  expect(
      "grouped_gemm 64x64x64 groups=2 outside=zero a=bf16 epilogue=\"s = block_amax(accum, 1, 32); "
      "D = accum / s\" s=f32:swizzled",
      "fill the scales with zeros before");
  expect("grouped_gemm 64x64x64 groups=2 ragged=n a=f32 out=e2m1 epilogue=\"D = accum * 2\"",
         "where groups divide columns");
  expect("grouped_gemm 64x64x64 groups=2 outside=zero a=f32 out=e2m1 epilogue=\"D = accum * 2\"",
         "fill out with zeros before");
  expect("gemm 64x64x64 a=f32 out=e2m1:c epilogue=\"D = accum * 2\"", "adjacent columns");
}

}  // namespace
}  // namespace gemmery
