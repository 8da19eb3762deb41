// SPDX-License-Identifier: Apache-2.0
// Runs trials of one mutant.
#include "tests/conformance/fault_hunt.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <gemmery/gemmery.hpp>

#include "tests/conformance/device_mutants.hpp"
#include "tests/conformance/far_trial.hpp"
#include "tests/conformance/program_hunt.hpp"
#include "tests/conformance/suite.hpp"
#include "tests/support/moving_columns.hpp"

namespace gemmery::conformance {
namespace {

// The emulator takes a fraction of a microsecond for each warp instruction. Faults of sm90 kernels
// need several tiles, each of several blocks of k.
TrialLimits limits_on(Device device, SoundKernel kernel) {
  const bool is_small = is_simt(kernel);
  if (device.type == DeviceType::emulated && is_skinny(kernel))
    return {.products = 1 << 15, .depth = 1100, .device = device};
  if (device.type == DeviceType::emulated && is_mma_of_groups(kernel))
    return {.products = 1 << 15, .depth = 200, .device = device};
  if (device.type == DeviceType::emulated && is_mma(kernel))
    return {.products = 1 << 18, .depth = 700, .device = device};
  if (device.type == DeviceType::emulated)
    return {
        .products = is_small ? 1 << 15 : 1 << 21, .depth = is_small ? 100 : 400, .device = device};
  return {.products = 1 << 22, .depth = 1000, .device = device};
}

// Several tiles and blocks of k, all whole; partial tiles in all extents; rows of out that are not
// a multiple of 16 bytes; batches.
constexpr const char* simt_lines[] = {"gemm 96x64x100 a=f32", "gemm 70x45x33x2 a=f32"};
constexpr const char* group_lines[] = {
    "grouped_gemm 300x64x40 groups=70 ends=i64/align=8 a=f32",
    "grouped_gemm 64x300x40 groups=40 ragged=n counts=i32/align=4 a=f32",
    "grouped_gemm 64x40x200 groups=9 ragged=k a=f32",
    "grouped_gemm 300x260x40 groups=70 prefix=i32/align=8 outside=zero a=f32",
    "grouped_gemm 90x64x40 groups=5 masked=i32 outside=zero a=f32",
    "grouped_gemm 512x64x40 groups=4 labels=i32/align=128 outside=zero a=f32"};
constexpr const char* mma_group_lines[] = {
    "grouped_gemm 300x64x40 groups=70 ends=i64/align=8 a=bf16 out=f32",
    "grouped_gemm 64x304x40 groups=40 ragged=n counts=i32/align=8 a=bf16 out=f32",
    "grouped_gemm 64x40x200 groups=9 ragged=k ends=i32/align=8 a=bf16 out=f32",
    "grouped_gemm 640x64x40 groups=80 counts=i32 a=bf16 out=f32"};
// Groups of several tiles, so that most staging tiles are whole; groups whose columns end within a
// staging tile; tiles with one block of k.
constexpr const char* wgmma_group_lines[] = {
    "grouped_gemm 900x72x136 groups=40 ends=i64/align=8 a=bf16 out=f32",
    "grouped_gemm 136x704x136 groups=9 ragged=n counts=i32/align=8 a=bf16 out=f32",
    "grouped_gemm 136x72x600 groups=9 ragged=k ends=i32/align=8 a=bf16 out=f32",
    "grouped_gemm 1500x72x40 groups=40 ends=i32 a=bf16 out=f32",
    "grouped_gemm 1536x72x40 groups=5 labels=i64/align=128 a=bf16 out=f32"};
constexpr const char* wgmma_outside_lines[] = {
    "grouped_gemm 900x304x40 groups=40 prefix=i64/align=8 outside=zero a=bf16 out=f32",
    "grouped_gemm 136x704x40 groups=9 ragged=n counts=i32/align=8 outside=zero a=bf16 out=f32",
    "grouped_gemm 90x72x40 groups=5 masked=i32 outside=zero a=bf16 out=f32",
    "grouped_gemm 1536x72x40 groups=5 labels=i32/align=128 outside=zero a=bf16 out=f32"};
constexpr const char* wgmma_gather_lines[] = {
    "grouped_gemm 900x72x40 groups=40 ends=i64/align=8 gather=i64/of=1000/divide=3 a=bf16 out=f32",
    "grouped_gemm 300x72x264 groups=5 gather=i32/of=50 a=bf16 out=f32"};
constexpr const char* wgmma_scatter_lines[] = {
    "grouped_gemm 900x72x40 groups=40 ends=i64/align=8 scatter=i64/of=1000 a=bf16 out=f32 c=f32 "
    "beta=1",
    "grouped_gemm 300x70x136 groups=5 scatter=i32/of=250 a=bf16 b=bf16/ld=72 out=f32/ld=72 c=f32 "
    "beta=0.5"};
constexpr const char* mma_table_lines[] = {
    "grouped_gemm 300x64x40 groups=70 ends=i64/host/align=8 a=bf16 out=f32",
    "grouped_gemm 64x304x40 groups=40 ragged=n counts=i32/host/align=8 a=bf16 out=f32",
    "grouped_gemm 64x40x200 groups=9 ragged=k ends=i32/host/align=8 a=bf16 out=f32"};
constexpr const char* mma_indexed_lines[] = {
    "grouped_gemm 300x64x40 groups=70 ends=i64/align=8 gather=i64/of=100/divide=3 "
    "scatter=i64/of=500 a=bf16 out=f32",
    "grouped_gemm 640x40x200 groups=9 gather=i32/of=37 scatter=i32/of=700 a=bf16 out=f32",
    "grouped_gemm 96x64x264 groups=3 gather=i32/of=37 a=bf16 out=f32"};
constexpr const char* mma_outside_lines[] = {
    "grouped_gemm 300x64x33 groups=70 ends=i64/align=8 gather=i64/of=100/divide=3 outside=zero "
    "a=bf16 b=bf16/ld=64 out=f32",
    "grouped_gemm 200x264x35 groups=9 counts=i32/align=16 gather=i32/of=37 outside=zero a=bf16 "
    "out=f32"};
constexpr const char* fprop_lines[] = {
    "conv2d_fprop 2x9x11x5 k=35 r=3 s=3 pad=2:1,1:2 stride=2,1 dilation=1,2 a=f32",
    "conv3d_fprop 3x3x5x6x3 k=7 t=2 r=3 s=2 pad=1 mode=convolution a=f32/ld=5"};
constexpr const char* dgrad_lines[] = {
    "conv2d_dgrad 2x9x11x5 k=11 r=3 s=2 pad=2:1,1:0 dilation=1,2 a=f32",
    "conv3d_dgrad 3x3x5x6x3 k=7 t=2 r=3 s=2 pad=1 a=f32/ld=9"};
constexpr const char* wgrad_lines[] = {
    "conv2d_wgrad 2x9x11x5 k=11 r=3 s=3 pad=2:1,1:2 stride=2,1 dilation=1,2 a=f32",
    "conv3d_wgrad 3x3x5x6x3 k=7 t=2 r=3 s=2 pad=1 a=f32 b=f32/ld=5"};
constexpr const char* mma_fprop_lines[] = {
    "conv2d_fprop 2x9x11x72 k=40 r=3 s=3 pad=2:1,1:2 stride=2,1 dilation=1,2 a=bf16 out=f32",
    "conv2d_fprop 2x7x6x16 k=160 r=2 s=3 pad=1 groups=2 mode=convolution a=bf16/ld=24 out=f32"};
constexpr const char* mma_dgrad_lines[] = {
    "conv2d_dgrad 2x9x11x72 k=104 r=3 s=3 pad=2:1,1:2 dilation=1,2 a=bf16 out=f32",
    "conv2d_dgrad 2x7x6x80 k=128 r=3 s=3 pad=1 groups=2 mode=convolution a=bf16 out=f32"};
constexpr const char* mma_wgrad_lines[] = {
    "conv2d_wgrad 2x9x11x24 k=72 r=3 s=3 pad=2:1,1:2 stride=2,1 dilation=1,2 a=bf16 out=f32",
    "conv2d_wgrad 5x7x6x16 k=48 r=2 s=3 pad=1 groups=2 a=bf16 b=bf16/ld=24 out=f32"};
constexpr const char* mma_element_lines[] = {
    "conv2d_fprop 2x9x11x23 k=40 r=3 s=3 pad=2:1,1:2 stride=2,1 dilation=1,2 a=bf16 out=f32",
    "conv2d_fprop 2x7x6x14 k=30 r=3 s=3 pad=1 groups=2 mode=convolution a=bf16/ld=15 out=f32"};
constexpr const char* mma_byte_lines[] = {
    "conv2d_wgrad 5x9x11x32 k=80 r=3 s=3 pad=2:1,1:2 stride=2,1 dilation=1,2 a=s8 out=s32",
    "conv2d_wgrad 5x7x6x32 k=64 r=2 s=3 pad=1 groups=2 a=s8 b=s8/ld=48 out=s32"};
constexpr const char* mma_phase_lines[] = {
    "conv2d_dgrad 2x9x11x72 k=72 r=3 s=3 pad=1 stride=2 a=bf16 out=f32",
    "conv2d_dgrad 3x17x16x24 k=40 r=3 s=3 pad=2:1,1:0 stride=3,2 dilation=3,2 a=bf16 out=f32"};
constexpr const char* wgmma_fprop_lines[] = {
    "conv2d_fprop 2x9x11x72 k=40 r=3 s=3 pad=2:1,1:2 stride=2,1 dilation=1,2 a=bf16 out=f32",
    "conv2d_fprop 2x7x6x128 k=160 r=2 s=3 pad=1 groups=2 mode=convolution a=bf16 out=f32",
    "conv2d_fprop 3x9x9x64 k=40 r=3 s=3 pad=1 batch=images a=bf16/ld=72 out=f32"};
constexpr const char* wgmma_dgrad_lines[] = {
    "conv2d_dgrad 2x9x11x72 k=104 r=3 s=3 pad=2:1,1:2 dilation=1,2 a=bf16 out=f32",
    "conv2d_dgrad 2x7x6x80 k=128 r=3 s=3 pad=1 groups=2 mode=convolution a=bf16 out=f32"};
constexpr const char* wgmma_wgrad_lines[] = {
    "conv2d_wgrad 2x9x11x64 k=72 r=3 s=3 pad=2:1,1:2 stride=2,1 dilation=1,2 a=bf16 out=f32",
    "conv2d_wgrad 2x7x6x128 k=48 r=2 s=3 pad=1 groups=2 a=bf16 b=bf16/ld=136 out=f32"};
constexpr const char* wgmma_phase_lines[] = {
    "conv2d_dgrad 2x9x11x72 k=72 r=3 s=3 pad=1 stride=2 a=bf16 out=f32 c=f32 beta=1",
    "conv2d_dgrad 3x7x6x64 k=40 r=3 s=3 pad=2:1,1:0 stride=3,2 dilation=1,2 a=bf16 out=f32 "
    "c=f32 beta=1"};
constexpr const char* wgmma_tap_lines[] = {
    "conv2d_wgrad 2x9x11x40 k=72 r=3 s=3 pad=1 stride=2 a=bf16 out=f32",
    "conv2d_wgrad 2x7x6x144 k=48 r=2 s=3 pad=1 groups=2 a=bf16 out=f32"};
// Lines that are not a multiple of a strip, two tiles of channels, single channels.
constexpr const char* depthwise_lines[] = {
    "conv2d_fprop 3x19x21x32 k=32 r=3 s=3 pad=2:1,1:2 dilation=2,1 groups=32 a=f32",
    "conv2d_fprop 2x9x11x19 k=38 r=2 s=3 pad=1 groups=19 mode=convolution a=f32"};
constexpr const char* depthwise_phase_lines[] = {
    "conv2d_dgrad 3x19x21x32 k=32 r=3 s=3 pad=2:1,1:2 stride=2 groups=32 a=f32",
    "conv2d_dgrad 2x17x16x19 k=19 r=4 s=5 pad=2 stride=3,2 groups=19 mode=convolution a=f32"};
constexpr const char* depthwise_wgrad_lines[] = {
    "conv2d_wgrad 5x19x21x32 k=32 r=3 s=3 pad=2:1,1:2 stride=2,1 groups=32 a=f32",
    "conv2d_wgrad 5x9x11x19 k=38 r=3 s=4 pad=1 groups=19 a=f32"};
// Lists that include single rows and columns, and operands of both layouts.
constexpr const char* list_lines[] = {
    "grouped_gemm 90x64x40 groups=9 list=host a=f32",
    "grouped_gemm 64x90x40 groups=40 list=host a=f32:c b=f32:c out=f32:c"};
constexpr const char* mma_list_lines[] = {
    "grouped_gemm 90x64x40 groups=9 list=host a=bf16 b=bf16 out=f32",
    "grouped_gemm 64x96x72 groups=40 list=host a=bf16 b=bf16 out=f32:c"};
constexpr const char* wgmma_rounded_lines[] = {
    "grouped_gemm 900x72x40 groups=40 ends=i64/align=8 gather=i64/of=1000/divide=3 outside=zero "
    "a=f32 b=f32:c math=tf32",
    "grouped_gemm 300x72x136 groups=5 gather=i32/of=50 outside=zero a=f32 b=f32:c math=tf32"};
// Lists that include problems of several tiles, and problems with K = 0.
constexpr const char* wgmma_list_lines[] = {
    "grouped_gemm 300x70x136 groups=9 list=host a=bf16 b=bf16/ld=72 out=f32 c=f32 beta=0.5",
    "grouped_gemm 70x136x3 groups=40 list=host a=bf16/ld=8 out=f32 c=f32:c beta=1"};
constexpr const char* indexed_lines[] = {
    "grouped_gemm 300x64x40 groups=70 ends=i64/align=8 gather=i64/of=100/divide=3 "
    "scatter=i64/of=500 a=f32",
    "grouped_gemm 200x45x33 groups=9 gather=i32/of=37 scatter=i32/of=150 a=f32"};
constexpr const char* chained_lines[] = {"gemm 512x256x512 a=bf16", "gemm 200x136x200x2 a=bf16"};
// Five blocks of k, or ten, for each block of a cluster: five slices.
constexpr const char* cluster_part_lines[] = {"gemm 256x256x1280 a=bf16",
                                              "gemm 200x136x600x2 a=bf16"};
constexpr const char* split_lines[] = {"gemm 192x64x212 a=f32 math=f16x3",
                                       "gemm 70x44x132x2 a=f32 math=f16x3"};
constexpr const char* skinny_lines[] = {"gemm 4x96x1025 a=f32/ld=1028 b=f32:c/ld=1028",
                                        "gemm 3x67x1210x2 a=f32/ld=1212 b=f32:c/ld=1212"};
constexpr const char* skinny_column_lines[] = {"gemm 4x96x1025 a=f32", "gemm 3x68x1210x2 a=f32"};
constexpr const char* sm90_lines[] = {"gemm 512x256x512 a=bf16 out=f32",
                                      "gemm 200x136x200x2 a=bf16 out=f32",
                                      "gemm 130x67x152x2 a=bf16 b=bf16/strides=72,1 out=f32/ld=68"};
constexpr const char* far_lines[] = {"gemm 512x256x512 a=bf16 out=f32 c=f32 beta=1",
                                     "gemm 200x136x200x2 a=bf16 out=f32 c=f32 beta=0.5"};
// More matrices than blocks, each of at most one tile; matrices of several tiles, and a strided
// operand.
constexpr const char* pointer_lines[] = {
    "gemm 96x56x136x7 a=bf16/pointers b=bf16/pointers out=f32/pointers c=f32/pointers beta=0.5",
    "gemm 200x136x200x3 a=bf16 b=bf16/pointers out=f32/pointers c=f32 beta=1",
    "gemm 130x67x152x4 a=bf16/pointers b=bf16/strides=72,1 out=f32/ld=68 "
    "c=f32/ld=68/pointers beta=1"};
constexpr const char* transposed_lines[] = {"gemm 512x256x768 a=s8:c out=s32",
                                            "gemm 208x144x208x2 a=s8:c out=s32"};
// Odd numbers of columns of out, which end within a pair of rows of out^T.
constexpr const char* register_lines[] = {"gemm 512x256x768 a=s8 out=s32",
                                          "gemm 201x135x208x2 a=s8 b=s8/ld=144 out=s32/ld=140"};
constexpr const char* decoded_lines[] = {"gemm 512x256x768 a=bf16 b=e4m3:c out=f32",
                                         "gemm 201x136x208x2 a=bf16 b=e4m3:c out=f32"};
// Groups end within tiles, among columns of out^T.
constexpr const char* decoded_group_lines[] = {
    "grouped_gemm 900x136x144 groups=40 ends=i64 a=bf16 b=e4m3:c scale_b=f32[1x32] out=f32",
    "grouped_gemm 300x200x208 groups=7 masked=i32 a=bf16 b=e4m3:c scale_b=f32[3x64] out=f32"};
constexpr const char* promoted_lines[] = {"gemm 512x256x768 a=e4m3 b=e5m2:c out=f32",
                                          "gemm 200x136x208x2 a=e4m3 b=e5m2:c out=f32"};
constexpr const char* promoted_part_lines[] = {"gemm 512x256x768 a=e4m3 b=e5m2:c out=bf16",
                                               "gemm 200x136x208x2 a=e4m3 b=e5m2:c out=bf16"};
constexpr const char* scaled_lines[] = {
    "gemm 512x256x768 a=e4m3 b=e5m2:c scale_a=e8m0[1x32]:m scale_b=e8m0[1x32]:swizzled out=f32",
    "gemm 200x136x208x2 a=e4m3 b=e5m2:c scale_a=e8m0[3x64] scale_b=e8m0[1x32]:swizzled out=f32"};
constexpr const char* scaled_group_lines[] = {
    "grouped_gemm 136x72x608 groups=5 ragged=k ends=i32/align=32 a=e4m3 b=e5m2:c "
    "scale_a=e8m0[1x32]:m scale_b=e8m0[1x32]:swizzled out=f32",
    "grouped_gemm 900x72x144 groups=40 ends=i64 a=e4m3 b=e5m2:c scale_a=e8m0[1x64] "
    "scale_b=e8m0[1x32]:swizzled out=f32"};
// Small K, so that the third parts exceed the error bound of sums.
constexpr const char* bf16_part_lines[] = {"gemm 512x256x300 a=f32 math=bf16x9",
                                           "gemm 200x136x4x2 a=f32 math=bf16x9"};
constexpr const char* tf32_part_lines[] = {"gemm 512x256x300 a=f32:c math=tf32x3",
                                           "gemm 200x136x4x2 a=f32:c math=tf32x3"};
constexpr Extents program_extents[] = {{512, 512, 256, 1}, {330, 264, 200, 2}};

// Whether its launches can be chained: out and A have the same type.
bool is_chained(SoundKernel kernel) {
  return kernel == SoundKernel::chained ||
         (has_parts(kernel) && kernel != SoundKernel::promoted_parts &&
          kernel != SoundKernel::transposed_parts);
}

// Runs a chain of launches, each of which reads the previous result.
std::string hunt_in_chain(const Kernel& kernel, Device device, std::uint64_t seed) try {
  const OwnedStream stream(device);
  const bool is_emulated = device.type == DeviceType::emulated;
  // With three slices of k, each block has some second slices. The slices of a tile are as many
  // blocks apart as there are tiles, and few blocks run at a time on the emulator, so a problem
  // with serial slices has one tile.
  const bool has_slices = has_parts(fault_of(kernel).kernel);
  const std::int64_t emulated_rows = has_slices ? 72 : 136;
  const std::int64_t emulated_columns = has_slices ? 136 : 72;
  const tests::MovingColumns columns(is_emulated ? emulated_rows : 1032,
                                     is_emulated ? emulated_columns : 264, seed, stream);
  const std::int64_t launches = is_emulated ? 4 : 400;
  const Artifact artifact = kernel.compile(columns.forth());
  PreparedLaunch forth = artifact.bind(columns.forth());
  PreparedLaunch back = artifact.bind(columns.back());
  for (std::int64_t launch = 0; launch < launches; ++launch) {
    if (is_emulated) {  // Launches of one size and one seed are all scheduled alike.
      synchronize(stream);
      set_emulator_seed(seed + static_cast<std::uint64_t>(launch));
    }
    (launch % 2 == 0 ? forth : back).launch(stream);
  }
  const std::int64_t wrong = columns.count_wrong(launches);
  return wrong == 0 ? "" : fmt::format("{} numbers wrong after {} launches", wrong, launches);
} catch (const Error& error) {
  return fmt::format("threw: {}", error.what());
}

// Searches with operands whose elements are far apart.
std::string hunt_far_away(const Kernel& kernel, const Hunt& hunt) {
  Choices choices(hunt.seed);
  const FarExtents extents{.m = 72, .n = 72, .k = 72, .l = 2};
  for (const FarCase& far : far_cases()) {
    const FarTrial trial(far, extents, DType::bfloat16, hunt.device, choices);
    if (!kernel.supports(trial.arguments())) continue;
    const std::string found = trial.run(kernel);
    if (!found.empty()) return fmt::format("{}: {}", far.name, found);
  }
  return {};
}

// Searches in convolutions, which the suite does not draw.
std::string hunt_in_convolutions(const Kernel& kernel, const Hunt& hunt) try {
  return hunt_at_edges(kernel, hunt.device, hunt.seed);
} catch (const Error& error) {
  return error.what();
}

// --- the problems of each kernel -----------------------------------------------------------------

struct EdgeProblems {
  SoundKernel kernel;
  std::span<const char* const> lines;
};
const EdgeProblems edge_problems[] = {
    {SoundKernel::simt, simt_lines},
    {SoundKernel::groups, group_lines},
    {SoundKernel::conv_fprop, fprop_lines},
    {SoundKernel::conv_dgrad, dgrad_lines},
    {SoundKernel::conv_wgrad, wgrad_lines},
    {SoundKernel::wgmma_fprop, wgmma_fprop_lines},
    {SoundKernel::wgmma_dgrad, wgmma_dgrad_lines},
    {SoundKernel::wgmma_wgrad, wgmma_wgrad_lines},
    {SoundKernel::wgmma_phases, wgmma_phase_lines},
    {SoundKernel::wgmma_taps, wgmma_tap_lines},
    {SoundKernel::depthwise, depthwise_lines},
    {SoundKernel::depthwise_phases, depthwise_phase_lines},
    {SoundKernel::depthwise_wgrad, depthwise_wgrad_lines},
    {SoundKernel::mma_fprop, mma_fprop_lines},
    {SoundKernel::mma_dgrad, mma_dgrad_lines},
    {SoundKernel::mma_wgrad, mma_wgrad_lines},
    {SoundKernel::mma_elements, mma_element_lines},
    {SoundKernel::mma_bytes, mma_byte_lines},
    {SoundKernel::mma_phases, mma_phase_lines},
    {SoundKernel::mma_table, mma_table_lines},
    {SoundKernel::listed, list_lines},
    {SoundKernel::mma_listed, mma_list_lines},
    {SoundKernel::mma_indexed, mma_indexed_lines},
    {SoundKernel::mma_outside, mma_outside_lines},
    {SoundKernel::wgmma_groups, wgmma_group_lines},
    {SoundKernel::wgmma_gather, wgmma_gather_lines},
    {SoundKernel::wgmma_rounded, wgmma_rounded_lines},
    {SoundKernel::wgmma_listed, wgmma_list_lines},
    {SoundKernel::wgmma_scatter, wgmma_scatter_lines},
    {SoundKernel::wgmma_outside, wgmma_outside_lines},
    {SoundKernel::indexed_groups, indexed_lines},
    {SoundKernel::mma_narrow, split_lines},
    {SoundKernel::skinny_columns, skinny_column_lines},
    {SoundKernel::pointers, pointer_lines},
    {SoundKernel::transposed, transposed_lines},
    {SoundKernel::transposed_parts, transposed_lines},
    {SoundKernel::registers, register_lines},
    {SoundKernel::decoded, decoded_lines},
    {SoundKernel::decoded_groups, decoded_group_lines},
    {SoundKernel::bf16_parts, bf16_part_lines},
    {SoundKernel::tf32_parts, tf32_part_lines},
    {SoundKernel::scaled_groups, scaled_group_lines},
    {SoundKernel::scaled, scaled_lines},
    {SoundKernel::promoted, promoted_lines},
    {SoundKernel::far, far_lines},
    {SoundKernel::promoted_parts, promoted_part_lines},
    {SoundKernel::cluster_parts, cluster_part_lines},
};

// Of kernels of which there are several with the same problems.
std::span<const char* const> lines_of_kin(SoundKernel kernel) {
  if (is_mma_of_groups(kernel)) return mma_group_lines;
  if (is_skinny(kernel)) return skinny_lines;
  if (is_chained(kernel)) return chained_lines;
  return sm90_lines;
}

}  // namespace

std::string hunt_at_random(const Kernel& kernel, const Hunt& hunt) {
  const SoundKernel sound = fault_of(kernel).kernel;
  if (is_of_convolutions(sound)) return hunt_in_convolutions(kernel, hunt);
  if (kernel.epilogue() != default_epilogue) return hunt_with_program(kernel, hunt);
  if (sound == SoundKernel::far) return hunt_far_away(kernel, hunt);
  for (std::int64_t cases = hunt.first_cases; cases <= hunt.most_cases; cases *= 2) {
    const std::uint64_t seed = hunt.seed + static_cast<std::uint64_t>(cases);
    set_emulator_seed(seed);
    if (is_chained(sound)) {
      std::string found = hunt_in_chain(kernel, hunt.device, seed);
      if (!found.empty()) return found;
    }
    const SuiteReport report = run_suite({.kernels = {kernel},
                                          .cases = cases,
                                          .seed = seed,
                                          .threads = 1,
                                          .limits = limits_on(hunt.device, sound),
                                          .asks_others = false});
    if (report.mismatches() == 0) continue;
    const std::string& failure = report.failures.front();
    return fmt::format("within {} cases: {}", cases, failure.substr(failure.find("\n    ") + 5));
  }
  return {};
}

std::vector<std::string> edge_lines(SoundKernel kernel) {
  if (kernel == SoundKernel::depthwise_sums)
    return {program_line(kernel, {1, 32, 1, 2}), program_line(kernel, {1, 19, 1, 1})};
  const auto* const own = std::ranges::find(edge_problems, kernel, &EdgeProblems::kernel);
  if (own == std::end(edge_problems) && !program_of(kernel).text.empty()) {
    std::vector<std::string> lines;
    for (const Extents& extents : program_extents) lines.push_back(program_line(kernel, extents));
    return lines;
  }
  const auto lines = own == std::end(edge_problems) ? lines_of_kin(kernel) : own->lines;
  return {lines.begin(), lines.end()};
}

std::string hunt_at_edges(const Kernel& kernel, Device device, std::uint64_t seed) {
  // Small integers equal their first part, so the other parts would be 0.
  const SoundKernel sound = fault_of(kernel).kernel;
  const bool has_parts_of_numbers =
      sound == SoundKernel::bf16_parts || sound == SoundKernel::tf32_parts;
  const Fill fill = has_parts_of_numbers ? Fill::normal : Fill::integers;
  const auto hunt_in = [&](const std::string& text) -> std::string {
    const VerifyReport report =
        verify(parse_problem(text), kernel,
               {.fill = fill, .seed = seed, .guard_bands = false, .device = device});
    return report.passed ? "" : fmt::format("{}: {}", text, report.first_failure);
  };
  std::string found;
  for (const std::string& text : edge_lines(fault_of(kernel).kernel)) {
    found = hunt_in(text);
    if (!found.empty()) return found;
  }
  return found;
}

}  // namespace gemmery::conformance
