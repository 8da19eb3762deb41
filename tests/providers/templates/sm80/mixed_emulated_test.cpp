// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit floats and codes on emulated devices of sm_80, where 8-bit floats are decoded
// by shifts, and of sm_90, where an instruction decodes them: every code at every place, in A and
// in B, and problems whose extents fill no tile. GEMMERY_SOAK=1 runs 400 random
// problems and all rows.
#include <gtest/gtest.h>
#include <gemmery/gemmery.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/number.hpp"
#include "tests/providers/templates/every_code.hpp"
#include "tests/providers/templates/scaled_cases.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery {
namespace {

class Sm80Mixed : public tests::RandomCases {};

bool is_soak() {
  const char* const text = std::getenv("GEMMERY_SOAK");
  return text != nullptr && std::string_view(text) == "1";
}

using tests::expect_every_code;
using tests::ScaledCase;

// A kernel for a row of every code.
std::string every_code_kernel(DType code, DType half, bool is_a) {
  return fmt::format("sm80v1_gemm_{}r16_{}c16_f32r16_acc-f32_mma_64x64x64_2x2x1_none_m8_s4",
                     alias(is_a ? code : half), alias(is_a ? half : code));
}

TEST_F(Sm80Mixed, row_52_every_code_of_8_bits_is_exact_and_nan_stays_nan) {
  for (const DType code : {DType::float8_e4m3fn, DType::float8_e5m2})
    for (const DType half : {DType::float16, DType::bfloat16}) {
      const bool is_a = draw(0, 1) == 0;
      expect_every_code(code, half, is_a, every_code_kernel(code, half, is_a),
                        one_of({"emulated:a100", "emulated:h200"}));
    }
}

TEST_F(Sm80Mixed, row_53_every_code_of_e2m1_is_exact) {
  for (const DType half : {DType::float16, DType::bfloat16})
    for (const bool is_a : {false, true})
      expect_every_code(DType::float4_e2m1fn, half, is_a,
                        every_code_kernel(DType::float4_e2m1fn, half, is_a), "emulated:a100");
}

TEST_F(Sm80Mixed, extents_alignments_tiles_and_splits_of_any_kind_are_right) {
  for (int round = 0; round < (is_soak() ? 400 : 6); ++round) {
    const char* const code = one_of({"e2m1", "e4m3", "e5m2"});
    const char* const half = one_of({"bf16", "f16"});
    const bool is_a = draw(0, 1) == 0;
    const int of_codes = one_of({4, 16});
    const int of_half = one_of({2, 4, 16});
    const char* const out = one_of({"bf16", "f16", "f32"});
    const char* const tile = one_of({"128x128x64_2x4x1", "64x128x64_2x2x1", "128x32x64_4x1x1",
                                     "16x128x64_1x4x1", "16x64x128_1x2x2", "64x16x128_2x1x2"});
    const std::string split = one_of({"none", "none", "serial2", "parallel3", "stream"});
    const std::string name =
        fmt::format("sm80v1_gemm_{}r{}_{}c{}_{}x{}_acc-f32_mma_{}_{}_m8_s3", is_a ? code : half,
                    is_a ? of_codes : of_half, is_a ? half : code, is_a ? of_half : of_codes, out,
                    std::string_view(out) == "f32" ? 4 : 2, tile, split);
    const auto kernel = find_kernel(name);
    ASSERT_TRUE(kernel) << name;
    const int k = draw(0, 300);
    const auto operand = [&](bool has_codes, const char* layout) {
      const int unit = has_codes ? 32 : 8;  // 16 bytes
      return fmt::format("{}{}/ld={}", has_codes ? code : half, layout, (k / unit + 1) * unit);
    };
    const ProblemLine line = parse_problem(
        fmt::format("gemm {}x{}x{}x{} a={} b={} out={} alpha={}", draw(1, 150), draw(1, 150), k,
                    draw(1, 2), operand(is_a, ""), operand(!is_a, ":c"), out, one_of({0, 1, 2})));
    const Device device = parse_device(one_of({"emulated:a100", "emulated:h200"})).value();
    const VerifyReport report = verify(
        line, *kernel,
        {.fill = one_of({Fill::normal, Fill::integers}), .seed = random_(), .device = device});
    EXPECT_TRUE(report.passed) << to_string(line) << " " << name << ": " << report.first_failure;
  }
}

class Sm80Scaled : public tests::ScaledCases {
 protected:
  Sm80Scaled() : ScaledCases("sm80") {}
};

TEST_F(Sm80Scaled, row_50_int4_with_groups_and_zero_points) {
  for (const std::int32_t group : {32, 64, 128, 0})
    for (const bool has_zero : {false, true}) {
      if (!is_soak() && draw(0, 1) == 0) continue;
      expect_as_on_the_host(int4_in_groups(group, has_zero), "_mma_",
                            one_of({"emulated:a100", "emulated:h200"}));
    }
}

TEST_F(Sm80Scaled, row_51_int8_by_channel_and_uint8_with_zero_128) {
  for (const std::int64_t others : {1, 16, 17, 256}) {
    if (!is_soak() && draw(0, 1) == 0) continue;
    expect_as_on_the_host(int8_by_channel(others), "_mma_", "emulated:a100");
    expect_as_on_the_host(uint8_with_zero_128(others, DType::bfloat16), "_mma_", "emulated:a100");
  }
}

TEST_F(Sm80Scaled, row_53_mxfp4_weights_with_linear_and_swizzled_scales) {
  for (const ScaleLayout layout : {ScaleLayout::strided, ScaleLayout::swizzled_128x4})
    for (const DType half : {DType::bfloat16, DType::float16})
      expect_as_on_the_host(mxfp4(half, layout), "_mma_", "emulated:a100");
}

TEST_F(Sm80Scaled, row_53_nvfp4_weights_are_scaled_as_codes) {
  for (const ScaleLayout layout : {ScaleLayout::strided, ScaleLayout::swizzled_128x4})
    expect_as_on_the_host(nvfp4(one_of({DType::bfloat16, DType::float16}), layout), "_mma_",
                          one_of({"emulated:a100", "emulated:h200"}));
}

TEST_F(Sm80Scaled, row_55_codes_of_a_table) {
  for (const DType half : {DType::bfloat16, DType::float16})
    for (const bool is_a : {true, false}) {
      if (!is_soak() && draw(0, 1) == 0) continue;
      expect_as_on_the_host({.code = DType::uint4,
                             .half = half,
                             .is_a = is_a,
                             .lines = 72,
                             .others = draw(1, 40),
                             .k = one_of({96, 160, 257}),
                             .block = {1, one_of({32, 64})},
                             .scale = one_of({DType::float32, DType::bfloat16}),
                             .has_table = true},
                            one_of({"_mma_", "_mma_64x64x64", "_mma_16x64x128"}),
                            one_of({"emulated:a100", "emulated:h200"}));
    }
}

TEST_F(Sm80Scaled, row_55_nf4_is_verified_with_its_numbers) {
  const Device device = parse_device("emulated:a100").value();
  for (const char* const line :
       {"gemm 17x72x96 a=bf16 b=u4:c scale_b=f32[1x32] table_b=nf4.bf16 out=bf16",
        "gemm 33x40x128 a=f16 b=u4:c table_b=nf4.f16 out=f32"}) {
    const ProblemLine problem = parse_problem(line);
    const auto kernels = get_kernels(problem.problem, device_info(device));
    const auto kernel = std::ranges::find_if(
        kernels, [](const Kernel& one) { return one.family().name() == "sm80"; });
    ASSERT_NE(kernel, kernels.end()) << line;
    const VerifyReport report = verify(problem, *kernel, {.seed = random_() | 1, .device = device});
    EXPECT_TRUE(report.passed) << kernel->name() << ": " << report.first_failure;
  }
}

// Lines of random problems with prepared codes of all types, in A and in B, of one weight or of one
// for each group.
TEST_F(Sm80Scaled, row_57_prepared_weights_are_right_in_every_tile) {
  for (int count = 0; count < (is_soak() ? 120 : 4); ++count) {
    const bool is_grouped = count % 2 == 1;
    const bool is_a = draw(0, 3) == 0;
    const std::string code = one_of({"s4", "u4", "e2m1", "s8", "u8", "e4m3", "e5m2"});
    const bool is_whole = code.starts_with('s') || code.starts_with('u');
    const bool has_table = code == "u4" && draw(0, 1) == 0;
    const std::string half = one_of({"bf16", "f16"});
    const std::string name = is_a ? "a" : "b";
    const std::string scales =
        " scale_" + name + "=" + one_of({"f32", "bf16"}) + one_of({"[1x32]", "[1x64]", "[row]"}) +
        (is_whole && !has_table && draw(0, 1) == 0
             ? " zero_" + name + "=" + code.substr(0, 1) + "8[1x32]"
             : "") +
        (has_table ? " table_" + name + "=nf4." + half : "") + " order_" + name + "=fragments";
    const int lines = 32 * draw(1, 5), others = draw(1, 70);
    const std::string groups =
        is_grouped ? fmt::format(" groups={}{} {}", draw(1, 7), is_a ? " ragged=n" : "",
                                 one_of({"ends=i32", "counts=i64", "masked=i32"}))
                   : "";
    const ProblemLine line = parse_problem(
        fmt::format("{} {}x{}x{}{} a={} b={}:c{} out={}", is_grouped ? "grouped_gemm" : "gemm",
                    is_a ? lines : others, is_a ? others : lines, 32 * draw(1, 9), groups,
                    is_a ? code : half, is_a ? half : code, scales, one_of({"f32", "bf16"})));
    const Device device = parse_device(one_of({"emulated:a100", "emulated:h200"})).value();
    std::vector<RankedKernel> kernels = get_kernels(line.problem, device_info(device));
    std::erase_if(kernels, [](const Kernel& one) { return one.family().name() != "sm80"; });
    ASSERT_FALSE(kernels.empty()) << to_string(line);
    const Kernel kernel =
        kernels[static_cast<std::size_t>(draw(0, static_cast<int>(kernels.size()) - 1))];
    EXPECT_NE(kernel.name().find("fragments"), std::string::npos) << kernel.name();
    ASSERT_EQ(find_kernel(kernel.name()), kernel) << kernel.name();
    const VerifyReport report = verify(line, kernel, {.seed = random_() | 1, .device = device});
    EXPECT_TRUE(report.passed) << to_string(line) << " " << kernel.name() << ": "
                               << report.first_failure;
  }
}

TEST_F(Sm80Scaled, blocks_of_rows_two_scales_tiles_and_splits) {
  for (const char* const tile : {"_mma_128x128x64", "_mma_128x64x64", "_mma_64x128x64",
                                 "_mma_64x64x64", "_mma_16x64x128", "_mma_64x16x128"})
    for (const char* const split : {"_none_", "_parallel", "_stream"}) {
      if (!is_soak() && draw(0, 5) != 0) continue;
      const bool has_room = std::string_view(tile) != "_mma_128x128x64";
      expect_as_on_the_host({.code = one_of({DType::int4, DType::float8_e4m3fn, DType::int8}),
                             .half = DType::bfloat16,
                             .is_a = draw(0, 1) == 0,
                             .lines = 200,
                             .others = 130,
                             .k = 1100,
                             .block = {one_of({1, 3, 128, 0}), one_of({32, 96, 128})},
                             .scale = one_of({DType::float32, DType::bfloat16}),
                             .has_second = has_room && draw(0, 1) == 0},
                            tile, one_of({"emulated:a100", "emulated:h200"}), split);
    }
}

TEST_F(Sm80Scaled, what_no_kernel_takes_is_refused_by_name) {
  const auto failed = [](const char* line) {
    for (const Reason& reason : explain(parse_problem(line).problem, device_info("a100")).reasons)
      if (reason.family == "sm80") return reason.failed;
    return std::string("no reason");
  };
  EXPECT_NE(
      failed("gemm 64x64x64 a=bf16 b=s4:c scale_b=bf16[1x16] out=bf16").find("multiple of 32"),
      std::string::npos);
  EXPECT_NE(failed("gemm 64x64x64 a=bf16 scale_a=f32[1x32] b=e2m1:c out=bf16").find("scale_a"),
            std::string::npos);
  EXPECT_NE(failed("gemm 64x64x64 a=bf16 b=s4:c scale_b=bf16[1x32] zero_b=f16[1x32] out=bf16")
                .find("zero point"),
            std::string::npos);
  EXPECT_NE(failed("gemm 64x64x64 a=bf16 b=u4:c table_b=nf4 out=bf16").find("bfloat16"),
            std::string::npos);
}

}  // namespace
}  // namespace gemmery
