// SPDX-License-Identifier: Apache-2.0
// What the family sm80 answers: where it comes first, what it refuses and why, how it splits k, and
// that a name is a kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include <gemmery/gemmery.hpp>

#include "providers/templates/sm80/design.hpp"

namespace gemmery::templates {
namespace {

std::vector<RankedKernel> kernels_of(std::string_view line, std::string_view device) {
  return get_kernels(parse_problem(line).problem, *find_device_info(device));
}

std::string reason_of(std::string_view line, std::string_view device) {
  for (const Reason& reason :
       explain(parse_problem(line).problem, *find_device_info(device)).reasons)
    if (reason.family == "sm80") return reason.failed;
  return "no reason";
}

TEST(Sm80Family, comes_first_where_no_family_is_made_for_the_architecture) {
  for (const char* const device : {"a100", "a10", "l40s", "rtx4090", "b200", "rtx5090"})
    for (const char* const words : {"a=f16", "a=bf16 b=bf16:c", "a=f32 math=tf32", "a=f64",
                                    "a=int8 b=int8:c out=int32", "a=uint8 b=int8 out=int32"})
      for (const char* const extents : {"4096x4096x4096", "256x512x1024"}) {
        const std::string line = std::string("gemm ") + extents + " " + words;
        const Kernel first = kernels_of(line, device).front();
        EXPECT_EQ(first.family().name(), "sm80")
            << line << " on " << device << ": " << first.name();
      }
}

TEST(Sm80Family, leaves_bfloat16_on_hopper_to_the_family_made_for_it) {
  for (const char* const extents : {"256x256x256", "1000x1000x1000", "4096x4096x4096"})
    EXPECT_EQ(kernels_of(std::string("gemm ") + extents + " a=bf16 b=bf16:c", "h200")
                  .front()
                  .family()
                  .name(),
              "sm90")
        << extents;
}

TEST(Sm80Family, multiplies_float64_by_wide_instructions_where_they_exist) {
  const auto mma_of = [](const char* device) {
    return std::string(
        kernels_of("gemm 4096x4096x4096 a=f64", device).front().metadata().design_value("mma"));
  };
  for (const char* const device : {"h100", "h200", "b200"}) EXPECT_EQ(mma_of(device), "16x8x8");
  for (const char* const device : {"a100", "l40s"}) EXPECT_EQ(mma_of(device), "8x8x4");
}

TEST(Sm80Family, says_what_it_does_not_serve) {
  EXPECT_TRUE(reason_of("gemm 64x64x64 a=f32", "a100").starts_with("types: expected")) << "no math";
  EXPECT_TRUE(reason_of("gemm 64x64x64 a=e4m3 out=bf16 math=fp8_fast", "a100")
                  .starts_with("target: expected sm_89"));
  EXPECT_EQ(reason_of("gemm 64x64x64 a=e4m3 out=bf16 math=fp8_fast", "l40s"), "");
  EXPECT_TRUE(reason_of("gemm 64x64x64 a=e4m3 out=bf16", "l40s").starts_with("types: expected"));
  EXPECT_TRUE(reason_of("gemm 64x64x64 a=bf16 b=f16 out=f32", "a100").starts_with("types"));
  EXPECT_TRUE(
      reason_of("gemm 64x64x64 a=bf16/strides=200,3 out=f32", "a100").starts_with("layouts"));
  EXPECT_EQ(reason_of("gemm 63x65x67 a=bf16", "a100"), "");
}

TEST(Sm80Family, splits_k_where_tiles_are_few) {
  const auto split_of = [](std::string_view line) {
    return std::string(kernels_of(line, "a100").front().metadata().design_value("split_k"));
  };
  EXPECT_TRUE(split_of("gemm 64x64x65536 a=f16").starts_with("parallel"));
  EXPECT_EQ(split_of("gemm 8192x8192x8192 a=f16"), "none");
  EXPECT_TRUE(
      split_of(R"p(gemm 64x64x65536 a=f16 epilogue="D = accum; r = sum(accum)" r=f32[1])p")
          .starts_with("parallel"));
}

TEST(Sm80Family, a_name_may_ask_for_any_split_warps_and_raster) {
  for (const char* const design :
       {"mma_128x128x32_2x2x1_none_m8_s4", "mma_128x128x32_2x4x1_serial7_n4_s2",
        "mma_64x64x64_2x2x2_parallel201_m1_s3", "mma_32x32x64_1x1x2_stream_m16_s10"}) {
    const std::string name =
        std::string("sm80v1_gemm_f16r16_f16c4_f16x2_acc-f32_") + design + "_c-f32r16";
    const auto kernel = find_kernel(name);
    ASSERT_TRUE(kernel) << name;
    EXPECT_EQ(kernel->name(), name);
  }
  for (const char* const wrong :
       {"mma_128x128x32_2x3x1_none_m8_s4", "mma_128x128x32_2x2x1_serial1_m8_s4",
        "mma_128x128x32_2x2x1_none_m8_s1", "mma_96x128x32_2x2x1_none_m8_s4",
        "mma-tf32_128x128x32_2x2x1_none_m8_s4", "mma_256x256x64_2x2x1_none_m8_s4"})
    EXPECT_FALSE(find_kernel(std::string("sm80v1_gemm_f16r16_f16c4_f16x2_acc-f32_") + wrong))
        << wrong;
}

TEST(Sm80Family, shared_memory_keeps_to_the_device) {
  for (const char* const device : {"a100", "l40s", "rtx4090", "b200"}) {
    const DeviceInfo info = *find_device_info(device);
    for (const char* const words : {"a=f16", "a=f32 math=tf32x3", "a=f64", "a=int8 out=int32"})
      for (const RankedKernel& kernel :
           kernels_of(std::string("gemm 1024x1024x1024 ") + words, device)) {
        if (kernel.family().name() != "sm80") continue;
        EXPECT_LE(abi::shared_bytes(sm80_design(kernel)), info.shared_bytes_per_block)
            << kernel.name() << " on " << device;
      }
  }
}

}  // namespace
}  // namespace gemmery::templates
