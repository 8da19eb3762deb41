// SPDX-License-Identifier: Apache-2.0
// Kernels of the family simt that a description may request: alignments, tiles and stages beyond
// those that discovery offers.
#include "tests/providers/templates/named_designs.hpp"

#include <string>

#include <fmt/format.h>

namespace gemmery {
namespace {

class SimtNamedDesigns : public tests::NamedDesigns {};

TEST_F(SimtNamedDesigns, every_alignment_and_layout_is_exact) {
  struct Extents {
    int elements;
    const char* text;
  };
  for (const auto& [elements, extents] :
       {Extents{1, "67x45x83"}, Extents{2, "66x46x82"}, Extents{4, "68x44x84"}})
    for (const char a : {'r', 'c'})
      for (const char b : {'r', 'c'})
        for (const char* const type : {"f32", "f16"}) {
          const int bytes = elements * (type == std::string("f32") ? 4 : 2);
          expect_exact(fmt::format("simt1_gemm_{4}{0}{2}_{4}{1}{2}_{4}{0}{2}_acc-f32_64x32x16_4x4_"
                                   "k1_s3_c-{4}{1}{2}",
                                   a, b, bytes, extents, type),
                       fmt::format("gemm {3} a={4}:{0} b={4}:{1} out={4}:{0} c={4}:{1}", a, b,
                                   bytes, extents, type));
        }
}

TEST_F(SimtNamedDesigns, any_number_of_stages_is_exact) {
  for (const int stages : {2, 3, 4, 5, 10, 12})
    expect_exact(fmt::format("simt1_gemm_f32r8_f32c16_f32r16_acc-f32_64x32x8_4x4_k1_s{}", stages),
                 "gemm 68x44x150 a=f32 b=f32:c/ld=152");
}

TEST_F(SimtNamedDesigns, designs_of_descriptions_are_exact) {
  struct Case {
    const char* design;
    const char* line;
  };
  for (const auto& [design, line] : {
           Case{"f32r4_f32r4_f32r4_acc-f32_128x128x8_8x8_k1_s4_c-f32r4", "a=f32 b=f32 c=f32"},
           Case{"f64r8_f64c8_f64r8_acc-f64_64x128x8_8x8_k1_s5", "a=f64 b=f64:c"},
           Case{"f64c16_f64r16_f64c8_acc-f64_64x128x8_8x8_k1_s5",
                "a=f64:c/ld=140 b=f64/ld=90 out=f64:c"},
           Case{"f16r2_f16c2_f32r4_acc-f32_128x64x8_8x8_k1_s5", "a=f16 b=f16:c out=f32"},
           Case{"bf16c2_bf16r2_bf16r2_acc-f32_64x128x8_8x4_k1_s2", "a=bf16:c b=bf16 out=bf16"},
           Case{"s8r1_s8c1_s32r4_acc-s32_128x128x32_8x8_k1_s2", "a=int8 b=int8:c out=int32"},
           Case{"s8c1_s8r1_s8r1_acc-s32_64x64x32_8x4_k1_s10", "a=int8:c b=int8 out=int8"},
       })
    expect_exact(std::string("simt1_gemm_") + design, std::string("gemm 133x83x47 ") + line);
}

TEST_F(SimtNamedDesigns, designs_of_descriptions_spill_nothing) {
  for (const char* const design : {"f32r4_f32r4_f32r4_acc-f32_128x128x8_8x8_k1_s4_c-f32r4",
                                   "f32r4_f32r4_f32c4_acc-f32_128x128x8_8x8_k1_s4_c-f32c4",
                                   "f32c8_f32r8_f32c8_acc-f32_128x128x8_8x8_k1_s4_c-f32c8",
                                   "f64r8_f64c8_f64r8_acc-f64_64x128x8_8x8_k1_s5",
                                   "f64c8_f64r8_f64r8_acc-f64_64x128x8_8x8_k1_s5_c-f64r8"})
    expect_no_spills(std::string("simt1_gemm_") + design);
}

}  // namespace
}  // namespace gemmery
