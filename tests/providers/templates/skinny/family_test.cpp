// SPDX-License-Identifier: Apache-2.0
// The family skinny: problems for which it ranks first, refusals and their reasons, splits of k,
// and parsing of names.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gemmery/gemmery.hpp>

#include "providers/templates/skinny/design.hpp"
#include "providers/templates/skinny/prediction.hpp"

namespace gemmery::templates {
namespace {

std::vector<RankedKernel> kernels_of(std::string_view line, std::string_view device) {
  return get_kernels(parse_problem(line).problem, *find_device_info(device));
}

std::string first_family(std::string_view line, std::string_view device) {
  return std::string(kernels_of(line, device).front().family().name());
}

std::string reason_of(std::string_view line, std::string_view device) {
  for (const Reason& reason :
       explain(parse_problem(line).problem, *find_device_info(device)).reasons)
    if (reason.family == "skinny") return reason.failed;
  return "no reason";
}

// One row with contiguous k takes 47 us on an H100 with either family, and without tensor cores
// there is no other family. For 8 rows sm90 needs 47 us and this family 58
// (tests/model/designs_h100.csv).
TEST(SkinnyFamily, comes_first_where_nothing_is_faster_for_few_rows) {
  for (const char* const device : {"h200", "h100", "a100"})
    for (const char* const line :
         {"gemm 1x8192x8192 a=bf16 b=bf16:c", "gemm 1x8192x8192 a=f16 b=f16:c",
          "gemm 4x8192x8192 a=f32", "gemm 1x16384x16384 a=f32"})
      EXPECT_EQ(first_family(line, device), "skinny") << line << " on " << device;
  for (const char* const line : {"gemm 8x8192x8192 a=bf16 b=bf16:c", "gemm 4x8192x8192 a=bf16",
                                 "gemm 8x4096x14336 a=e4m3 b=e4m3:c out=bf16"})
    EXPECT_EQ(first_family(line, "h100"), "sm90") << line;
}

TEST(SkinnyFamily, takes_either_side) {
  EXPECT_EQ(first_family("gemm 8192x1x8192 a=bf16", "h100"), "skinny");
  const Kernel kernel = kernels_of("gemm 8192x3x8192 a=f32", "h100").front();
  EXPECT_EQ(kernel.metadata().design_value("rows"), "n4") << kernel.name();
}

TEST(SkinnyFamily, leaves_more_rows_to_tensor_cores) {
  for (const char* const device : {"h200", "a100", "b200"}) {
    for (const char* const extents : {"16x8192x8192", "64x4096x4096", "4096x4096x4096"}) {
      const std::string line = std::string("gemm ") + extents + " a=bf16 b=bf16:c";
      EXPECT_NE(first_family(line, device), "skinny") << line << " on " << device;
      EXPECT_TRUE(reason_of(line, device).starts_with("out: expected at most 8 rows or columns"));
    }
  }
}

TEST(SkinnyFamily, says_what_it_does_not_serve) {
  EXPECT_TRUE(reason_of("gemm 1x64x64 a=f32 math=tf32", "a100").starts_with("math: expected"));
  EXPECT_TRUE(reason_of("gemm 1x64x64 a=f16 acc=f16", "a100").starts_with("accumulator:"));
  EXPECT_TRUE(reason_of("gemm 1x64x64 a=f32", "v100").starts_with("target: expected sm_80"));
  EXPECT_EQ(reason_of("gemm 1x63x65 a=bf16/strides=200,3 out=f32", "a100"), "");
  const auto kernel =
      find_kernel("skinny1_gemm_bf16r16_bf16c16_bf16r16_acc-f32_m2_none_128x4x3x32");
  ASSERT_TRUE(kernel);
  const auto refusal = [&](std::string_view line) {
    return kernel->supports(parse_problem(line).problem, *find_device_info("h200")).error();
  };
  EXPECT_EQ(refusal("gemm 2x64x64 a=bf16 b=bf16:c"), "");
  EXPECT_EQ(refusal("gemm 3x64x64 a=bf16 b=bf16:c"), "out: expected at most 2 rows, got 3");
  EXPECT_TRUE(refusal("gemm 2x66x64 a=bf16 b=bf16:c out=bf16/ld=72")
                  .starts_with("out: expected N a multiple of 4"));
}

TEST(SkinnyFamily, splits_k_where_tiles_are_few) {
  const auto split_of = [](std::string_view line) {
    const auto kernels = kernels_of(line, "h200");
    const auto first = std::ranges::find_if(
        kernels, [](const RankedKernel& kernel) { return kernel.family().name() == "skinny"; });
    return std::string(first->metadata().design_value("split_k"));
  };
  EXPECT_TRUE(split_of("gemm 1x1024x65536 a=bf16 b=bf16:c").starts_with("parallel"));
  EXPECT_EQ(split_of("gemm 1x65536x8192 a=bf16 b=bf16:c"), "none");
  EXPECT_TRUE(
      split_of(
          R"p(gemm 1x1024x65536 a=bf16 b=bf16:c epilogue="D = accum; r = sum(accum)" r=f32[1])p")
          .starts_with("parallel"));
}

TEST(SkinnyFamily, no_slice_is_empty) {
  const auto kernel =
      find_kernel("skinny1_gemm_bf16r16_bf16c16_bf16r16_acc-f32_m1_parallel64_128x4x3x32");
  ASSERT_TRUE(kernel);
  const abi::SkinnyDesign design = skinny_design(*kernel);
  for (const unsigned k : {0U, 1U, 768U, 769U, 8192U, 100000U}) {
    const unsigned k_blocks = skinny_k_blocks(design, k);
    const abi::SplitSchedule split = split_schedule(
        split_word(skinny_tile(*kernel)), {.tiles = 1, .k_blocks = k_blocks, .blocks = 1});
    EXPECT_LT((split.slices - 1) * split.per_unit, k_blocks) << k;
    EXPECT_GE(split.slices * split.per_unit, k_blocks) << k;
  }
}

TEST(SkinnyFamily, a_name_may_ask_for_any_rows_split_and_shape) {
  for (const char* const design :
       {"m1_none_128x4x3x32", "m8_parallel201_64x2x2x32", "m4_none_512x1x8x32"}) {
    const std::string name =
        std::string("skinny1_gemm_f16r4_bf16c8_f16x2_acc-f32_") + design + "_c-f32r16";
    const auto kernel = find_kernel(name);
    ASSERT_TRUE(kernel) << name;
    EXPECT_EQ(kernel->name(), name);
  }
  EXPECT_TRUE(find_kernel("skinny1_gemm_bf16c16_bf16c16_bf16c16_acc-f32_n2_none_256x4x3x8"));
  for (const char* const wrong :
       {"m3_none_128x4x3x32", "m4_parallel1_128x4x3x32", "m4_serial2_128x4x3x32",
        "m4_none_96x4x3x32", "m4_none_128x3x3x32", "m4_none_128x4x1x32", "m4_none_128x4x3x8",
        "n4_none_128x4x3x32", "m0_none_128x4x3x32", "m4_none_128x4x3x0"})
    EXPECT_FALSE(find_kernel(std::string("skinny1_gemm_f16r4_bf16c8_f16r2_acc-f32_") + wrong))
        << wrong;
}

TEST(SkinnyFamily, times_grow_with_bytes_and_keep_to_bandwidth) {
  const DeviceInfo h200 = *find_device_info("h200");
  double before = 0;
  for (const int n : {2048, 4096, 8192, 16384, 65536}) {
    const std::string line = "gemm 1x" + std::to_string(n) + "x8192 a=bf16 b=bf16:c";
    const double time = kernels_of(line, "h200").front().predicted_us;
    EXPECT_GT(time, before) << line;
    EXPECT_GT(time * 1e-6 * h200.bandwidth_bytes_per_second, 2.0 * n * 8192) << line;
    before = time;
  }
}

TEST(SkinnyFamily, shared_memory_keeps_to_the_device) {
  for (const char* const device : {"a100", "l40s", "rtx4090", "b200"}) {
    const DeviceInfo info = *find_device_info(device);
    for (const char* const words : {"a=f16", "a=f64", "a=int8 out=int32", "a=e4m3 out=bf16"})
      for (const RankedKernel& kernel :
           kernels_of(std::string("gemm 8x1024x1024 ") + words, device)) {
        if (kernel.family().name() != "skinny") continue;
        EXPECT_LE(abi::shared_bytes(skinny_design(kernel)), info.shared_bytes_per_block)
            << kernel.name() << " on " << device;
      }
  }
}

}  // namespace
}  // namespace gemmery::templates
