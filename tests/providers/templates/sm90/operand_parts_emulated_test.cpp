// SPDX-License-Identifier: Apache-2.0
// Split float32 on an emulated H200: its accuracy compared with native float32, numbers at the ends
// of float32's range, programs, operands of any alignment, split k.
#include <gtest/gtest.h>
#include <gemmery/gemmery.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/providers/templates/on_emulated_h200.hpp"

namespace gemmery {
namespace {

constexpr const char* split_maths[] = {"tf32x3", "bf16x3", "bf16x6", "bf16x9"};
constexpr float infinity = std::numeric_limits<float>::infinity();

class OperandPartsEmulated : public tests::OnEmulatedH200 {
 protected:
  std::string name(const char* math, const char* types, const char* design) const {
    return fmt::format("sm90v{}_gemm_{}_acc-f32_wgmma-{}_{}", version(), types, math, design);
  }

  // The largest error of an element.
  double error_of(const std::string& line, const std::string& kernel_name, std::uint64_t seed) {
    const auto kernel = find_kernel(kernel_name);
    if (!kernel) ADD_FAILURE() << kernel_name;
    if (!kernel) return std::numeric_limits<double>::quiet_NaN();
    const VerifyReport report =
        verify(parse_problem(line), *kernel, {.seed = seed, .device = h200_});
    EXPECT_TRUE(report.passed) << line << " " << kernel_name << ": " << report.first_failure;
    return report.worst_error;
  }

  // The first row of A and the first column of B have `a` and `b` at k = 0, and 0 elsewhere.
  float product_of(const Kernel& kernel, float a, float b) const {
    constexpr std::int64_t size = 32;
    const OwnedStream stream(h200_);
    std::vector<float> host(size * size);
    const auto upload = [&](float first) {
      host.assign(host.size(), 0.0F);
      host[0] = first;
      Buffer buffer(host.size() * sizeof(float), stream);
      copy(buffer.data(), h200_, host.data(), Device::cpu(), buffer.bytes(), stream);
      synchronize(stream);
      return buffer;
    };
    const Buffer of_a = upload(a), of_b = upload(b), of_out = upload(0);
    const auto view = [&](const Buffer& buffer) {
      return Tensor(buffer.data(), DType::float32, {size, size}, {size, 1}, h200_);
    };
    const GemmArguments arguments(view(of_a), view(of_b), view(of_out),
                                  {.math = kernel.operands().math});
    kernel.run(arguments, {.stream = stream});
    copy(host.data(), Device::cpu(), of_out.data(), h200_, of_out.bytes(), stream);
    synchronize(stream);
    return host[0];
  }

  Kernel small_kernel(const char* math) const {
    return find_kernel(name(math, "f32r16_f32r16_f32r16", "64x32x32_1x1_coop_m8_s2")).value();
  }

 private:
  static std::string version() {
    const std::string first = "sm90v";
    for (const RankedKernel& kernel : get_kernels(
             parse_problem("gemm 64x64x64 a=f32 math=bf16x9").problem, *find_device_info("h200"))) {
      const std::string full = kernel.name();
      if (full.starts_with(first)) return full.substr(first.size(), full.find('_') - first.size());
    }
    return "";
  }
};

// Random normal numbers, compared with one chain of FMAs over k on CUDA cores.
TEST_F(OperandPartsEmulated, three_parts_are_no_less_accurate_than_native_float32) {
  const std::uint64_t seed = random_();
  const std::string line = "gemm 64x64x2048 a=f32 b=f32:c";
  const auto error = [&](const char* math) {
    return error_of(fmt::format("{} math={}", line, math),
                    name(math, "f32r16_f32c16_f32r16", "64x64x32_1x1_coop_m8_s2"), seed);
  };
  const double native =
      error_of(line, "simt1_gemm_f32x4_f32c4_f32x4_acc-f32_128x128x16_8x8_k1_s3", seed);
  EXPECT_LE(error("bf16x9"), native);
  EXPECT_LE(error("bf16x6"), native);
  EXPECT_LE(error("tf32x3"), native);
  EXPECT_LE(50 * error("bf16x3"), error("tf32"));
}

TEST_F(OperandPartsEmulated, numbers_at_the_ends_of_float32_are_what_they_are) {
  constexpr float largest = std::numeric_limits<float>::max();
  for (const char* math : split_maths) {
    const Kernel kernel = small_kernel(math);
    const double unit = std::string(math) == "bf16x3" ? 0x1p-14 : 0x1p-20;
    for (const auto& [a, b] : {std::pair{largest, 0.5F}, std::pair{-largest, 0x1.fffffep-3F},
                               std::pair{0x1.ff8p127F, -0.25F}, std::pair{0x1.5p-100F, 0x1.3p90F},
                               std::pair{0x1.8p-126F, 0x1p126F}}) {
      const double exact = static_cast<double>(a) * b;
      for (const auto& [x, y] : {std::pair{a, b}, std::pair{b, a}})
        EXPECT_NEAR(product_of(kernel, x, y), exact, unit * std::fabs(exact)) << math << " " << x;
    }
    EXPECT_TRUE(std::isnan(product_of(kernel, std::nanf(""), 1))) << math;
    EXPECT_TRUE(std::isnan(product_of(kernel, 0, infinity))) << math;
    EXPECT_TRUE(std::isnan(product_of(kernel, infinity, 0))) << math;
    if (std::string(math) == "bf16x9") continue;  // infinity times a part that is 0
    EXPECT_EQ(product_of(kernel, infinity, 3), infinity) << math;
    EXPECT_EQ(product_of(kernel, -0.1F, infinity), -infinity) << math;
    EXPECT_EQ(product_of(kernel, -infinity, -infinity), infinity) << math;
  }
  EXPECT_FALSE(std::isfinite(product_of(small_kernel("bf16x9"), infinity, 3)));
}

// Repacked operands, rows that threads store, batches, a C.
TEST_F(OperandPartsEmulated, operands_of_any_alignment_are_right) {
  for (const char* math : split_maths) {
    for (const char* words :
         {"a=f32/ld=203 b=f32 out=f32/ld=67", "a=f32:c/ld=141 b=f32:c/ld=205 out=bf16",
          "a=f32 b=f32/strides=131,2 out=f32:c c=f32:c beta=-2"}) {
      const ProblemLine line =
          parse_problem(fmt::format("gemm 140x61x200x2 {} math={}", words, math));
      if (!rows_.takes_next()) continue;
      bool is_served = false;
      for (const RankedKernel& kernel : get_kernels(line.problem, device_info(h200_))) {
        if (kernel.family().name() != "sm90") continue;
        is_served = true;
        const VerifyReport report = verify(line, kernel, {.seed = random_(), .device = h200_});
        EXPECT_TRUE(report.passed)
            << to_string(line) << " " << kernel.name() << ": " << report.first_failure;
        break;
      }
      EXPECT_TRUE(is_served) << to_string(line);
    }
  }
}

TEST_F(OperandPartsEmulated, programs_and_shares_of_k_are_right) {
  struct Row {
    const char* math;
    const char* design;
    const char* program;
  };
  for (
      const Row& row : std::initializer_list<Row>{
          {"bf16x9", "128x64x32_1x1_coop_m8_s3",
           R"p(epilogue="D = gelu(accum + bias)" bias=f32[n])p"},
          {"bf16x6", "64x64x32_2x1_pingpong_m8_s2",
           R"p(epilogue="D = accum * s + residual; peak = amax(D)" s=f32[m] residual=f32 peak=f32[1])p"},
          {"tf32x3", "128x64x32_1x2_coop_m8_s2",
           R"p(epilogue="D = max(accum, 0); P = accum" P=f32)p"},
          {"bf16x3", "64x64x32_1x1_k2_coop_m8_s3", ""},
          {"bf16x9", "128x64x32_1x1_k4_coop_m8_s2", ""},
          {"tf32x3", "64x64x32_1x1_k2_coop_m8_s2", ""},
          {"bf16x9", "64x64x32_1x1_stream_pingpong_m8_s2", ""},
          {"bf16x6", "128x64x32_1x1_parallel3_coop_m8_s2",
           R"p(epilogue="D = accum + bias" bias=f32[n])p"},
          {"tf32x3", "64x64x32_1x1_serial3_coop_m8_s2", ""}}) {
    const ProblemLine line = parse_problem(
        fmt::format("gemm 200x104x300x2 a=f32:c b=f32 math={} {}", row.math, row.program));
    std::string kernel_name = name(row.math, "f32c16_f32r16_f32r16", row.design);
    if (line.problem.epilogue != default_epilogue)
      kernel_name += "_e-" + digest(line.problem.epilogue);
    const auto kernel = find_kernel(kernel_name);
    ASSERT_TRUE(kernel) << kernel_name;
    if (!rows_.takes_next()) continue;
    const VerifyReport report = verify(line, *kernel, {.seed = random_(), .device = h200_});
    EXPECT_TRUE(report.passed) << to_string(line) << " " << kernel_name << ": "
                               << report.first_failure;
  }
}

}  // namespace
}  // namespace gemmery
