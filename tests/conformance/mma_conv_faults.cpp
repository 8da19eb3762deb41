// SPDX-License-Identifier: Apache-2.0
// The faults of sm80 kernels that find elements by pixel and tap.
#include "tests/conformance/device_faults.hpp"

namespace gemmery::conformance {
namespace {

constexpr auto fprop = SoundKernel::mma_fprop;
constexpr auto dgrad = SoundKernel::mma_dgrad;
constexpr auto wgrad = SoundKernel::mma_wgrad;
constexpr auto elements = SoundKernel::mma_elements;
constexpr auto bytes = SoundKernel::mma_bytes;
constexpr auto phases = SoundKernel::mma_phases;

constexpr Edit row_behind_the_last{"static_cast<unsigned>(coordinate) < window_.extent[d]",
                                   "static_cast<unsigned>(coordinate) <= window_.extent[d]"};
constexpr Edit taps_never_change{"channels_left_ -= operand.k;", ""};

constexpr DeviceFault fault_table[] = {
    {.name = "nothing", .kernel = fprop},
    {.name = "what lies before the first pixel is read",
     .kernel = fprop,
     .edits = {{{"static_cast<unsigned>(coordinate) < window_.extent[d]",
                 "coordinate < static_cast<int>(window_.extent[d])"}}}},
    {.name = "what lies behind the last pixel is read",
     .kernel = fprop,
     .edits = {{row_behind_the_last}}},
    {.name = "rows keep the tap of the first block",
     .kernel = fprop,
     .edits = {{taps_never_change}}},
    {.name = "every block of a tap has its first channels",
     .kernel = fprop,
     .edits = {{{"tap_bytes_ += operand.k * bytes;", ""}}}},
    {.name = "rows are read before their pixels are known",
     .kernel = fprop,
     .edits = {{{"abi::bytes_of(operand.dtype)));\n    __syncthreads();",
                 "abi::bytes_of(operand.dtype)));"}}}},
    {.name = "taps begin at the first channel",
     .kernel = fprop,
     .edits = {{{"tap_bytes_ = offset_of_tap<dimensions>(window_, tap) * bytes;",
                 "tap_bytes_ = (offset_of_tap<dimensions>(window_, tap) - tap.offset) * bytes;"}}}},
    {.name = "nothing", .kernel = dgrad},
    {.name = "what lies behind the last pixel is read",
     .kernel = dgrad,
     .edits = {{row_behind_the_last}}},
    {.name = "lines of the next tap are taken for those of this one",
     .kernel = dgrad,
     .edits = {{{"if (left_ > span)\n", "if (left_ > 0)\n"}}}},
    {.name = "every block of a tap has its first filters",
     .kernel = dgrad,
     .edits = {{{"line_ += operand.k * step_bytes_;", ""}}}},
    {.name = "nothing", .kernel = wgrad},
    {.name = "what lies behind the last pixel is read",
     .kernel = wgrad,
     .edits = {{{"< this->window_.extent[d]", "<= this->window_.extent[d]"}}}},
    {.name = "a row of pixels has one more",
     .kernel = wgrad,
     .edits = {{{"if (at[d] < end_[d]) continue;", "if (at[d] <= end_[d]) continue;"}}}},
    {.name = "the next row of pixels is the same one",
     .kernel = wgrad,
     .edits = {{{"if (d > outer) at[d - 1] += window.step[d - 1];", ""}}}},
    {.name = "carries do not move the address",
     .kernel = wgrad,
     .edits = {{{"bytes += bytes_of_carry_[d];", ""}}}},
    {.name = "nothing", .kernel = elements},
    {.name = "taps of a block are read before they are known",
     .kernel = elements,
     .edits = {{{"__syncthreads();\n    const int chunk", "const int chunk"}}}},
    {.name = "taps are replaced while they are read",
     .kernel = elements,
     .edits = {{{"__syncthreads();\n#pragma unroll 1\n    for (int k = thread",
                 "#pragma unroll 1\n    for (int k = thread"}}}},
    {.name = "every chunk has the taps of the first one",
     .kernel = elements,
     .edits = {{{"taps_.get(at * Units::along + along.chunk)", "taps_.get(at * Units::along)"}}}},
    {.name = "nothing", .kernel = bytes},
    {.name = "all lines of bytes are the first one",
     .kernel = bytes,
     .edits = {{{"first_lane_ + static_cast<unsigned>(index % sharers)", "first_lane_"}}}},
    {.name = "lines of bytes behind the last pixel are read",
     .kernel = bytes,
     .edits = {{{"lines.get(at), at < left, along)", "lines.get(at), true, along)"}}}},
    {.name = "bytes in padding are read",
     .kernel = bytes,
     .edits = {{{"static_cast<unsigned>(line.at[d] + place.at[d]) < window.extent[d]",
                 "static_cast<unsigned>(line.at[d] + place.at[d]) <= window.extent[d]"}}}},
    {.name = "nothing", .kernel = phases},
    {.name = "phases meet dy at its first pixel",
     .kernel = phases,
     .edits = {{{"kept.a.origin[d] = found.origin;", "kept.a.origin[d] = 0;"}}}},
    {.name = "pixels that no tap reaches meet the first taps",
     .kernel = phases,
     .edits = {{{"if (multiple * along.common.divisor != rest) return phase;", ""}}}},
    {.name = "a phase meets every tap",
     .kernel = phases,
     .edits = {{{"const auto step = static_cast<int>(along.tap_step.divisor);",
                 "const int step = 1;"}}}},
    {.name = "every phase stores the pixels of the first",
     .kernel = phases,
     .edits = {{{"pixel += (here * along.stride.divisor + kept.first[d]) * scale;",
                 "pixel += here * along.stride.divisor * scale;"}}}},
    {.name = "the phase is read before it is known",
     .kernel = phases,
     .edits = {{{"keep_phase(kept, params, phase);\n  __syncthreads();",
                 "keep_phase(kept, params, phase);"}}}},
};

}  // namespace

std::span<const DeviceFault> mma_conv_faults() noexcept { return fault_table; }

}  // namespace gemmery::conformance
