// SPDX-License-Identifier: Apache-2.0
// The device suite on an emulated H200: runs NVRTC's PTX under random schedules and checks every
// access. No GPU is needed. GEMMERY_SOAK=1 runs 2,000 cases.
#include "tests/conformance/device_conformance.hpp"

namespace gemmery::conformance {
namespace {

// Problems are small, because each warp instruction takes a fraction of a microsecond. Kernels are
// few, with many problems each, because every kernel must be compiled.
const DeviceUnderTest h200{
    .device = "emulated:h200",
    .scale = {.rounds = 1,
              .kernels_per_round = 10,
              .cases_per_round = 20,
              .kernels_per_line = 1,
              .repetitions = 2},
    .soak = {.rounds = 50,
             .kernels_per_round = 10,
             .cases_per_round = 40,
             .kernels_per_line = 5,
             .repetitions = 10},
    .limits = {.products = 1 << 17, .depth = 300},
    .repeated_lines = {"gemm 37x29x70 a=f32", "gemm 16x24x130 a=f16 out=f32",
                       "gemm 72x40x136 a=bf16", "gemm 33x31x40 a=f64"},
};

// Only the family sm90: all types, layouts and kinds of out; plain, split and repacked.
const DeviceUnderTest sm90{
    .device = "emulated:h200",
    .scale = {.rounds = 1,
              .kernels_per_round = 10,
              .cases_per_round = 24,
              .kernels_per_line = 1,
              .repetitions = 2},
    .soak = {.rounds = 100,
             .kernels_per_round = 16,
             .cases_per_round = 64,
             .kernels_per_line = 5,
             .repetitions = 10},
    .limits = {.products = 1 << 19, .depth = 700},
    .repeated_lines = {"gemm 80x48x272 a=s8:c out=s32", "gemm 144x80x400 a=e4m3 b=e5m2 out=bf16",
                       "gemm 72x40x136 a=f32 math=tf32"},
    .family = "sm90"};

// The same family, float32 multiplied in parts.
const DeviceUnderTest operand_parts{
    .device = "emulated:h200",
    .scale = {.rounds = 1,
              .kernels_per_round = 8,
              .cases_per_round = 24,
              .kernels_per_line = 1,
              .repetitions = 2},
    .soak = {.rounds = 50,
             .kernels_per_round = 16,
             .cases_per_round = 64,
             .kernels_per_line = 5,
             .repetitions = 10},
    .limits = {.products = 1 << 18, .depth = 400},
    .repeated_lines = {"gemm 72x40x136 a=f32:c math=bf16x9", "gemm 80x48x100 a=f32 math=tf32x3"},
    .family = "sm90",
    .words = {"wgmma-tf32x3", "wgmma-bf16x3", "wgmma-bf16x6", "wgmma-bf16x9"}};
INSTANTIATE_TEST_SUITE_P(Devices, DeviceConformance, testing::Values(h200, sm90, operand_parts));

}  // namespace
}  // namespace gemmery::conformance
