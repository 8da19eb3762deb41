// SPDX-License-Identifier: Apache-2.0
// The device suite for the family skinny, on emulated devices of three architectures: types,
// layouts, alignments of 1 to 16 bytes, few rows or few columns, slices of k, random schedules.
// GEMMERY_SOAK=1 runs 3,600 cases.
#include "tests/conformance/device_conformance.hpp"

namespace gemmery::conformance {
namespace {

DeviceUnderTest skinny_on(const char* device) {
  return {.device = device,
          .scale = {.rounds = 1,
                    .kernels_per_round = 12,
                    .cases_per_round = 24,
                    .kernels_per_line = 1,
                    .repetitions = 2},
          .soak = {.rounds = 30,
                   .kernels_per_round = 12,
                   .cases_per_round = 40,
                   .kernels_per_line = 5,
                   .repetitions = 10},
          .limits = {.products = 1 << 17, .depth = 2600},
          .repeated_lines = {"gemm 3x70x1100 a=bf16 b=bf16:c", "gemm 40x2x900 a=f16 out=f32",
                             "gemm 8x64x300 a=f64"},
          .family = "skinny"};
}
INSTANTIATE_TEST_SUITE_P(Skinny, DeviceConformance,
                         testing::Values(skinny_on("emulated:a100"), skinny_on("emulated:l40s"),
                                         skinny_on("emulated:b200")));

}  // namespace
}  // namespace gemmery::conformance
