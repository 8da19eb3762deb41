// SPDX-License-Identifier: Apache-2.0
// The faults of simt kernels that find elements by pixel and tap.
#include "tests/conformance/device_faults.hpp"

namespace gemmery::conformance {
namespace {

constexpr auto fprop = SoundKernel::conv_fprop;
constexpr auto dgrad = SoundKernel::conv_dgrad;
constexpr auto wgrad = SoundKernel::conv_wgrad;

constexpr Edit below_the_first{"static_cast<unsigned>(coordinate) < window.extent[d]",
                               "coordinate < static_cast<int>(window.extent[d])"};
constexpr Edit behind_the_last{"static_cast<unsigned>(coordinate) < window.extent[d]",
                               "static_cast<unsigned>(coordinate) <= window.extent[d]"};
constexpr Edit last_dimension_alone{
    "is_inside = is_inside && static_cast<unsigned>(coordinate) < window.extent[d];",
    "is_inside = static_cast<unsigned>(coordinate) < window.extent[d];"};
constexpr Edit beyond_the_tile{"is_inside && extent < extent_left_ && k < k_left",
                               "is_inside && k < k_left"};
constexpr Edit beyond_k{"is_inside && extent < extent_left_ && k < k_left",
                        "is_inside && extent < extent_left_"};
constexpr Edit first_block_again{"first_k_ += plan.k_elements;\n      return;", "return;"};

constexpr DeviceFault fault_table[] = {
    {.name = "nothing", .kernel = fprop},
    {.name = "what lies before the first pixel is read",
     .kernel = fprop,
     .edits = {{below_the_first}}},
    {.name = "what lies behind the last pixel is read",
     .kernel = fprop,
     .edits = {{behind_the_last}}},
    {.name = "padding above and below is read", .kernel = fprop, .edits = {{last_dimension_alone}}},
    {.name = "pixels beyond the last image are read",
     .kernel = fprop,
     .edits = {{beyond_the_tile}}},
    {.name = "every block of k is the first one", .kernel = fprop, .edits = {{first_block_again}}},
    {.name = "every image is the first one",
     .kernel = fprop,
     .edits = {{{"part.offset = index * window.image_stride;", "part.offset = 0;"}}}},
    {.name = "channels are counted on in the next tap",
     .kernel = fprop,
     .edits = {{{"part.offset = (index - tap * window.taps[2].divisor) * window.channel_stride;",
                 "part.offset = index * window.channel_stride;"}}}},
    {.name = "taps are neighbours along height",
     .kernel = fprop,
     .edits = {{{"* window.tap_step[1];", ";", true}}}},
    {.name = "nothing", .kernel = dgrad},
    {.name = "what lies before the first pixel is read",
     .kernel = dgrad,
     .edits = {{below_the_first}}},
    {.name = "what lies behind the last pixel is read",
     .kernel = dgrad,
     .edits = {{behind_the_last}}},
    {.name = "filters of the first tap serve all",
     .kernel = dgrad,
     .edits = {{{"sum += coordinate * window.strides[d];", ""}}}},
    {.name = "nothing", .kernel = wgrad},
    {.name = "what lies before the first pixel is read",
     .kernel = wgrad,
     .edits = {{below_the_first}}},
    {.name = "what lies behind the last pixel is read",
     .kernel = wgrad,
     .edits = {{behind_the_last}}},
    {.name = "pixels beyond the last image are read", .kernel = wgrad, .edits = {{beyond_k}}},
    {.name = "every block of pixels is the first one",
     .kernel = wgrad,
     .edits = {{first_block_again}}},
};

}  // namespace

std::span<const DeviceFault> conv_faults() noexcept { return fault_table; }

}  // namespace gemmery::conformance
