// SPDX-License-Identifier: Apache-2.0
// Sm90 kernels that are available only by name, on an emulated H200 with random problems: discovery
// offers one raster for each tile, so the conformance suite does not run the others.
#include <gtest/gtest.h>
#include <gemmery/gemmery.hpp>

#include <cstdlib>
#include <random>
#include <string>

#include <fmt/format.h>

#include "tests/providers/templates/on_emulated_h200.hpp"

namespace gemmery {
namespace {

class Sm90Emulated : public tests::OnEmulatedH200 {
 protected:
  int extent(int smallest, int largest, int step) {
    std::uniform_int_distribution<int> steps(smallest / step, largest / step);
    return steps(random_) * step;
  }

  // `words`: types and layouts of the problem, which must be the kernel's.
  void check(const std::string& kernel_name, const std::string& extents, const char* words,
             Fill fill = Fill::normal) {
    const std::string line = "gemm " + extents + " " + words;
    const auto kernel = find_kernel(kernel_name);
    ASSERT_TRUE(kernel) << kernel_name;
    if (!rows_.takes_next()) return;
    const VerifyReport report =
        verify(parse_problem(line), *kernel, {.fill = fill, .seed = random_(), .device = h200_});
    EXPECT_TRUE(report.passed) << line << " " << kernel_name << ": " << report.first_failure;
  }
};

// More tiles than blocks in both directions, partial bands and tiles, some with clusters.
TEST_F(Sm90Emulated, every_raster_covers_all_tiles) {
  for (const char* raster : {"m1", "m2", "m4", "m16", "m64", "n1", "n2", "n4", "n8", "n32"}) {
    for (const char* design : {"64x16x64_1x1_coop", "64x32x64_2x1_pingpong"}) {
      const std::string name = std::string("sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_") +
                               design + "_" + raster + "_s4";
      const std::string extents = std::to_string(extent(100, 1300, 1)) + "x" +
                                  std::to_string(extent(100, 600, 8)) + "x" +
                                  std::to_string(extent(8, 72, 8)) + "x2";
      check(name, extents, "a=bf16 b=bf16:c out=bf16");
    }
  }
}

// All layouts that the tile allows, partial tiles in both directions, with C.
TEST_F(Sm90Emulated, tiles_shared_by_columns_are_right) {
  struct Row {
    const char* kernel;
    const char* words;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"bf16r16_bf16c16_bf16r16_acc-f32_320x128x64_1x1_coop_m8_s3",
            "a=bf16 b=bf16:c out=bf16"},
           {"bf16c16_bf16r16_bf16r16_acc-f32_320x128x64_1x2_coop_m8_s3",
            "a=bf16:c b=bf16 out=bf16"},
           {"f16r16_f16r16_f32r16_acc-f32_320x128x64_2x1_coop_n4_s2", "a=f16 b=f16 out=f32"},
           {"bf16c16_bf16c16_f32r16_acc-f32_320x160x64_1x1_coop_m8_s2",
            "a=bf16:c b=bf16:c out=f32"},
           {"bf16r16_bf16c16_f16r16_acc-f32_320x96x64_2x1_coop_m8_s3", "a=bf16 b=bf16:c out=f16"},
           {"bf16r16_bf16c16_bf16r16_acc-f32_320x80x64_1x1_pingpong_m8_s3",
            "a=bf16 b=bf16:c out=bf16"},
           {"f16r16_f16c16_f16r16_acc-f16_320x256x64_1x1_coop_m8_s2",
            "a=f16 b=f16:c out=f16 acc=f16"},
           {"bf16r16_bf16c16_bf16c16_acc-f32_320x128x64_1x2_coop_m8_s2",
            "a=bf16 b=bf16:c out=bf16:c"}}) {
    const std::string extents = std::to_string(8 * extent(1, 90, 1)) + "x" +
                                std::to_string(extent(8, 600, 8)) + "x" +
                                std::to_string(extent(8, 264, 8));
    check(std::string("sm90v7_gemm_") + row.kernel, extents, row.words, Fill::normal);
  }
}

// Partial tiles in all directions, batches, several tiles per cluster, empty shares of k.
TEST_F(Sm90Emulated, sums_of_blocks_that_split_k_are_right) {
  struct Row {
    const char* kernel;
    const char* words;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"bf16r16_bf16c16_bf16r16_acc-f32_64x32x64_1x1_k2_coop_m8_s4",
            "a=bf16 b=bf16:c out=bf16"},
           {"bf16c16_bf16r16_f32r16_acc-f32_64x64x64_1x1_k4_coop_n2_s2", "a=bf16:c b=bf16 out=f32"},
           {"f16r16_f16r16_f16r16_acc-f32_64x128x64_1x1_k8_coop_m8_s5", "a=f16 b=f16 out=f16"},
           {"bf16c16_bf16c16_f32r16_acc-f32_128x96x64_1x1_k2_coop_m8_s3_c-f32r16",
            "a=bf16:c b=bf16:c out=f32 c=f32 beta=-0.5"},
           {"bf16r16_bf16c16_bf16c16_acc-f32_128x128x64_1x1_k4_coop_m8_s3",
            "a=bf16 b=bf16:c out=bf16:c"},
           {"bf16r16_bf16c16_bf16r16_acc-f32_192x64x64_1x1_k2_coop_m8_s2",
            "a=bf16 b=bf16:c out=bf16"},
           {"bf16r16_bf16c16_f16r16_acc-f32_256x64x64_1x1_k4_coop_m8_s2",
            "a=bf16 b=bf16:c out=f16"},
           {"f16r16_f16c16_f16r16_acc-f16_128x64x64_1x1_k4_coop_m8_s4",
            "a=f16 b=f16:c out=f16 acc=f16"},
           {"f16r16_f16c16_f32r16_acc-f16_256x128x64_1x1_k8_coop_m8_s2",
            "a=f16 b=f16:c out=f32 acc=f16"}}) {
    for (const int k : {8 * extent(1, 16, 1), extent(8, 1400, 8)}) {
      const std::string extents = std::to_string(8 * extent(1, 60, 1)) + "x" +
                                  std::to_string(extent(8, 400, 8)) + "x" + std::to_string(k) +
                                  "x" + std::to_string(extent(1, 3, 1));
      check(std::string("sm90v7_gemm_") + row.kernel, extents, row.words);
    }
  }
}

// The same through the workspace: more slices than a cluster has blocks, more than k has blocks;
// stream-K with whole and partial tiles, ping-pong, and clusters that share operands.
TEST_F(Sm90Emulated, parts_of_tiles_make_tiles) {
  struct Row {
    const char* kernel;
    const char* words;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"bf16r16_bf16c16_bf16r16_acc-f32_64x32x64_1x1_parallel11_coop_m8_s4",
            "a=bf16 b=bf16:c out=bf16"},
           {"bf16c16_bf16r16_f32r16_acc-f32_128x64x64_1x1_serial5_coop_n2_s2",
            "a=bf16:c b=bf16 out=f32"},
           {"f16r16_f16r16_f16r16_acc-f32_64x128x64_1x1_stream_coop_m8_s5", "a=f16 b=f16 out=f16"},
           {"bf16c16_bf16c16_f32r16_acc-f32_128x96x64_2x1_parallel3_coop_m8_s3_c-f32r16",
            "a=bf16:c b=bf16:c out=f32 c=f32 beta=-0.5"},
           {"bf16r16_bf16c16_bf16c16_acc-f32_128x128x64_1x2_stream_coop_m8_s3_c-bf16c16",
            "a=bf16 b=bf16:c out=bf16:c c=bf16:c beta=2"},
           {"bf16r16_bf16c16_bf16r16_acc-f32_64x64x64_1x1_parallel2_pingpong_m8_s4",
            "a=bf16 b=bf16:c out=bf16"},
           {"bf16r16_bf16c16_f16r16_acc-f32_64x32x64_2x1_stream_pingpong_m8_s4",
            "a=bf16 b=bf16:c out=f16"},
           {"bf16r16_bf16c16_f16r16_acc-f32_64x32x64_1x1_serial3_pingpong_m8_s4",
            "a=bf16 b=bf16:c out=f16"},
           {"f16r16_f16c16_f16r16_acc-f16_320x128x64_1x1_parallel4_coop_m8_s3",
            "a=f16 b=f16:c out=f16 acc=f16"},
           {"f16r16_f16c16_f32r16_acc-f16_128x128x64_1x1_stream_coop_m8_s2",
            "a=f16 b=f16:c out=f32 acc=f16"},
           // Within clusters and through the workspace.
           {"bf16r16_bf16c16_bf16r16_acc-f32_64x64x64_1x1_k4_parallel11_coop_m8_s4",
            "a=bf16 b=bf16:c out=bf16"},
           {"bf16c16_bf16r16_f32r16_acc-f32_64x32x64_1x1_k2_parallel3_coop_n2_s2_c-f32r16",
            "a=bf16:c b=bf16 out=f32 c=f32 beta=-0.5"},
           {"f16r16_f16c16_f16r16_acc-f16_128x128x64_1x1_k8_parallel2_coop_m8_s3",
            "a=f16 b=f16:c out=f16 acc=f16"},
           {"s8r16_s8c16_s32r16_acc-s32_128x96x128_1x1_k2_parallel5_coop_m8_s2",
            "a=int8 b=int8:c out=int32"},
           {"e4m3r16_e4m3c16_bf16r16_acc-f32_wgmma-promoted_128x96x128_1x1_k2_parallel3_coop_m8_s2",
            "a=e4m3 b=e4m3:c out=bf16"}}) {
    for (const int k : {16 * extent(1, 8, 1), extent(16, 1400, 16)}) {
      const std::string extents = std::to_string(8 * extent(1, 60, 1)) + "x" +
                                  std::to_string(extent(16, 400, 16)) + "x" + std::to_string(k) +
                                  "x" + std::to_string(extent(1, 3, 1));
      check(std::string("sm90v7_gemm_") + row.kernel, extents, row.words);
    }
  }
}

// Integer sums that are exact in float32 and not in the result's type: the sum over all slices is
// rounded once and has one value. GEMMERY_SOAK=1 runs 500 cases.
TEST_F(Sm90Emulated, parts_of_tiles_are_rounded_once) {
  const bool is_soak = std::getenv("GEMMERY_SOAK") != nullptr;
  for (int round = 0; round < (is_soak ? 500 : 12); ++round) {
    const std::string splits[] = {"stream", "serial" + std::to_string(extent(2, 7, 1)),
                                  "parallel" + std::to_string(extent(2, 7, 1))};
    const char* const type = extent(0, 1, 1) == 0 ? "f16" : "bf16";
    const char* const designs[] = {"128x32x64_1x1_{}_coop_m8_s3", "64x64x64_1x1_{}_pingpong_m8_s3",
                                   "64x32x64_2x1_{}_coop_m8_s4"};
    const std::string split = splits[extent(0, 2, 1)];
    const std::string name = fmt::format("sm90v7_gemm_{0}r16_{0}c16_{0}r16_acc-f32_", type) +
                             fmt::format(fmt::runtime(designs[extent(0, 2, 1)]), split);
    const auto kernel = find_kernel(name);
    ASSERT_TRUE(kernel) << name;
    const ProblemLine line = parse_problem(
        fmt::format("gemm {1}x{2}x{3}x{4} a={0}/ld=1600 b={0}:c/ld=1600", type, extent(1, 150, 1),
                    extent(8, 96, 8), extent(200, 1600, 1), extent(1, 2, 1)));
    const VerifyReport report =
        verify(line, *kernel,
               {.fill = Fill::integers, .seed = random_(), .guard_bands = true, .device = h200_});
    EXPECT_TRUE(report.passed) << to_string(line) << " " << name << ": " << report.first_failure;
    EXPECT_EQ(report.method, "exact integers");
  }
}

// Programs read their operands when a block has the whole sum of a tile.
TEST_F(Sm90Emulated, parts_of_tiles_go_through_programs) {
  for (const char* program :
       {R"p(epilogue="D = gelu(accum + bias)" bias=f32[n])p",
        R"p(epilogue="D = accum * s + residual; P = accum" s=f32[m] residual=bf16 P=f32)p"}) {
    for (const char* design :
         {"128x64x64_1x1_parallel3_coop_m8_s2", "128x64x64_1x1_serial2_coop_m8_s2",
          "128x64x64_1x1_stream_coop_m8_s2", "64x128x64_1x1_parallel3_pingpong_m8_s2",
          "64x128x64_1x1_serial2_pingpong_m8_s2", "64x128x64_1x1_stream_pingpong_m8_s2",
          "128x64x64_1x1_k2_parallel3_coop_m8_s2", "64x128x64_1x1_k4_parallel2_coop_m8_s3"}) {
      const std::string line =
          fmt::format("gemm {}x{}x{}x2 a=bf16 b=bf16:c {}", 8 * extent(1, 40, 1), extent(8, 400, 8),
                      extent(8, 700, 8), program);
      const ProblemLine problem = parse_problem(line);
      const std::string name = std::string("sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_") +
                               design + "_e-" + digest(problem.problem.epilogue);
      const auto kernel = find_kernel(name);
      ASSERT_TRUE(kernel) << name;
      if (!rows_.takes_next()) continue;
      const VerifyReport report = verify(problem, *kernel, {.seed = random_(), .device = h200_});
      EXPECT_TRUE(report.passed) << line << " " << name << ": " << report.first_failure;
    }
  }
}

// Exact: integers so small that no sum exceeds 2^11.
TEST_F(Sm90Emulated, float16_sums_are_exact_where_they_can_be) {
  for (const char* design : {"256x256x64_1x1_coop_m8_s3", "128x128x64_2x1_pingpong_m8_s4",
                             "192x96x64_1x2_coop_m8_s2", "64x16x64_1x1_coop_m8_s8"}) {
    for (const char* out : {"f16", "f32", "bf16"}) {
      const std::string name =
          std::string("sm90v7_gemm_f16r16_f16c16_") + out + "r16_acc-f16_" + design;
      const std::string extents = std::to_string(extent(1, 400, 1)) + "x" +
                                  std::to_string(extent(8, 400, 8)) + "x" +
                                  std::to_string(extent(8, 264, 8));
      const std::string words = std::string("a=f16 b=f16:c acc=f16 out=") + out;
      check(name, extents, words.c_str(), Fill::integers);
      check(name, extents, words.c_str(), Fill::normal);
    }
  }
}

}  // namespace
}  // namespace gemmery
