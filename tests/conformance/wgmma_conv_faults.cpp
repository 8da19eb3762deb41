// SPDX-License-Identifier: Apache-2.0
// The faults of sm90 kernels that load images in im2col mode.
#include "tests/conformance/device_faults.hpp"

namespace gemmery::conformance {
namespace {

constexpr auto fprop = SoundKernel::wgmma_fprop;
constexpr auto dgrad = SoundKernel::wgmma_dgrad;
constexpr auto wgrad = SoundKernel::wgmma_wgrad;
constexpr auto phases = SoundKernel::wgmma_phases;
constexpr auto taps = SoundKernel::wgmma_taps;

constexpr Edit offset_of_another_tap{"window.first_offset[d] + step * window.offset_step[d]",
                                     "window.first_offset[d] + (step ^ 1) * window.offset_step[d]"};
constexpr Edit offsets_exchanged{"place.offset[2 - d] =", "place.offset[d - 1] ="};
constexpr Edit images_not_told_apart{"first.image = static_cast<int>(pixel);", "first.image = 0;"};
constexpr Edit no_step{"first.at[2 - d] * window.step[d] + window.lower[d]",
                       "first.at[2 - d] + window.lower[d]"};
constexpr Edit padding_unknown{"first.at[2 - d] * window.step[d] + window.lower[d]",
                               "first.at[2 - d] * window.step[d]"};
constexpr Edit channels_go_on{
    "place.channel = static_cast<int>(index - tap * window.taps[2].divisor);",
    "place.channel = static_cast<int>(index);"};

constexpr DeviceFault fault_table[] = {
    {.name = "nothing", .kernel = fprop},
    {.name = "the pixel box begins a pixel later", .kernel = fprop, .maps_a_later_corner = true},
    {.name = "offsets of another tap", .kernel = fprop, .edits = {{offset_of_another_tap}}},
    {.name = "offsets along width and height are exchanged",
     .kernel = fprop,
     .edits = {{offsets_exchanged}}},
    {.name = "a copy begins at the pixel of the next row",
     .kernel = fprop,
     .edits = {{{"place.row + first + copy * Sources::rows", "place.row + first + copy + 1"}}}},
    {.name = "both blocks of a pair load the first pixels",
     .kernel = fprop,
     .edits = {{{"design.cluster_n > 1 ? rank_ * Sources::rows : 0", "rank_ * 0"}}}},
    {.name = "pixels step by one", .kernel = fprop, .edits = {{no_step}}},
    {.name = "first taps lie in no padding", .kernel = fprop, .edits = {{padding_unknown}}},
    {.name = "images are not told apart", .kernel = fprop, .edits = {{images_not_told_apart}}},
    {.name = "an image of a batch is the first one",
     .kernel = fprop,
     .edits = {{{"first.image += static_cast<int>(batch * window.batch_images);", ""}}}},
    {.name = "every tap of a filter is the first one",
     .kernel = fprop,
     .edits = {{{"place.in_filter += step * filters.step[d];", ""}}}},
    {.name = "channels are counted on in the next tap",
     .kernel = fprop,
     .edits = {{channels_go_on}}},
    {.name = "channels of a group are those of the first",
     .kernel = fprop,
     .edits = {{{"window.first_channel + static_cast<int>(batch * window.batch_channels)",
                 "window.first_channel"}}}},
    {.name = "filters of a group are those of the first",
     .kernel = fprop,
     .edits = {{{"static_cast<int>(batch * filters.batch_groups)", "0"}}}},
    {.name = "nothing", .kernel = dgrad},
    {.name = "the pixel box begins a pixel later", .kernel = dgrad, .maps_a_later_corner = true},
    {.name = "offsets of another tap", .kernel = dgrad, .edits = {{offset_of_another_tap}}},
    {.name = "blocks of k behind the last tap read the first",
     .kernel = dgrad,
     .edits = {{{"place.channel = abi::TmaWindow::beyond_channels;", ""}}}},
    {.name = "filters of every block of k are the first ones",
     .kernel = dgrad,
     .edits = {{{".near = tap.channel + static_cast<int>(k),", ".near = static_cast<int>(k),"}}}},
    {.name = "nothing", .kernel = wgrad},
    {.name = "the pixel box begins a pixel later", .kernel = wgrad, .maps_a_later_corner = true},
    {.name = "offsets of another tap", .kernel = wgrad, .edits = {{offset_of_another_tap}}},
    {.name = "images are not told apart", .kernel = wgrad, .edits = {{images_not_told_apart}}},
    {.name = "both blocks of a pair load the first pixels",
     .kernel = wgrad,
     .edits = {{{"window, pixel + k, batch", "window, pixel, batch"}}}},
    {.name = "all columns of a tile are those of its first atom",
     .kernel = wgrad,
     .edits = {{{"abi::TmaFilters{}, column + columns)", "abi::TmaFilters{}, column)"}}}},
    {.name = "nothing", .kernel = phases},
    {.name = "offsets of every phase are those of the first",
     .kernel = phases,
     .edits = {{{"phases[place.batch].window", "phases[0 * place.batch].window"}}}},
    {.name = "filters of every phase are those of the first",
     .kernel = phases,
     .edits = {{{"phases[place.batch].filters", "phases[0 * place.batch].filters"}}}},
    {.name = "every phase has as many pixels as the first",
     .kernel = phases,
     .edits = {{{"all.images[all.phases[place.batch].images]",
                 "all.images[0 * all.phases[place.batch].images]"}}}},
    {.name = "phases are as deep as the last of four",
     .kernel = phases,
     .edits = {{{"phases[tiles.position().batch].k_blocks",
                 "phases[tiles.position().batch | 3U].k_blocks"}}}},
    {.name = "pixels of every phase are stored as those of the first",
     .kernel = phases,
     .edits = {{{"phases[filled_.batch];", "phases[0 * filled_.batch];"}}}},
    {.name = "C is read as that of the first phase",
     .kernel = phases,
     .edits = {{{"unsigned found = phase.first_row +", "unsigned found ="}}}},
    {.name = "rows of C beyond a phase are read",
     .kernel = phases,
     .edits = {{{"return with_phases(params).phases[place.batch].rows;", "return params.m;"}}}},
    {.name = "every warp stores the first pixels",
     .kernel = phases,
     .edits = {{{"(phase.window, filled_.row)", "(phase.window, 0 * filled_.row)"}}}},
    {.name = "nothing", .kernel = taps},
    {.name = "every tap is stored as the first one",
     .kernel = taps,
     .edits = {{{".row = static_cast<int>(tap),", ".row = static_cast<int>(0 * tap),"}}}},
    {.name = "columns of taps are those of out",
     .kernel = taps,
     .edits = {{{"static_cast<int>(filled_.column - tap * channels.divisor)",
                 "static_cast<int>(filled_.column)"}}}},
    {.name = "groups are stored as the first one",
     .kernel = taps,
     .edits = {{{".far = static_cast<int>(filled_.batch)}", ".far = 0}"}}}},
};

}  // namespace

std::span<const DeviceFault> wgmma_conv_faults() noexcept { return fault_table; }

}  // namespace gemmery::conformance
