// SPDX-License-Identifier: Apache-2.0
// Kernels of the family skinny that a name may request: every alignment, layout, side and type;
// loads, slots and lanes beyond those that discovery offers.
#include "tests/providers/templates/named_designs.hpp"

#include <string>

#include <fmt/format.h>

namespace gemmery {
namespace {

class SkinnyNamedDesigns : public tests::NamedDesigns {};

TEST_F(SkinnyNamedDesigns, bfloat16_of_every_alignment_and_layout_is_exact) {
  struct Extents {
    int bytes;
    const char* text;
  };
  // n and k are multiples of the alignment and of no larger power of two.
  for (const auto& [bytes, extents] : {Extents{2, "3x37x611"}, Extents{4, "3x38x610"},
                                       Extents{8, "3x44x612"}, Extents{16, "3x40x616"}})
    for (const char b : {'r', 'c'})
      expect_exact(
          fmt::format("skinny1_gemm_bf16r{0}_bf16{1}{0}_f32r4_acc-f32_m4_none_64x2x2x32", bytes, b),
          fmt::format("gemm {} a=bf16 b=bf16:{} out=f32", extents, b));
}

TEST_F(SkinnyNamedDesigns, bytes_of_every_alignment_and_layout_are_exact) {
  struct Extents {
    int bytes;
    const char* text;
  };
  for (const auto& [bytes, extents] : {Extents{1, "4x33x267"}, Extents{2, "2x34x270"},
                                       Extents{4, "4x36x268"}, Extents{16, "3x48x272"}})
    for (const char b : {'r', 'c'})
      expect_exact(fmt::format("skinny1_gemm_s8r{0}_u8{1}{0}_s32r4_acc-s32_m4_parallel2_64x4x2x32",
                               bytes, b),
                   fmt::format("gemm {} a=int8 b=uint8:{} out=int32", extents, b));
}

TEST_F(SkinnyNamedDesigns, few_columns_are_exact) {
  for (const char a : {'r', 'c'})
    for (const char b : {'r', 'c'})
      expect_exact(fmt::format("skinny1_gemm_f16{}16_f16{}_f32{}_acc-f32_n4_parallel3_64x2x2x32", a,
                               b == 'r' ? "x2" : "c16", a == 'r' ? "x4" : "c16"),
                   fmt::format("gemm 48x3x1608 a=f16:{} b=f16:{} out=f32:c", a, b));
}

TEST_F(SkinnyNamedDesigns, any_shape_is_exact) {
  for (const char* const shape : {"32x1x2x32", "64x8x2x32", "128x2x8x32", "512x4x2x32"})
    expect_exact(fmt::format("skinny1_gemm_bf16r16_bf16c16_bf16r16_acc-f32_m2_none_{}", shape),
                 "gemm 2x72x1000 a=bf16 b=bf16:c");
  for (const char* const shape : {"32x1x2x8", "64x8x2x16", "128x2x8x32", "512x4x2x8"})
    expect_exact(fmt::format("skinny1_gemm_bf16r16_bf16r16_bf16r16_acc-f32_m2_parallel4_{}", shape),
                 "gemm 2x72x1000 a=bf16 b=bf16");
}

TEST_F(SkinnyNamedDesigns, designs_of_other_types_are_exact) {
  struct Case {
    const char* design;
    const char* line;
  };
  for (const auto& [design, line] : {
           Case{"f64r16_f64c16_f64r16_acc-f64_m8_none_64x2x2x32_c-f64r16",
                "gemm 7x36x302 a=f64 b=f64:c c=f64"},
           Case{"f64x8_f64r16_f32x4_acc-f64_m1_parallel2_64x4x2x8",
                "gemm 1x66x300 a=f64/strides=900,3 b=f64 out=f32"},
           Case{"e4m3r16_e5m2r16_f32r16_acc-f32_m4_none_64x2x2x8",
                "gemm 4x48x160 a=e4m3 b=e5m2 out=f32"},
           Case{"f16r16_e4m3c16_f16r16_acc-f32_m2_none_64x4x2x32",
                "gemm 2x40x1040 a=f16 b=e4m3:c out=f16"},
           Case{"bf16r16_bf16x2_bf16x2_acc-f32_m1_none_64x2x2x32",
                "gemm 1x33x136 a=bf16 b=bf16/strides=200,3"},
       })
    expect_exact(std::string("skinny1_gemm_") + design, line);
}

TEST_F(SkinnyNamedDesigns, designs_of_discovery_spill_nothing) {
  expect_no_spills("skinny1_gemm_bf16r16_bf16c16_bf16r16_acc-f32_m4_parallel4_128x4x4x32");
  expect_no_spills("skinny1_gemm_bf16r16_bf16r16_bf16r16_acc-f32_m4_none_512x4x3x8");
  expect_no_spills("skinny1_gemm_f32r16_f32c16_f32r16_acc-f32_m8_none_256x4x2x32");
  for (const char* const once_spilled :
       {"f32x4_bf16x2_f32c16_acc-f32_n1_none_128x4x4x32",
        "f64x8_f64c16_f32x4_acc-f64_n1_none_128x4x4x32_c-f64x8",
        "f16r16_f16c16_f16x2_acc-f32_n8_none_128x4x4x32",
        "f16r8_f32c16_f16x2_acc-f32_n4_none_128x4x4x32_c-f32x4",
        "u8r16_s8c8_f32r16_acc-s32_m2_none_128x4x4x32_c-f32r16",
        "e5m2r16_e4m3c8_f32r16_acc-f32_m2_none_128x4x4x32",
        "f16r16_f16c16_bf16x2_acc-f32_n8_none_256x4x2x32_c-f16x2",
        "bf16r16_bf16c16_bf16c16_acc-f32_n8_none_512x4x2x32_c-f16c16"})
    expect_no_spills(std::string("skinny1_gemm_") + once_spilled);
}

TEST_F(SkinnyNamedDesigns, what_no_kernel_can_be_made_of_has_no_name) {
  for (const char* const wrong : {
           "bf16r1_bf16c16_bf16r16_acc-f32_m1_none_128x4x3x32",   // half an element
           "bf16c16_bf16c16_bf16r16_acc-f32_m1_none_128x4x3x32",  // A is read along k
           "bf16r16_bf16c16_bf16c16_acc-f32_m1_none_128x4x3x32",  // out is written along columns
           "bf16r16_bf16x4_bf16r16_acc-f32_m1_none_128x4x3x32",   // no adjacent index
           "bf16r16_bf16c16_s8r16_acc-f32_m1_none_128x4x3x32",    // type of out
           "s8r16_s8r16_s32r16_acc-s32_m8_none_128x4x3x32",       // accumulators
       })
    EXPECT_FALSE(find_kernel(std::string("skinny1_gemm_") + wrong)) << wrong;
}

}  // namespace
}  // namespace gemmery
