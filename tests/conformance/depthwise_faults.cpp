// SPDX-License-Identifier: Apache-2.0
// The faults of kernels of depthwise convolutions.
#include "tests/conformance/device_faults.hpp"

namespace gemmery::conformance {
namespace {

constexpr auto strips = SoundKernel::depthwise;
constexpr auto phases = SoundKernel::depthwise_phases;
constexpr auto sums = SoundKernel::depthwise_sums;
constexpr auto wgrad = SoundKernel::depthwise_wgrad;

constexpr Edit any_column{"static_cast<unsigned>(place) < params_.extent[2]", "true"};
constexpr Edit below_the_first{"static_cast<unsigned>(height) >= params_.extent[1]",
                               "height >= static_cast<int>(params_.extent[1])"};
constexpr Edit behind_the_last{"static_cast<unsigned>(height) >= params_.extent[1]",
                               "static_cast<unsigned>(height) > params_.extent[1]"};
constexpr Edit beyond_the_line{"static_cast<int>(min(left, static_cast<unsigned>(design.pixels)))",
                               "static_cast<int>(left > 0 ? design.pixels : 0)"};

constexpr DeviceFault fault_table[] = {
    {.name = "nothing", .kernel = strips},
    {.name = "pixels beside a line are read", .kernel = strips, .edits = {{any_column}}},
    {.name = "lines above the first are read", .kernel = strips, .edits = {{below_the_first}}},
    {.name = "lines below the last are read", .kernel = strips, .edits = {{behind_the_last}}},
    {.name = "strips reach into the next line", .kernel = strips, .edits = {{beyond_the_line}}},
    {.name = "every image is the first one",
     .kernel = strips,
     .edits = {{{"(strip.image * strides[0] + source_channel)", "source_channel"}}}},
    {.name = "taps of the line before are multiplied",
     .kernel = strips,
     .edits = {{{"(plane + tap_at(window, 1, r))", "(plane + tap_at(window, 1, 0))"}}}},
    {.name = "filters of the first channels serve all",
     .kernel = strips,
     .edits = {{{"first_channel + abi::channel_at(abi::value_of<design>(), in_tile)",
                 "abi::channel_at(abi::value_of<design>(), in_tile)"}}}},
    {.name = "filters are not waited for",
     .kernel = strips,
     .edits = {{{".store(params, first_channel);\n    __syncthreads();",
                 ".store(params, first_channel);"}}}},
    {.name = "the last strips of a share are left out",
     .kernel = strips,
     .edits = {{{"at < end; ++at", "at + 1 < end; ++at"}}}},
    {.name = "nothing", .kernel = phases},
    {.name = "phases begin at the first pixel",
     .kernel = phases,
     .edits = {{{"window.first_pixel[d] = found.first;", "window.first_pixel[d] = 0;"}}}},
    {.name = "taps of a phase are neighbours",
     .kernel = phases,
     .edits = {{{"window.tap_walk[d] *= static_cast<int>(along.tap_step.divisor);", ""}}}},
    {.name = "phases begin at the first tap",
     .kernel = phases,
     .edits = {{{"window.first_tap[d] += window.tap_walk[d] * static_cast<int>(found.tap);", ""}}}},
    {.name = "a phase's window is not waited for",
     .kernel = phases,
     .edits = {{{"params.phase_count.divisor, kept);\n  __syncthreads();",
                 "params.phase_count.divisor, kept);"}}}},
    {.name = "a window is made while others read it",
     .kernel = phases,
     .edits = {{{"params.phase_count.divide(tile);\n  __syncthreads();",
                 "params.phase_count.divide(tile);"}}}},
    {.name = "nothing", .kernel = sums},
    {.name = "reductions go on from share to share",
     .kernel = sums,
     .edits = {{{"finish.begin();", "if (unit == blockIdx.x) finish.begin();"}}}},
    {.name = "values of threads are not waited for",
     .kernel = sums,
     .edits = {{{"__syncthreads();\n#pragma unroll 1\n        for (int own",
                 "#pragma unroll 1\n        for (int own"}}}},
    {.name = "half of the strips are reduced",
     .kernel = sums,
     .edits = {{{"int thread = lane; thread < abi::depthwise_threads; thread += 32",
                 "int thread = lane; thread < abi::depthwise_threads / 2; thread += 32"}}}},
    {.name = "every share has the part of the first",
     .kernel = sums,
     .edits = {{{"Region{group, share, column,", "Region{group, 0, column,"}}}},
    {.name = "every lane has the first one's channels",
     .kernel = sums,
     .edits = {{{"__shfl_sync(0xffffffffU, value, owner)", "__shfl_sync(0xffffffffU, value, 0)"}}}},
    {.name = "nothing", .kernel = wgrad},
    {.name = "pixels beside a line are read", .kernel = wgrad, .edits = {{any_column}}},
    {.name = "lines above the first are read", .kernel = wgrad, .edits = {{below_the_first}}},
    {.name = "pixels of the next line of dy are read",
     .kernel = wgrad,
     .edits = {{beyond_the_line}}},
    {.name = "a warp's strips are half added up",
     .kernel = wgrad,
     .edits = {{{"distance < 32; distance *= 2", "distance < 16; distance *= 2"}}}},
    {.name = "the parts of warps are not waited for",
     .kernel = wgrad,
     .edits = {{{"block.accumulate();\n    __syncthreads();", "block.accumulate();"}}}},
    {.name = "the first slice is left out",
     .kernel = wgrad,
     .edits = {{{"unsigned slice = 0; slice < slices", "unsigned slice = 1; slice < slices"}}}},
    {.name = "parts are read before all blocks have written them",
     .kernel = wgrad,
     .edits = {{{"if (*flag + 1 != slices) return;", "if (*flag != 0) return;"}}}},
    {.name = "every tap is of the first chunk",
     .kernel = wgrad,
     .edits = {{{"(share_.tap[1] + row) * window.tap_step[1]", "row * window.tap_step[1]"}}}},
};

}  // namespace

std::span<const DeviceFault> depthwise_faults() noexcept { return fault_table; }

}  // namespace gemmery::conformance
