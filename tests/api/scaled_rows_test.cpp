// SPDX-License-Identifier: Apache-2.0
// The rows of scaled GEMM: each problem by every kernel of the CPU, and by kernels of simt and sm90
// on an emulated device. A short run emulates one problem of each third row; GEMMERY_SOAK=1 all.
#include <gemmery/arguments.hpp>
#include <gemmery/buffer.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/error.hpp>
#include <gemmery/verify.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "jit/nvrtc.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery {
namespace {

bool is_soak() {
  const char* const text = std::getenv("GEMMERY_SOAK");
  return text != nullptr && std::string_view(text) == "1";
}

class ScaledRows : public ::testing::Test {
 protected:
  std::mt19937_64 random_{tests::random_seed()};

  void expect_by(const ProblemLine& line, const Kernel& kernel, Device device) {
    const VerifyReport report = verify(line, kernel, {.seed = random_() | 1, .device = device});
    EXPECT_TRUE(report.passed) << to_string(line) << " by " << kernel.name() << " on "
                               << to_string(device) << ": " << report.first_failure;
    EXPECT_LT(report.without_bound, std::max<std::int64_t>(report.elements, 1));
  }

  void expect_on_cpu(const ProblemLine& line) {
    const auto kernels = get_kernels(line.problem, device_info(Device::cpu()));
    ASSERT_FALSE(kernels.empty()) << to_string(line);
    for (const Kernel& kernel : kernels) expect_by(line, kernel, Device::cpu());
  }

  // By one of the family's kernels.
  void expect_emulated(const ProblemLine& line, std::string_view family) {
    const Device device = parse_device("emulated:h200").value();
    std::vector<Kernel> kernels;
    for (const Kernel& kernel : get_kernels(line.problem, device_info(device)))
      if (kernel.family().name() == family) kernels.push_back(kernel);
    ASSERT_FALSE(kernels.empty()) << family << " has no kernel for " << to_string(line);
    expect_by(line, kernels[random_() % kernels.size()], device);
  }

  // `families`: whose kernels run on the emulated device.
  void expect(std::initializer_list<const char*> lines,
              const std::vector<std::string_view>& families = {"simt"}) {
    for (const char* const text : lines) expect_on_cpu(parse_problem(text));
    const bool has_compiler = jit::compiler_status().found;
    if (families.empty() || !has_compiler || (!is_soak() && random_() % 3 != 0)) return;
    const std::size_t only = random_() % lines.size();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (!is_soak() && i != only) continue;
      const ProblemLine line = parse_problem(lines.begin()[i]);
      if (!is_soak()) return expect_emulated(line, families[random_() % families.size()]);
      for (const std::string_view family : families) expect_emulated(line, family);
    }
  }
};

// What random problems are drawn from: extents up to these, blocks of scales, and those of swizzled
// ones.
struct ScaleDraw {
  int most_rows;
  int most_k;
  std::vector<std::string> blocks = {"1x128", "128x128", "1x32",  "1x16",  "1x8",
                                     "64x64", "3x5",     "7xall", "allx24"};
  std::vector<std::string> swizzled = {"1x32", "1x16"};
};

// Lines of random problems with scales, which arguments take.
class RandomScales {
 public:
  RandomScales(std::uint64_t seed, ScaleDraw draw) : random_(seed), from_(std::move(draw)) {}

  // A block that reaches over all of k may leave integers without a floating-point sum; such lines
  // are drawn again.
  ProblemLine next(const std::vector<std::string>& operands) {
    while (true) {
      try {
        return parse_problem(line(operands));
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("integer products"), std::string::npos)
            << error.what();
      }
    }
  }

 private:
  // `operands`: the types of A and B.
  std::string line(const std::vector<std::string>& operands) {
    const int most = from_.most_rows;
    const int batches = draw(0, 3) == 0 ? draw(2, 3) : 1;
    const std::string a = one_of(operands);
    const std::string b = one_of(operands);
    std::string text = "gemm " + std::to_string(draw(1, most)) + "x" +
                       std::to_string(8 * draw(1, most / 8)) + "x" +
                       std::to_string(8 * draw(1, from_.most_k / 8));
    if (batches > 1) text += "x" + std::to_string(batches);
    const bool is_of_a = draw(0, 2) != 0;
    const bool are_integers = is_integer(a) || is_integer(b);
    text += " a=" + a + " b=" + b + (draw(0, 1) == 0 ? ":c" : "");
    text += " out=" + one_of({"f32", "f32", "bf16"}) + " acc=f32";
    if (is_of_a || are_integers) text += scales_of("a", is_integer(a));
    if (!is_of_a || are_integers || draw(0, 1) == 0) text += scales_of("b", is_integer(b));
    const int rest = draw(0, 3);
    if (rest == 0) text += " epilogue=\"D = relu(accum) + bias\" bias=f32[n]";
    if (rest == 1) text += " c=bf16 alpha=0.5 beta=2";
    return text;
  }

  static bool is_integer(const std::string& type) {
    return type.starts_with('s') || type.starts_with('u');
  }
  int draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  std::string one_of(const std::vector<std::string>& all) {
    return all[static_cast<std::size_t>(draw(0, static_cast<int>(all.size()) - 1))];
  }

  // Integers have a scale that varies along k, so that their sums are floats.
  std::string scales_of(const std::string& operand, bool is_of_integers) {
    const std::string along = operand == "a" ? ":m" : ":n";
    std::string text = " scale_" + operand + "=";
    const int kind = is_of_integers ? 2 : draw(0, 4);
    if (kind == 0) return text + one_of({"f32", "bf16", "f16"}) + "[row]";
    if (kind == 1) return text + one_of({"f32", "bf16"}) + "[tensor]";
    if (kind == 3)
      return text + one_of({"e8m0", "e4m3"}) + "[" + one_of(from_.swizzled) + "]:swizzled";
    text += one_of({"f32", "f16", "bf16", "e8m0", "e4m3"}) + "[" + one_of(from_.blocks) + "]" +
            one_of({"", along});
    if (draw(0, 2) == 0) text += "*f32[tensor]";
    if (is_of_integers && draw(0, 1) == 0)
      text += " zero_" + operand + "=" + one_of({"s8", "u8", "f16", "s32"}) + "[" +
              one_of(from_.blocks) + "]";
    return text;
  }

  std::mt19937_64 random_;
  ScaleDraw from_;
};

TEST_F(ScaledRows, random_problems_are_right_on_the_cpu) {
  RandomScales problems(random_(), {.most_rows = 150, .most_k = 300});
  for (int count = 0; count < (is_soak() ? 3000 : 40); ++count)
    expect_on_cpu(problems.next(
        {"e4m3", "e5m2", "s8", "u8", "f16", "bf16", "f32", "e2m1", "s4", "u4", "e3m2"}));
}

TEST_F(ScaledRows, random_problems_are_right_by_simt) {
  if (!jit::compiler_status().found) GTEST_SKIP() << jit::compiler_status().searched;
  RandomScales problems(random_(), {.most_rows = 70, .most_k = 140});
  for (int count = 0; count < (is_soak() ? 600 : 2); ++count)
    expect_emulated(
        problems.next({"e4m3", "e5m2", "s8", "u8", "f16", "bf16", "f32", "e2m1", "s4", "e3m2"}),
        "simt");
}

// Blocks whose scales do not change within the k of one wgmma. Problems whose scales are all
// factors of sums are included.
TEST_F(ScaledRows, random_problems_are_right_by_sm90) {
  if (!jit::compiler_status().found) GTEST_SKIP() << jit::compiler_status().searched;
  RandomScales problems(random_(),
                        {.most_rows = 200,
                         .most_k = 700,
                         .blocks = {"1x128", "128x128", "1x32", "64x64", "3x96", "7xall", "1x256"},
                         .swizzled = {"1x32", "1x128"}});
  for (int count = 0; count < (is_soak() ? 600 : 2); ++count)
    expect_emulated(problems.next({"e4m3", "e5m2"}), "sm90");
}

// A line with codes of one operand beside 16-bit floats. sm80 decodes all of them: dense or in
// groups of rows, of integers and floats, of a table's numbers, prepared or not. sm90 takes those
// that are dense and neither of a table nor prepared.
std::string draw_codes(std::mt19937_64& random, bool is_for_sm80) {
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  const auto one_of = [&](const std::vector<std::string>& all) {
    return all[static_cast<std::size_t>(draw(0, static_cast<int>(all.size()) - 1))];
  };
  const std::string number = one_of({"bf16", "f16"});
  const std::string code = one_of({"s4", "u4", "s8", "u8", "e2m1", "e4m3", "e5m2"});
  const bool is_integer = code.starts_with('s') || code.starts_with('u');
  const bool is_grouped = is_for_sm80 && draw(0, 1) == 0;
  const bool is_prepared = is_for_sm80 && !is_grouped && draw(0, 2) == 0;
  const bool has_table = is_for_sm80 && code == "u4" && draw(0, 1) == 0;
  const int k = 32 * draw(1, 10);
  std::string text = std::to_string(draw(1, 130)) + "x" +
                     std::to_string(is_prepared ? 32 * draw(1, 3) : 8 * draw(1, 12)) + "x" +
                     std::to_string(k);
  text = !is_grouped ? "gemm " + text
                     : "grouped_gemm " + text + " groups=" + std::to_string(draw(1, 6)) +
                           one_of({" ends=i32", " counts=i64", " masked=i32"});
  text += " a=" + number + " b=" + code + ":c out=" + one_of({"f32", number}) + " acc=f32";
  text += " scale_b=" + one_of({"f32", "bf16", "e8m0"}) + one_of({"[1x32]", "[1x64]", "[64x32]"});
  if (has_table) text += " table_b=nf4." + number;
  if (is_prepared) text += " order_b=fragments";
  // Rows of an odd number of 4-bit zero points do not fill whole bytes.
  const bool fills_bytes = k % 64 == 0 || code.ends_with('8');
  if (is_integer && !has_table && draw(0, 1) == 0)
    text += " zero_b=" + code + one_of({fills_bytes ? "[1x32]" : "[1x32]:n", "[1x64]:n"});
  return text;
}

TEST_F(ScaledRows, random_codes_are_problems) {
  for (int count = 0; count < 500; ++count) {
    const std::string line = draw_codes(random_, count % 2 == 0);
    EXPECT_NO_THROW(parse_problem(line)) << line;
  }
}

TEST_F(ScaledRows, random_codes_are_right_by_sm80) {
  if (!jit::compiler_status().found) GTEST_SKIP() << jit::compiler_status().searched;
  for (int count = 0; count < (is_soak() ? 200 : 1); ++count)
    expect_emulated(parse_problem(draw_codes(random_, true)), "sm80");
}

TEST_F(ScaledRows, random_codes_are_right_by_sm90) {
  if (!jit::compiler_status().found) GTEST_SKIP() << jit::compiler_status().searched;
  for (int count = 0; count < (is_soak() ? 200 : 1); ++count)
    expect_emulated(parse_problem(draw_codes(random_, false)), "sm90");
}

TEST_F(ScaledRows, large_problems_are_for_tensor_cores) {
  const auto best = [](const char* line) {
    return get_kernels(parse_problem(line).problem, *find_device_info("h200")).front();
  };
  const RankedKernel blocks = best(
      "gemm 4096x4096x4096 a=e4m3 b=e4m3:c scale_a=f32[1x128]:m scale_b=f32[128x128] out=bf16");
  const RankedKernel mx =
      best("gemm 4096x4096x4096 a=e4m3 b=e4m3:c scale_a=e8m0[1x32] scale_b=e8m0[1x32] out=bf16");
  EXPECT_EQ(blocks.family().name(), "sm90");
  EXPECT_EQ(mx.family().name(), "sm90");
  EXPECT_LT(blocks.predicted_us, mx.predicted_us) << "MX scales four times as often";
}

TEST_F(ScaledRows, row_32_tensor_scales) {
  expect({"gemm 64x80x96 a=e4m3 b=e5m2 scale_a=f32 scale_b=f32 out=f32",
          "gemm 64x80x96 a=e4m3 b=e4m3:c scale_b=f32 out=bf16 c=bf16 alpha=0.5 beta=2",
          "gemm 33x17x65x3 a=f16 scale_a=f32[tensor]/batch=0 scale_b=bf16 out=f16"});
}

TEST_F(ScaledRows, row_33_amax_is_taken_before_the_scale_of_the_result) {
  expect({"gemm 64x80x96 a=e4m3 scale_a=f32 scale_b=f32 out=e4m3 "
          "epilogue=\"D = cast(accum * scale_d, e4m3, saturate); peak = amax(accum)\" "
          "scale_d=f32[1] peak=f32[1]"},
         {});
  expect(
      {"gemm 64x80x96 a=e4m3 scale_a=f32 scale_b=f32 out=f32 "
       "epilogue=\"D = accum * scale_d; peak = amax(accum)\" scale_d=f32[1] peak=f32[1]"});
}

TEST_F(ScaledRows, row_34_scales_of_rows) {
  expect(
      {"gemm 65x72x136 a=e4m3 scale_a=f32[row] scale_b=f32[row] out=bf16",
       "grouped_gemm 34x48x64 groups=6 ends=i32 a=e4m3 b=e4m3:c scale_a=f32[row] "
       "scale_b=f32[row] out=bf16",
       "grouped_gemm 24x40x192 groups=3 ragged=k ends=i32 a=e4m3:c b=e4m3 scale_a=f32[row] "
       "scale_b=f32[row] out=f32",
       "grouped_gemm 64x48x32 groups=3 masked=i32 a=bf16 scale_a=f32[row] scale_b=f32 out=bf16"});
}

TEST_F(ScaledRows, row_34_scales_of_rows_on_tensor_cores) {
  expect({"gemm 65x72x136 a=e4m3 b=e4m3:c scale_a=f32[row] scale_b=f32[row] out=bf16"}, {"sm90"});
  expect({"gemm 65x72x136 a=bf16 scale_a=f32[row] scale_b=f32 out=f32 c=f32 beta=2"},
         {"sm80", "sm90"});
}

TEST_F(ScaledRows, row_35_one_row_one_column_and_integers) {
  expect({"gemm 1x72x136 a=e4m3 scale_a=f32[row] scale_b=f32[row] out=bf16",
          "gemm 65x1x136 a=e4m3 scale_a=f32[row] scale_b=f32[row] out=bf16",
          "gemm 65x72x136 a=s8 scale_a=f32[row] scale_b=f32[row] out=f32"});
}

TEST_F(ScaledRows, row_36_blocks_of_rows_and_of_squares) {
  expect({"gemm 130x200x320 a=e4m3 scale_a=f32[1x128]:m scale_b=f32[128x128] out=bf16",
          "gemm 130x200x320 a=e4m3 b=e4m3:c scale_a=f32[1x128] scale_b=f32[128x128]:n out=f32"},
         {"simt", "sm90"});
}

TEST_F(ScaledRows, row_37_other_pairs_of_blocks) {
  expect({"gemm 129x136x448 a=e4m3 scale_a=f32[128x128]/ld=4 scale_b=f32[1x128]:n out=bf16",
          "gemm 129x136x448 a=e4m3 scale_a=f32[1x128] scale_b=f32[1x128] out=f32"},
         {"simt", "sm90"});
}

TEST_F(ScaledRows, row_41_blocks_of_any_shape) {
  expect({"gemm 70x65x96 a=e4m3 scale_a=f32[1x32] scale_b=f32[1x32] out=f32",
          "gemm 70x65x130 a=e5m2 scale_a=f32[64x64] scale_b=f32[64x64]:n out=f32",
          "gemm 70x65x130 a=bf16 scale_a=f16[3x7] scale_b=bf16[17x1] out=f32",
          "gemm 70x65x130 a=f32 scale_a=f32[1x200] scale_b=e4m3[128x1] out=f32",
          "gemm 17x18x40x3 a=e4m3 scale_a=f32[1x16]/batch=0 scale_b=f32[2x8] out=f32",
          "gemm 64x64x0 a=e4m3 scale_a=f32[1x32] out=f32"});
}

TEST_F(ScaledRows, row_42_mxfp8_in_both_layouts) {
  expect({"gemm 130x136x160 a=e4m3 b=e5m2 scale_a=e8m0[1x32] scale_b=e8m0[1x32] out=f32",
          "gemm 130x136x160 a=e4m3 b=e5m2 scale_a=e8m0[1x32]:swizzled "
          "scale_b=e8m0[1x32]:swizzled out=f32",
          "gemm 40x136x160x2 a=e4m3 scale_a=e8m0[1x32]:swizzled scale_b=e8m0[1x32]:n out=bf16"},
         {"simt", "sm90"});
}

TEST_F(ScaledRows, row_44_mxfp4) {
  expect({"gemm 33x65x96 a=e2m1 b=e2m1:c scale_a=e8m0[1x32] scale_b=e8m0[1x32] out=f32",
          "gemm 33x65x96 a=e2m1 b=e2m1:c scale_a=e8m0[1x32]:swizzled "
          "scale_b=e8m0[1x32]:swizzled out=bf16"});
}

TEST_F(ScaledRows, row_45_nvfp4_with_scales_of_both_levels) {
  expect(
      {"gemm 128x128x64 a=e2m1 b=e2m1:c scale_a=e4m3[1x16]:swizzled*f32[tensor] "
       "scale_b=e4m3[1x16]:swizzled*f32[tensor] out=bf16",
       "gemm 257x40x48 a=e2m1 b=e2m1:c scale_a=e4m3[1x16]*f32 scale_b=e4m3[1x16]*f32 out=f32"});
}

TEST_F(ScaledRows, row_46_mxfp8_times_mxfp4) {
  expect({"gemm 33x66x96 a=e4m3 b=e2m1:c scale_a=e8m0[1x32]:swizzled scale_b=e8m0[1x32] out=f32"});
}

TEST_F(ScaledRows, row_46_mxfp8_times_mxfp4_of_groups) {
  expect({"grouped_gemm 45x64x96 groups=3 ends=i32 a=e4m3 b=e2m1:c scale_a=e8m0[1x32] "
          "scale_b=e8m0[1x32]:swizzled out=f32",
          "grouped_gemm 384x64x96 groups=3 ends=i32/align=128 a=e2m1 b=e2m1:c "
          "scale_a=e8m0[1x32]:swizzled scale_b=e8m0[1x32]:swizzled out=bf16"},
         {});
}

TEST_F(ScaledRows, groups_with_scales_of_blocks) {
  expect({"grouped_gemm 300x72x384 groups=5 ends=i32 a=e4m3 b=e4m3:c scale_a=f32[1x128]:m "
          "scale_b=f32[128x128] out=bf16",
          "grouped_gemm 64x136x320 groups=3 masked=i32 a=e4m3 b=e5m2:c scale_a=e8m0[1x32] "
          "scale_b=e8m0[1x32]:swizzled out=bf16 epilogue=\"D = silu(accum)\"",
          "grouped_gemm 72x136x640 groups=4 ragged=k ends=i32/align=128 a=e4m3 b=e4m3:c "
          "scale_a=f32[1x128] scale_b=f32[1x128] out=f32",
          "grouped_gemm 72x300x256 groups=4 ragged=n counts=i32/align=16 outside=zero a=e4m3 "
          "b=e4m3:c scale_a=f32[128x128] scale_b=f32[128x128] out=f32"},
         {"simt", "sm90"});
}

TEST_F(ScaledRows, row_57_grouped_weights_of_4_bits) {
  expect({"grouped_gemm 32x48x64 groups=6 ends=i32 a=bf16 b=s4:c scale_b=bf16[1x32] out=bf16",
          "grouped_gemm 70x64x128 groups=4 ends=i32 a=f16 b=u4:c scale_b=f16[1x64] "
          "zero_b=u4[1x64] out=f32",
          "grouped_gemm 70x64x128 groups=4 ends=i32 a=bf16 b=e2m1:c scale_b=e8m0[1x32] out=f32",
          "grouped_gemm 16x64x128 groups=4 masked=i32 a=bf16 b=e2m1:c "
          "scale_b=e8m0[1x32]:swizzled out=bf16"},
         {"sm80"});
}

TEST_F(ScaledRows, row_50_integers_of_4_bits_in_groups) {
  expect({"gemm 17x72x160 a=f16 b=u4 scale_b=f16[1x32] zero_b=u4[1x32]:n out=f16",
          "gemm 17x72x256 a=bf16 b=s4:c scale_b=bf16[1x128] out=bf16",
          "gemm 17x72x160 a=bf16 b=u4 scale_b=f32[row] zero_b=f16[row] out=f32"});
}

TEST_F(ScaledRows, row_51_integers_with_a_scale_for_each_channel) {
  expect({"gemm 17x72x160 a=bf16 b=s8 scale_b=bf16[row] out=bf16",
          "gemm 17x72x160 a=f16 b=u8:c scale_b=f32[row] zero_b=u8 out=f32",
          "gemm 16x72x160 a=bf16 b=s8 scale_b=f32[1x32] zero_b=s8[1x32] out=f32"});
}

// Positive numbers of e4m3 in host memory and on an emulated device, with a scale for each tensor.
class PositiveProduct {
 public:
  PositiveProduct(std::int64_t k, Math math, std::mt19937_64& random)
      : k_(k), math_(math), a_(codes(random)), b_(codes(random)), out_(m * n) {}

  // By the kernel on its device, against the kernel's bound.
  VerifyReport check(const Kernel& kernel, Stream stream) {
    const Buffer out(out_.size() * sizeof(float), stream);
    const Buffer a = on_device(a_, stream), b = on_device(b_, stream);
    const Buffer scales = on_device(scales_, stream);
    kernel.run(arguments(a.data(), b.data(), scales.data(), out.data(), stream.device()),
               {.stream = stream});
    copy(out_.data(), Device::cpu(), out.data(), stream.device(), out_.size() * sizeof(float),
         stream);
    synchronize(stream);
    return check_result(arguments(a_.data(), b_.data(), scales_.data(), out_.data(), Device::cpu()),
                        kernel);
  }

  // One kernel of sm90 for each of its tiles.
  std::vector<Kernel> kernels(Device device) {
    const GemmProblem problem =
        arguments(a_.data(), b_.data(), scales_.data(), out_.data(), Device::cpu()).problem();
    std::vector<Kernel> chosen;
    std::set<std::string> tiles;
    for (const Kernel& kernel : get_kernels(problem, device_info(device)))
      if (kernel.family().name() == "sm90" &&
          tiles.insert(std::string(kernel.metadata().design_value("tile"))).second)
        chosen.push_back(kernel);
    return chosen;
  }

 private:
  static constexpr std::int64_t m = 24, n = 16;

  std::vector<std::uint8_t> codes(std::mt19937_64& random) const {
    std::vector<std::uint8_t> all(static_cast<std::size_t>(m * k_));
    for (std::uint8_t& code : all) code = static_cast<std::uint8_t>(0x30 + random() % 0x0f);
    return all;
  }
  template <class T>
  static Buffer on_device(const std::vector<T>& values, Stream stream) {
    Buffer buffer(values.size() * sizeof(T), stream);
    copy(buffer.data(), stream.device(), values.data(), Device::cpu(), values.size() * sizeof(T),
         stream);
    return buffer;
  }
  GemmArguments arguments(const void* a, const void* b, const void* scales, const void* out,
                          Device device) const {
    const auto scaled = [&](const Tensor& tensor, int at) {
      return ScaledOperand(
          tensor, {{Tensor(static_cast<const float*>(scales) + at, DType::float32, {1}, device),
                    scale_block::tensor, ScaleLayout::strided}});
    };
    GemmOptions options;
    options.math = math_;
    const std::array shape_of_b{k_, n}, strides_of_b{std::int64_t{1}, k_};
    return GemmArguments(
        scaled(Tensor(a, DType::float8_e4m3fn, {m, k_}, device), 0),
        scaled(Tensor(b, DType::float8_e4m3fn, shape_of_b, strides_of_b, device), 1),
        Tensor(out, DType::float32, {m, n}, device), DType::float32, options);
  }

  std::int64_t k_;
  Math math_;
  std::vector<std::uint8_t> a_, b_;
  std::vector<float> scales_{0.125F, 3.0F};
  std::vector<float> out_;
};

// Errors of sums of positive numbers do not cancel. A short run takes one tile.
TEST_F(ScaledRows, row_49_long_sums_of_positive_numbers_fast_and_promoted) {
  if (!jit::compiler_status().found) GTEST_SKIP() << jit::compiler_status().searched;
  const Device device = parse_device("emulated:h200").value();
  const OwnedStream stream{device};
  const Math of_short_run = random_() % 2 == 0 ? Math::fp8_fast : Math::fp8_promoted;
  for (const std::int64_t k : {16384, 65536})
    for (const Math math : {Math::fp8_fast, Math::fp8_promoted}) {
      if (!is_soak() && (k > 16384 || math != of_short_run)) continue;
      PositiveProduct product(k, math, random_);
      const std::vector<Kernel> kernels = product.kernels(device);
      ASSERT_FALSE(kernels.empty());
      const std::size_t only = random_() % kernels.size();
      for (std::size_t i = 0; i < kernels.size(); ++i) {
        if (!is_soak() && i != only) continue;
        const VerifyReport report = product.check(kernels[i], stream);
        EXPECT_TRUE(report.passed) << kernels[i].name() << ": " << report.first_failure;
        EXPECT_GT(report.worst_ratio, 0) << "nothing was rounded";
      }
    }
}

// Odd extents of k beside codes of 4 bits need columns of whole bytes.
TEST_F(ScaledRows, row_54_int4_times_e4m3_with_scales_of_rows) {
  expect({"gemm 3x16x7000 a=e4m3 scale_a=f32[row] b=s4:c scale_b=bf16[1x128] out=bf16",
          "gemm 5x8x7168 a=e4m3 scale_a=f32[row] b=s4 scale_b=f16[1x128]:n out=f32",
          "gemm 17x40x131 a=e4m3 scale_a=f32[row] b=s4:c/ld=132 scale_b=f32[1x128] out=f32"});
  // Without scales in the main loop, and with few rows: families of other types refuse codes.
  expect({"gemm 2x64x128 a=e2m1 b=bf16 scale_a=f32[row] out=f32",
          "gemm 1x64x128 a=bf16 b=e3m2:c out=bf16"});
  EXPECT_THROW(parse_problem("gemm 17x40x131 a=e4m3 b=s4:c scale_b=f32[1x128] out=f32"), Error);
}

TEST_F(ScaledRows, row_55_nf4_in_blocks) {
  expect({"gemm 17x72x96 a=bf16 b=u4:c scale_b=f32[1x32] table_b=nf4 out=bf16",
          "gemm 17x72x96 a=f16 b=u4 scale_b=f32[1x32] table_b=nf4.f16 out=f32",
          "gemm 20x66x131 a=u4/ld=132 b=f32 scale_a=f32[1x64] "
          "table_a=0,1,-2.5,3,4,5,6,7,8,9,10,11,12,13,14,-0.1 out=f32"});
}

}  // namespace
}  // namespace gemmery
