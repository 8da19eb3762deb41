// SPDX-License-Identifier: Apache-2.0
// Kernels of the family sm80 that a description may request: alignments, stages, warps and
// instructions beyond those that discovery offers.
#include "tests/providers/templates/named_designs.hpp"

#include <string>

#include <fmt/format.h>

namespace gemmery {
namespace {

class Sm80NamedDesigns : public tests::NamedDesigns {};

// Extents are multiples of the alignment and of no larger power of two.
TEST_F(Sm80NamedDesigns, float16_of_every_alignment_and_layout_is_exact) {
  struct Extents {
    int bytes;
    const char* text;
  };
  for (const auto& [bytes, extents] : {Extents{2, "67x45x83"}, Extents{4, "66x46x82"},
                                       Extents{8, "68x44x84"}, Extents{16, "72x40x88"}})
    for (const char a : {'r', 'c'})
      for (const char b : {'r', 'c'}) {
        // Over all cases, each alignment of out and C occurs with each layout.
        const char out = a == b ? 'r' : 'c';
        expect_exact(
            fmt::format("sm80v1_gemm_f16{0}{3}_f16{1}{3}_f16{2}{3}_acc-f32_mma_64x32x32_2x1x1_"
                        "none_m8_s3_c-f16{0}{3}",
                        a, b, out, bytes),
            fmt::format("gemm {} a=f16:{} b=f16:{} out=f16:{} c=f16:{}", extents, a, b, out, a));
      }
}

TEST_F(Sm80NamedDesigns, bytes_of_every_alignment_and_layout_are_exact) {
  struct Extents {
    int bytes;
    const char* text;
  };
  for (const auto& [bytes, extents] :
       {Extents{1, "35x33x67"}, Extents{2, "34x38x70"}, Extents{8, "40x24x72"}})
    for (const char a : {'r', 'c'})
      for (const char b : {'r', 'c'})
        expect_exact(
            fmt::format("sm80v1_gemm_s8{0}{2}_u8{1}{2}_s8r{2}_acc-s32_mma_32x32x64_1x2x1_none_m8_"
                        "s3",
                        a, b, bytes),
            fmt::format("gemm {} a=int8:{} b=uint8:{} out=int8", extents, a, b));
}

TEST_F(Sm80NamedDesigns, any_number_of_stages_is_exact) {
  for (const int stages : {2, 3, 4, 5, 10, 12})
    expect_exact(
        fmt::format("sm80v1_gemm_bf16r8_bf16c16_f32r16_acc-f32_mma_64x32x32_2x1x1_none_m8_s{}",
                    stages),
        "gemm 68x44x500 a=bf16 b=bf16:c/ld=504 out=f32");
}

TEST_F(Sm80NamedDesigns, groups_of_warps_that_split_k_are_exact) {
  for (const char* const warps : {"2x1x2", "2x2x2", "1x1x4"})
    expect_exact(
        fmt::format("sm80v1_gemm_f16r4_f16r8_f32r4_acc-f32_mma_64x32x128_{}_none_m8_s2", warps),
        "gemm 70x44x150 a=f16 b=f16 out=f32");
}

TEST_F(Sm80NamedDesigns, designs_of_other_types_are_exact) {
  struct Case {
    const char* design;
    const char* line;
  };
  for (const auto& [design, line] : {
           Case{"f64r8_f64c8_f64r8_acc-f64_mma_64x64x16_2x2x1_none_m8_s4_c-f64r8",
                "gemm 67x45x43 a=f64 b=f64:c c=f64"},
           Case{"f64c16_f64r16_f64c16_acc-f64_mma_64x64x16_2x2x1_none_m8_s4",
                "gemm 66x70x44 a=f64:c b=f64 out=f64:c"},
           Case{"f32r8_f32c4_f32r4_acc-f32_mma-tf32_128x128x32_4x2x1_none_m8_s3_c-f32c8",
                "gemm 70x38x42 a=f32 b=f32:c out=f32 c=f32:c math=tf32"},
           Case{"f32c4_f32r8_f32r16_acc-f32_mma-tf32_128x128x32_2x2x1_none_m8_s3",
                "gemm 131x44x37 a=f32:c b=f32 out=f32 math=tf32"},
           Case{"s8r16_s8c16_s8r4_acc-s32_mma-saturate_128x128x64_2x2x1_none_m8_s3",
                "gemm 130x36x80 a=int8 b=int8:c out=int8 math=saturate"},
           Case{"s8c2_s8r4_f32x4_acc-s32_mma_128x128x64_4x2x1_none_m8_s3",
                "gemm 130x36x80 a=int8:c b=int8 out=f32/strides=80,2"},
           Case{"f16r16_f16r2_f16r2_acc-f16_mma_128x64x32_2x2x1_none_m8_s4",
                "gemm 70x45x40 a=f16 b=f16 out=f16 acc=f16"},
           Case{"f32r8_f32c4_f32r8_acc-f32_mma-f16_128x128x32_4x2x1_none_m8_s3",
                "gemm 70x38x42 a=f32 b=f32:c out=f32 math=f16"},
           Case{"f32c8_f32r4_f32r4_acc-f32_mma-f16x3_64x64x32_2x2x1_none_m8_s4",
                "gemm 70x37x42 a=f32:c b=f32 out=f32 math=f16x3"},
           Case{"bf16c2_bf16c4_bf16x2_acc-f32_mma_32x64x32_1x2x1_serial3_n4_s5_c-f32r4",
                "gemm 35x37x150 a=bf16:c b=bf16:c out=bf16 c=f32"},
       })
    expect_exact(std::string("sm80v1_gemm_") + design, line);
}

// m16n8k8 and m16n8k16 give equal results for integers.
TEST_F(Sm80NamedDesigns, the_narrow_instruction_is_exact) {
  struct Case {
    const char* types;
    const char* math;
    const char* line;
  };
  for (const auto& [types, math, line] : {
           Case{"f16r16_f16c16_f32r16_acc-f32", "mma-k8", "a=f16 b=f16:c out=f32"},
           Case{"bf16r16_bf16r16_bf16c16_acc-f32", "mma-k8", "a=bf16 b=bf16 out=bf16:c"},
           Case{"f32r16_f32r16_f32r16_acc-f32", "mma-bf16x3-k8", "a=f32 b=f32 math=bf16x3"},
           Case{"f32c16_f32c16_f32r16_acc-f32", "mma-bf16-k8", "a=f32:c b=f32:c math=bf16"},
           Case{"f32r16_f32c16_f32r16_acc-f32", "mma-f16x3-k8", "a=f32 b=f32:c math=f16x3"},
           Case{"f32c16_f32r16_f32c16_acc-f32", "mma-f16-k8", "a=f32:c b=f32 out=f32:c math=f16"},
       }) {
    const std::string name =
        fmt::format("sm80v1_gemm_{}_{}_64x32x32_2x1x1_none_m8_s3", types, math);
    expect_exact(name, fmt::format("gemm 72x40x88 {}", line));
    EXPECT_EQ(find_kernel(name)->metadata().design_value("mma"), "16x8x8");
  }
}

// Instructions for float64 that exist from sm_90 on.
TEST_F(Sm80NamedDesigns, wide_instructions_of_float64_are_exact) {
  struct Case {
    const char* design;
    const char* mma;
    const char* line;
  };
  for (const auto& [design, mma, line] : {
           Case{"f64r8_f64c8_f64r8_acc-f64_mma-k8_64x64x16_2x2x1_none_m8_s4_c-f64r8", "16x8x8",
                "gemm 67x45x43 a=f64 b=f64:c c=f64"},
           Case{"f64c16_f64r16_f64c16_acc-f64_mma-k8_128x64x16_2x2x1_none_m8_s3", "16x8x8",
                "gemm 66x70x44 a=f64:c b=f64 out=f64:c"},
           Case{"f64r16_f64r16_f64r16_acc-f64_mma-k8_32x32x32_1x1x2_parallel2_m8_s3", "16x8x8",
                "gemm 34x36x98 a=f64 b=f64"},
           Case{"f64c16_f64c16_f64r16_acc-f64_mma-k16_64x64x32_2x2x1_serial2_m8_s3", "16x8x16",
                "gemm 66x70x100 a=f64:c b=f64:c"},
           Case{"f64r8_f64r8_f32r4_acc-f64_mma-k16_64x32x64_2x1x2_none_m8_s2", "16x8x16",
                "gemm 41x35x131 a=f64 b=f64 out=f32"},
       }) {
    const std::string name = std::string("sm80v1_gemm_") + design;
    expect_exact(name, line);
    ASSERT_TRUE(find_kernel(name)) << name;
    EXPECT_EQ(find_kernel(name)->metadata().design_value("mma"), mma);
    EXPECT_EQ(find_kernel(name)->metadata().supported_targets.front(), parse_target("sm_90"));
  }
}

TEST_F(Sm80NamedDesigns, float32_rounded_or_split_to_16_bits_keeps_to_its_bound) {
  for (const char* const math : {"f16", "bf16", "f16x3", "bf16x3"})
    for (const char* const instruction : {"", "-k8"}) {
      expect_within_bounds(
          fmt::format("sm80v1_gemm_f32r4_f32c8_f32r4_acc-f32_mma-{}{}_64x32x32_2x1x1_none_m8_s3",
                      math, instruction),
          fmt::format("gemm 35x33x150 a=f32 b=f32:c math={}", math));
    }
}

TEST_F(Sm80NamedDesigns, designs_of_descriptions_spill_nothing) {
  expect_no_spills("sm80v1_gemm_f64r8_f64c8_f64r8_acc-f64_mma_64x64x16_2x2x1_none_m8_s4_c-f64r8");
  expect_no_spills(
      "sm80v1_gemm_f64r8_f64c8_f64r8_acc-f64_mma-k8_64x64x16_2x2x1_none_m8_s4_c-f64r8");
  expect_no_spills(
      "sm80v1_gemm_f32r4_f32r4_f32r4_acc-f32_mma-tf32_128x128x32_4x2x1_none_m8_s3_c-f32r4");
  expect_no_spills("sm80v1_gemm_f16r2_f16c2_f16r2_acc-f32_mma-k8_128x128x32_4x2x1_none_m8_s3");
  expect_no_spills(
      "sm80v1_gemm_s8r16_s8c16_s8r16_acc-s32_mma-saturate_128x128x64_2x2x1_none_m8_s3");
}

// Unrolling over all stages would need registers for all parts.
TEST_F(Sm80NamedDesigns, three_products_of_small_tiles_spill_nothing) {
  for (const char* const design :
       {"mma-bf16x3_32x128x32_1x4x1", "mma-tf32x3_128x16x32_4x1x1", "mma-f16x3_64x64x32_2x2x1"})
    expect_no_spills(
        fmt::format("sm80v1_gemm_f32r4_f32c16_f32c16_acc-f32_{}_none_m8_s4_c-f32x4", design));
}

// Two steps of whole float32 fragments with 128 accumulators; two steps of float64 fragments in 128
// registers; values of the epilogue that are computed before the mainloop.
TEST_F(Sm80NamedDesigns, that_filled_all_registers_spill_nothing) {
  for (const char* const name :
       {"f32r4_f32r16_f32r16_acc-f32_mma-bf16_128x128x32_2x2x1_none_m8_s3_c-f32r16",
        "f32c4_f32r16_f32r4_acc-f32_mma-f16_128x128x32_2x2x1_none_m8_s3_c-f32r4",
        "f32c16_f32r16_f16x2_acc-f32_mma-f16_128x128x32_2x2x1_none_m8_s3_c-f16x2",
        "f32r4_f32r16_f32c16_acc-f32_mma-bf16x3_128x128x32_2x4x1_none_m8_s3_c-f16c16",
        "f32r16_f32c4_f16c16_acc-f32_mma-f16x3_64x128x32_1x4x1_none_m8_s3_c-f32c16",
        "f32r4_f32c16_f32c16_acc-f32_mma-f16x3_128x64x32_2x2x1_none_m8_s3_c-f32c16",
        "f32r4_f32r16_f32c16_acc-f32_mma-tf32x3_64x128x16_2x2x1_none_m8_s4_c-f16c16",
        "f64r8_f64c16_f32x4_acc-f64_mma-k8_128x128x16_4x4x1_none_m8_s3_c-f64x8",
        "f64r16_f64r16_f32r16_acc-f64_mma-k8_128x128x16_4x4x1_none_m8_s3",
        "u8r16_s8c4_s32x4_acc-s32_mma_128x256x64_2x4x1_none_m8_s3_c-s32x4"})
    expect_no_spills(std::string("sm80v1_gemm_") + name);
}

// Without registers for the next step's fragments, a step loads its fragments when it multiplies.
TEST_F(Sm80NamedDesigns, that_load_no_step_ahead_are_exact) {
  struct Case {
    const char* design;
    const char* line;
  };
  for (const auto& [design, line] : {
           Case{"f64r8_f64c8_f64r8_acc-f64_mma-k8_128x128x16_4x4x1_serial2_m8_s3_c-f64r8",
                "gemm 131x67x85 a=f64 b=f64:c c=f64"},
           Case{"f32c4_f32r4_f32r4_acc-f32_mma-tf32x3_64x128x16_2x2x1_none_m8_s4",
                "gemm 70x131x69 a=f32:c b=f32 math=tf32x3"},
           Case{"f32r4_f32c4_f32r4_acc-f32_mma-bf16x3_64x128x32_1x4x1_none_m8_s3",
                "gemm 70x131x101 a=f32 b=f32:c math=bf16x3"},
           Case{"f32c4_f32r4_f32r4_acc-f32_mma-f16x3_128x128x32_2x4x1_parallel2_m8_s3",
                "gemm 131x70x133 a=f32:c b=f32 math=f16x3"},
       })
    expect_exact(std::string("sm80v1_gemm_") + design, line);
}

TEST_F(Sm80NamedDesigns, without_k_beta_c_is_exact) {
  expect_exact("sm80v1_gemm_f16r2_f16c2_f16r2_acc-f32_mma_64x64x64_2x2x1_none_m8_s4_c-f16r2",
               "gemm 70x45x0 a=f16 b=f16:c c=f16 beta=2");
  expect_exact("sm80v1_gemm_s8r1_s8r1_s32r4_acc-s32_mma_64x64x128_2x2x1_none_m8_s4_c-s32r4",
               "gemm 70x45x0 a=int8 b=int8 out=int32 c=int32 beta=2");
  expect_exact(
      "sm80v1_gemm_f32r4_f32c4_f32r4_acc-f32_mma-bf16x3_64x128x32_1x4x1_none_m8_s3_c-f32r4",
      "gemm 70x45x0 a=f32 b=f32:c c=f32 beta=2 math=bf16x3");
}

TEST_F(Sm80NamedDesigns, what_no_kernel_can_be_made_of_has_no_name) {
  for (const char* const wrong : {
           "f16r1_f16c16_f16r16_acc-f32_mma_64x32x32_2x1x1_none_m8_s3",      // half an element
           "f16r12_f16c16_f16r16_acc-f32_mma_64x32x32_2x1x1_none_m8_s3",     // no power of two
           "f16x2_f16c16_f16r16_acc-f32_mma_64x32x32_2x1x1_none_m8_s3",      // no adjacent index
           "f16r16_f16c16_f16x4_acc-f32_mma_64x32x32_2x1x1_none_m8_s3",      // likewise
           "f16r16_f16c16_s8r16_acc-f32_mma_64x32x32_2x1x1_none_m8_s3",      // type of out
           "f16r16_f16c16_f16r16_acc-f32_mma_64x32x32_2x1x1_none_m8_s13",    // stages
           "f16r16_f16c16_f16r16_acc-f32_mma-k4_64x32x32_2x1x1_none_m8_s3",  // instruction
           "f16r16_f16c16_f16r16_acc-f16_mma-k8_64x32x32_2x1x1_none_m8_s3",  // has but the wide one
           "f32r16_f32c16_f32r16_acc-f32_mma-tf32-k8_64x32x32_2x1x1_none_m8_s3",
           "s8r16_s8c16_s32r16_acc-s32_mma-k8_64x32x64_2x1x1_none_m8_s3",
       })
    EXPECT_FALSE(find_kernel(std::string("sm80v1_gemm_") + wrong)) << wrong;
}

}  // namespace
}  // namespace gemmery
