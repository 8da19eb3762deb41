// SPDX-License-Identifier: Apache-2.0
// The family sm80: problems for which it ranks first, refusals and their reasons, splits of k, and
// parsing of names.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gemmery/gemmery.hpp>

#include "providers/templates/sm80/design.hpp"
#include "runtime/device_family.hpp"

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

TEST(Sm80Family, ptxas_compiles_convolutions_and_codes_at_a_lower_level) {
  const auto options_of = [](const std::string& line) {
    const Kernel kernel = kernels_of(line, "a100").front();
    EXPECT_EQ(kernel.family().name(), "sm80") << line;
    return static_cast<const runtime::DeviceFamily&>(kernel.family()).emit(kernel, {80}).options;
  };
  const std::vector<std::string> lower{"--ptxas-options=-O2"};
  EXPECT_EQ(options_of("conv2d_dgrad 32x14x14x256 k=256 r=3 s=3 pad=1 a=f16"), lower);
  EXPECT_EQ(options_of("gemm 4096x4096x4096 a=f16 b=s4:c scale_b=f32[1x64]"), lower);
  EXPECT_TRUE(options_of("gemm 4096x4096x4096 a=f16").empty());
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
  EXPECT_TRUE(split_of(R"p(gemm 64x64x65536 a=f16 epilogue="D = accum; r = sum(accum)" r=f32[1])p")
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

// --- groups -------------------------------------------------------------------------------------

TEST(Sm80Groups, come_before_those_of_cuda_cores) {
  for (const char* const device : {"a100", "a10", "l40s", "rtx4090", "b200", "rtx5090"})
    for (const char* const words :
         {"8192x4096x2048 groups=8 a=bf16", "640x2048x1024 groups=32 a=f16 b=f16:c",
          "4096x512x1024 groups=300 a=bf16", "1024x1024x8192 groups=8 ragged=k a=bf16:c out=f32",
          "2048x8192x2048 groups=16 ragged=n a=bf16", "4096x1024x512 groups=8 masked=i32 a=bf16",
          "8192x4096x2048 groups=8 ends=i32/host a=bf16", "512x512x512 groups=8 a=f64",
          "2048x512x512 groups=8 a=int8 out=int32", "8192x4096x2048 groups=8 outside=zero a=bf16",
          "8192x4096x2048 groups=8 gather=i32/of=2048 scatter=i32 a=bf16"}) {
      const Kernel first = kernels_of(std::string("grouped_gemm ") + words, device).front();
      EXPECT_EQ(first.family().name(), "sm80") << words << " on " << device;
    }
}

TEST(Sm80Groups, of_few_rows_get_tiles_of_few_rows) {
  const auto rows_of = [](const char* line) {
    return sm80_tile(kernels_of(line, "a100").front()).m;
  };
  EXPECT_EQ(rows_of("grouped_gemm 512x4096x4096 groups=32 a=bf16"), 16);
  EXPECT_EQ(rows_of("grouped_gemm 1024x4096x4096 groups=32 a=bf16"), 32);
  EXPECT_LE(rows_of("grouped_gemm 2048x4096x4096 groups=32 a=bf16"), 64);
  EXPECT_LE(rows_of("grouped_gemm 4096x4096x4096 groups=32 masked=i32/expect=20 a=bf16"), 32);
  EXPECT_GE(rows_of("grouped_gemm 32768x4096x4096 groups=8 a=bf16"), 128);
}

TEST(Sm80Groups, have_names_by_their_schedule) {
  const std::string name =
      "sm80v1_gemm_bf16r16_bf16c16_bf16r16_acc-f32_mma_64x64x64_2x2x1_none_m8_s4_groups";
  const std::pair<const char*, const char*> schedules[] = {
      {"", "device"}, {"-persistent", "persistent"}, {"-host", "host"}};
  for (const auto& [word, schedule] : schedules)
    for (const char* const c : {"", "_c-f32r16"}) {
      const auto kernel = find_kernel(name + word + c);
      ASSERT_TRUE(kernel) << word;
      EXPECT_EQ(kernel->name(), name + word + c);
      EXPECT_EQ(kernel->metadata().design_value("schedule"), schedule);
    }
  EXPECT_FALSE(find_kernel(name + "-other"));
  for (const char* const form : {"-rows", "-zero", "-rows-zero"})
    for (const auto& [word, schedule] : schedules) {
      const auto kernel = find_kernel(name + word + form);
      ASSERT_TRUE(kernel) << word << form;
      EXPECT_EQ(kernel->name(), name + word + form);
      EXPECT_EQ(kernel->metadata().design_value("schedule"), schedule);
    }
  EXPECT_FALSE(find_kernel(name + "-zero-rows"));
  // Blocks do not share k of a group.
  EXPECT_FALSE(
      find_kernel("sm80v1_gemm_bf16r16_bf16c16_bf16r16_acc-f32_mma_64x64x64_2x2x1_parallel2_m8_s4_"
                  "groups"));
}

TEST(Sm80Groups, are_refused_by_name) {
  EXPECT_EQ(reason_of("grouped_gemm 640x64x64 groups=320 ends=i32/host a=bf16", "a100"), "");
  EXPECT_EQ(reason_of("grouped_gemm 640x64x64 groups=321 ends=i32/host a=bf16", "a100"),
            "groups: expected at most 320 with sizes in host memory, or sizes in memory of the "
            "device, got 321");
  EXPECT_EQ(reason_of("grouped_gemm 64x64x64 groups=1 labels=i32/align=64 a=bf16 epilogue=\"D = "
                      "accum; s = sum(D)\" s=f32[n]",
                      "a100"),
            "groups: expected reductions of each row or column with labels, got one per group");
  const DeviceInfo a100 = *find_device_info("a100");
  const GemmProblem of_device = parse_problem("grouped_gemm 96x64x64 groups=4 a=bf16").problem;
  const GemmProblem of_host =
      parse_problem("grouped_gemm 96x64x64 groups=4 ends=i32/host a=bf16").problem;
  EXPECT_EQ(get_kernels(of_host, a100).front().supports(of_device, a100).error(),
            "groups: expected sizes in host memory for schedule=host, got them in device memory");
  EXPECT_EQ(get_kernels(of_device, a100).front().supports(of_host, a100).error(),
            "groups: expected sizes in device memory for schedule=device, got them in host memory");
  EXPECT_EQ(get_kernels(of_device, a100)
                .front()
                .supports(parse_problem("gemm 96x64x64 a=bf16").problem, a100)
                .error(),
            "groups: expected a grouped problem, got one GEMM");
}

// Separate kernels find rows by index or write zeros outside of groups, for the layouts that allow
// this.
TEST(Sm80Groups, serve_the_form_that_they_are_made_for) {
  const DeviceInfo a100 = *find_device_info("a100");
  const auto of = [](const char* line) { return parse_problem(line).problem; };
  const GemmProblem in_order = of("grouped_gemm 96x64x64 groups=4 a=bf16");
  const GemmProblem gathered = of("grouped_gemm 96x64x64 groups=4 gather=i32/of=9 a=bf16");
  const GemmProblem with_zeros = of("grouped_gemm 96x64x64 groups=4 outside=zero a=bf16");
  const Kernel plain = get_kernels(in_order, a100).front();
  EXPECT_EQ(get_kernels(gathered, a100).front().supports(in_order, a100).error(),
            "groups: expected rows by index, got elements in their groups' order");
  EXPECT_EQ(plain.supports(gathered, a100).error(),
            "groups: expected elements in their groups' order, got rows by index");
  EXPECT_EQ(get_kernels(with_zeros, a100).front().supports(in_order, a100).error(),
            "groups: expected outside=zero, got outside=untouched");
  EXPECT_EQ(plain.supports(with_zeros, a100).error(),
            "groups: expected outside=untouched, got outside=zero");
  EXPECT_EQ(reason_of("grouped_gemm 96x64x64 groups=4 gather=i32/of=9 a=bf16:c", "a100"),
            "layouts: expected adjacent elements in rows of A (columns of B) that are found by "
            "indices, and in rows or columns of the other operand, got other strides");
  EXPECT_EQ(reason_of("grouped_gemm 96x64x64 groups=0 outside=zero a=bf16", "a100"),
            "groups: expected at least one with zeros outside of groups, got none");
  const char* const columns =
      "sm80v1_gemm_bf16r16_bf16c16_bf16c16_acc-f32_mma_64x64x64_2x2x1_none_m8_s4_groups-columns";
  ASSERT_TRUE(find_kernel(columns));
  EXPECT_EQ(find_kernel(columns)->metadata().design_value("indices"), "columns");
}

// Groups of any size end in single elements; groups of promised multiples are stored in whole
// accesses.
TEST(Sm80Groups, wide_accesses_along_the_extent_that_differs_need_a_promise) {
  const auto out_of = [](const char* line) {
    return kernels_of(line, "a100").front().operands().out.alignment;
  };
  EXPECT_EQ(out_of("grouped_gemm 96x64x64 groups=4 a=bf16"), 16);
  EXPECT_EQ(out_of("grouped_gemm 64x96x64 groups=4 ragged=n a=bf16"), 2);
  EXPECT_EQ(out_of("grouped_gemm 64x96x64 groups=4 ragged=n ends=i32/align=8 a=bf16"), 16);
}

}  // namespace
}  // namespace gemmery::templates
