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
#include "tests/support/random_scaled.hpp"
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

TEST_F(ScaledRows, random_problems_are_right_on_the_cpu) {
  tests::RandomScales problems(random_(), {.most_rows = 150, .most_k = 300});
  for (int count = 0; count < (is_soak() ? 3000 : 40); ++count)
    expect_on_cpu(problems.next(
        {"e4m3", "e5m2", "s8", "u8", "f16", "bf16", "f32", "e2m1", "s4", "u4", "e3m2"}));
}

TEST_F(ScaledRows, random_problems_are_right_by_simt) {
  if (!jit::compiler_status().found) GTEST_SKIP() << jit::compiler_status().searched;
  tests::RandomScales problems(random_(), {.most_rows = 70, .most_k = 140});
  for (int count = 0; count < (is_soak() ? 600 : 2); ++count)
    expect_emulated(
        problems.next({"e4m3", "e5m2", "s8", "u8", "f16", "bf16", "f32", "e2m1", "s4", "e3m2"}),
        "simt");
}

TEST_F(ScaledRows, random_problems_are_right_by_sm90) {
  if (!jit::compiler_status().found) GTEST_SKIP() << jit::compiler_status().searched;
  tests::RandomScales problems(random_(), tests::scales_for_wgmma());
  for (int count = 0; count < (is_soak() ? 600 : 2); ++count)
    expect_emulated(problems.next({"e4m3", "e5m2"}), "sm90");
}

TEST_F(ScaledRows, random_codes_are_problems) {
  for (int count = 0; count < 500; ++count) {
    const std::string line = tests::draw_codes(random_, count % 2 == 0);
    EXPECT_NO_THROW(parse_problem(line)) << line;
  }
}

TEST_F(ScaledRows, random_codes_are_right_by_sm80) {
  if (!jit::compiler_status().found) GTEST_SKIP() << jit::compiler_status().searched;
  for (int count = 0; count < (is_soak() ? 200 : 1); ++count)
    expect_emulated(parse_problem(tests::draw_codes(random_, true)), "sm80");
}

TEST_F(ScaledRows, random_codes_are_right_by_sm90) {
  if (!jit::compiler_status().found) GTEST_SKIP() << jit::compiler_status().searched;
  for (int count = 0; count < (is_soak() ? 200 : 1); ++count)
    expect_emulated(parse_problem(tests::draw_codes(random_, false)), "sm90");
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
