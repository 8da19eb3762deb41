// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit floats and codes by wgmma, on an emulated H200: every code at every place, in
// A and in B, and random problems in every tile. GEMMERY_SOAK=1 runs 200 of them.
#include <gtest/gtest.h>
#include <gemmery/gemmery.hpp>

#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tests/providers/templates/every_code.hpp"
#include "tests/providers/templates/scaled_cases.hpp"

namespace gemmery {
namespace {

bool is_soak() { return std::getenv("GEMMERY_SOAK") != nullptr; }

class Sm90Mixed : public tests::RandomCases {
 protected:
  using tests::RandomCases::one_of;
  template <class T>
  T one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(draw(0, static_cast<int>(all.size()) - 1))];
  }

  const Device h200_ = parse_device("emulated:h200").value();

  // Verifies one of the family's kernels for a line, one with a word in its name.
  void check(const std::string& text, const std::string& word = "") {
    const ProblemLine line = parse_problem(text);
    std::vector<RankedKernel> kernels = get_kernels(line.problem, device_info(h200_));
    std::erase_if(kernels, [&](const Kernel& one) {
      return one.family().name() != "sm90" || one.name().find(word) == std::string::npos;
    });
    ASSERT_FALSE(kernels.empty()) << text << " " << word;
    const Kernel kernel = one_of(kernels);
    ASSERT_EQ(find_kernel(kernel.name()), kernel) << kernel.name();
    const VerifyReport report = verify(
        line, kernel,
        {.fill = one_of({Fill::normal, Fill::integers}), .seed = random_(), .device = h200_});
    EXPECT_TRUE(report.passed) << text << " " << kernel.name() << ": " << report.first_failure;
  }
};

std::string every_code_kernel(DType code, DType half, bool is_a) {
  return fmt::format("sm90v7_gemm_{}r16_{}c16_f32r16_acc-f32_64x16x64_1x1_coop_m8_s4_reg{}",
                     alias(is_a ? code : half), alias(is_a ? half : code), is_a ? 'a' : 'b');
}

TEST_F(Sm90Mixed, row_52_every_code_of_8_bits_is_exact_and_nan_stays_nan) {
  for (const DType code : {DType::float8_e4m3fn, DType::float8_e5m2})
    for (const DType half : {DType::float16, DType::bfloat16}) {
      const bool is_a = draw(0, 1) == 0;
      tests::expect_every_code(code, half, is_a, every_code_kernel(code, half, is_a),
                               "emulated:h200");
    }
}

TEST_F(Sm90Mixed, row_53_every_code_of_e2m1_is_exact) {
  for (const DType half : {DType::float16, DType::bfloat16})
    for (const bool is_a : {false, true})
      tests::expect_every_code(DType::float4_e2m1fn, half, is_a,
                               every_code_kernel(DType::float4_e2m1fn, half, is_a),
                               "emulated:h200");
}

TEST_F(Sm90Mixed, codes_layouts_outputs_and_programs_of_any_kind_are_right) {
  for (int round = 0; round < (is_soak() ? 200 : 4); ++round) {
    const std::string code = one_of({"s4", "u4", "e2m1", "s8", "u8", "e4m3", "e5m2"});
    const std::string half = one_of({"bf16", "f16"});
    const bool is_a = draw(0, 1) == 0;
    const bool is_whole = code.starts_with('s') || code.starts_with('u');
    const std::string scale = is_whole
                                  ? fmt::format(" scale_{}={}", is_a ? "a" : "b",
                                                one_of({"f32[row]", "bf16[row]", "f16[tensor]"}))
                                  : "";
    const std::string program =
        one_of<std::string>({"", "", " epilogue=\"D = gelu(accum + v)\" v=f32[n]",
                             " epilogue=\"D = accum * s + r; P = accum\" s=f32[m] r=bf16 P=f32"});
    const std::string c = program.empty() && draw(0, 2) == 0 ? " c=f32 beta=-0.5" : "";
    const int k = draw(0, 260);
    const int pitch = (k / 32 + 1) * 32;
    const std::string of_half = fmt::format("{}{}/ld={}", half, is_a ? ":c" : "", pitch);
    const std::string of_code = fmt::format("{}{}/ld={}", code, is_a ? "" : ":c", pitch);
    const std::string across = half + (is_a ? "" : ":c");  // k is not adjacent
    const bool is_across = draw(0, 1) == 0;
    const int m = is_across && !is_a ? 8 * draw(1, 20) : draw(1, 160);
    const int n = is_across && is_a ? 8 * draw(1, 20) : draw(1, 160);
    check(fmt::format("gemm {}x{}x{}x{} a={} b={} out={}{}{}{}{}", m, n, k, draw(1, 2),
                      is_a        ? of_code
                      : is_across ? across
                                  : of_half,
                      !is_a       ? of_code
                      : is_across ? across
                                  : of_half,
                      one_of({"bf16", "f16", "f32"}), one_of({"", ":c"}), scale, c, program));
  }
}

// Groups of rows or columns, of a weight of codes or with codes among the rows that they divide;
// empty ones, and those that end anywhere, are among them.
TEST_F(Sm90Mixed, row_57_groups_of_codes_of_any_kind_are_right) {
  for (int round = 0; round < (is_soak() ? 120 : 3); ++round) {
    const bool is_a = draw(0, 1) == 0;
    const char operand = is_a ? 'a' : 'b';
    const char across = is_a ? 'm' : 'n';
    const std::string code = one_of({"s4", "u4", "e2m1", "s8", "u8", "e4m3", "e5m2"});
    const std::string half = one_of({"bf16", "f16"});
    const bool is_whole = code.starts_with('s') || code.starts_with('u');
    std::string scale;
    if (is_whole || draw(0, 1) == 0)
      scale = fmt::format(
          " scale_{}={}", operand,
          one_of({"f32[row]", "f32[1x32]", "bf16[1x64]", "e8m0[1x32]:swizzled", "f16[3x128]"}));
    if (code == "e2m1" && draw(0, 2) == 0) scale = fmt::format(" scale_{}=e4m3[1x16]", operand);
    if (is_whole && draw(0, 1) == 0)
      scale += fmt::format(" zero_{}={}8[1x64]:{}", operand, code[0], across);
    const bool is_in_loop = !scale.empty() && scale.find("[row]") == std::string::npos;
    const std::string form = one_of<std::string>(
        {"ends=i32", "counts=i64 outside=zero", "ragged=n ends=i32", "masked=i32",
         "labels=i32/align=128", "ragged=n masked=i64",
         is_in_loop || scale.find("zero") != std::string::npos ? "ends=i64" : "prefix=i32/host"});
    const bool is_of_n = form.find("ragged=n") != std::string::npos;
    const std::string layout = one_of({"", ":c"});
    // Operands of a program are copied along columns, which groups divide, unless threads store
    // pairs of rows.
    const bool has_row_pairs = is_a == (layout == ":c");
    const std::string program = one_of<std::string>(
        {"", "",
         has_row_pairs ? " epilogue=\"D = relu(accum) + r\" r=bf16"
                       : fmt::format(" epilogue=\"D = silu(accum * s) + v\" s=f32[l,1] v=f32[{}]",
                                     is_of_n ? "l,m" : "l,n")});
    const bool is_program = !program.empty() || scale.find("[row]") != std::string::npos;
    const bool has_c = program.empty() && (has_row_pairs || !is_program) && draw(0, 2) == 0;
    const std::string c = has_c ? " c=f32 beta=-0.5" : "";
    // Small tiles compile in less time.
    const std::string tile = one_of({"_64x16x64", "_64x32x64", "_128x32x64"});
    const int k = 32 * draw(1, 7);
    check(fmt::format("grouped_gemm {}x{}x{} groups={} {} a={} b={} out={}{}{}{}{}",
                      is_of_n ? 8 * draw(1, 12) : draw(1, 200),
                      is_of_n ? draw(1, 200) : 8 * draw(1, 12), k, draw(1, 9), form,
                      is_a ? code : half, (is_a ? half : code) + ":c",
                      one_of({"bf16", "f16", "f32"}), layout, scale, c, program),
          tile);
  }
}

TEST_F(Sm90Mixed, splits_of_k_are_right) {
  for (const std::string word : {"_1x1_k", "_1x1_parallel", "_parallel", "_stream"}) {
    if (!is_soak() && draw(0, 1) == 0) continue;
    const bool is_a = draw(0, 1) == 0;
    const int lines = word == "_stream" ? 9000 : draw(100, 300);
    const std::string codes =
        is_a ? "a=s4 b=" + one_of<std::string>({"bf16", "bf16:c"}) + " scale_a=f32[1x64]"
             : "a=f16 b=u4:c scale_b=bf16[1x128] zero_b=u4[1x128]";
    check(fmt::format("gemm {}x{}x1024 {} out={}", is_a ? lines : 16, is_a ? 16 : lines, codes,
                      one_of({"bf16", "f32"})),
          word);
  }
}

class Sm90Scaled : public tests::ScaledCases {
 protected:
  Sm90Scaled() : ScaledCases("sm90") {}
  // Small tiles compile in less time; one or two consumers.
  std::string tile() { return one_of({"_64x16x64", "_64x32x64", "_128x32x64", "_128x64x64"}); }
};

TEST_F(Sm90Scaled, row_50_int4_with_groups_and_zero_points) {
  for (const std::int32_t group : {32, 64, 128, 0})
    for (const bool has_zero : {false, true})
      if (is_soak() || draw(0, 3) == 0)
        expect_as_on_the_host(int4_in_groups(group, has_zero), tile(), "emulated:h200", "");
}

TEST_F(Sm90Scaled, row_51_int8_by_channel_and_uint8_with_zero_128) {
  const DType half = one_of({DType::bfloat16, DType::float16});
  expect_as_on_the_host(int8_by_channel(one_of({1, 16, 17, 256})), tile(), "emulated:h200", "");
  expect_as_on_the_host(uint8_with_zero_128(one_of({1, 16, 17, 256}), half), tile(),
                        "emulated:h200", "");
}

TEST_F(Sm90Scaled, row_53_mxfp4_weights_with_linear_and_swizzled_scales) {
  for (const ScaleLayout layout : {ScaleLayout::strided, ScaleLayout::swizzled_128x4})
    expect_as_on_the_host(mxfp4(one_of({DType::bfloat16, DType::float16}), layout), tile(),
                          "emulated:h200", "");
}

TEST_F(Sm90Scaled, row_53_nvfp4_weights_are_scaled_as_codes) {
  for (const ScaleLayout layout : {ScaleLayout::strided, ScaleLayout::swizzled_128x4})
    expect_as_on_the_host(nvfp4(one_of({DType::bfloat16, DType::float16}), layout), tile(),
                          "emulated:h200", "");
}

// Two scales, blocks of rows, codes of floats.
TEST_F(Sm90Scaled, blocks_of_rows_and_two_scales) {
  for (int round = 0; round < (is_soak() ? 40 : 2); ++round)
    expect_as_on_the_host({.code = one_of({DType::int4, DType::float8_e4m3fn, DType::int8}),
                           .half = DType::bfloat16,
                           .is_a = draw(0, 1) == 0,
                           .lines = 200,
                           .others = 130,
                           .k = 500,
                           .block = {one_of({1, 3, 128, 0}), one_of({32, 96, 128})},
                           .scale = one_of({DType::float32, DType::bfloat16}),
                           .has_second = draw(0, 1) == 0},
                          tile(), "emulated:h200", "");
}

TEST_F(Sm90Mixed, what_no_kernel_takes_is_refused_by_name) {
  const auto failed = [&](const char* line) {
    for (const Reason& reason : explain(parse_problem(line).problem, device_info(h200_)).reasons)
      if (reason.family == "sm90") return reason.failed;
    return std::string("no reason");
  };
  EXPECT_NE(failed("gemm 64x64x60 a=bf16 b=e4m3:c out=bf16").find("B: expected codes with k"),
            std::string::npos);
  EXPECT_NE(failed("gemm 64x64x64 a=e2m1:c b=bf16 out=bf16").find("A: expected codes with k"),
            std::string::npos);
  EXPECT_NE(failed("gemm 64x64x64 a=bf16 b=e2m3:c out=bf16").find("codes of 4 or 8 bits"),
            std::string::npos);
  EXPECT_NE(
      failed("gemm 64x64x64 a=bf16 b=s4:c scale_b=bf16[1x16] out=bf16").find("multiple of 32"),
      std::string::npos);
  EXPECT_NE(failed("gemm 64x64x64 a=bf16 scale_a=f32[1x32] b=e2m1:c out=bf16").find("scale_a"),
            std::string::npos);
  EXPECT_NE(failed("gemm 64x64x64 a=bf16 b=s4:c scale_b=bf16[1x32] zero_b=f16[1x32] out=bf16")
                .find("zero point"),
            std::string::npos);
  EXPECT_NE(failed("gemm 64x64x64 a=bf16 b=u4:c table_b=nf4.bf16 out=bf16").find("table"),
            std::string::npos);
  EXPECT_NE(failed("grouped_gemm 512x64x128 groups=16 ragged=k a=bf16 b=e4m3:c out=bf16")
                .find("groups: expected ones along M or N"),
            std::string::npos);
  EXPECT_NE(
      failed("grouped_gemm 512x64x128 groups=16 ends=i32 gather=i32/of=90 a=bf16 b=e4m3:c out=bf16")
          .find("groups: expected elements of one problem in their groups' order"),
      std::string::npos);
  EXPECT_NE(failed("grouped_gemm 512x64x128 groups=16 ends=i32/host a=bf16 b=s4:c "
                   "scale_b=f32[1x32] out=bf16")
                .find("groups: expected sizes in device memory beside scales of codes"),
            std::string::npos);
  EXPECT_NE(failed("conv2d_fprop 1x8x8x64 k=64 r=3 s=3 a=bf16 b=e4m3 out=bf16").find("types"),
            std::string::npos);
}

}  // namespace
}  // namespace gemmery
