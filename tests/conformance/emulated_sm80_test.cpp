// SPDX-License-Identifier: Apache-2.0
// The device suite for the family sm80, on emulated devices of three architectures: types, layouts,
// alignments of 1 to 16 bytes, every split of k, random schedules. GEMMERY_SOAK=1 runs 3,600 cases.
#include "tests/conformance/device_conformance.hpp"

namespace gemmery::conformance {
namespace {

DeviceUnderTest sm80_on(const char* device) {
  return {.device = device,
          .scale = {.rounds = 1,
                    .kernels_per_round = 8,
                    .cases_per_round = 24,
                    .kernels_per_line = 1,
                    .repetitions = 2},
          .soak = {.rounds = 30,
                   .kernels_per_round = 12,
                   .cases_per_round = 40,
                   .kernels_per_line = 5,
                   .repetitions = 10},
          .limits = {.products = 1 << 17, .depth = 700},
          .repeated_lines = {"gemm 37x29x70 a=bf16", "gemm 24x40x600 a=f16 out=f32",
                             "gemm 33x31x40 a=f64"},
          .family = "sm80"};
}
INSTANTIATE_TEST_SUITE_P(Sm80, DeviceConformance,
                         testing::Values(sm80_on("emulated:a100"), sm80_on("emulated:l40s"),
                                         sm80_on("emulated:b200")));

}  // namespace
}  // namespace gemmery::conformance
