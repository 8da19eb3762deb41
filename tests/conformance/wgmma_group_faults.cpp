// SPDX-License-Identifier: Apache-2.0
// The faults of sm90 kernels that find groups on the device.
#include "tests/conformance/device_faults.hpp"

namespace gemmery::conformance {
namespace {

constexpr auto groups = SoundKernel::wgmma_groups;

constexpr DeviceFault fault_table[] = {
    {.name = "nothing", .kernel = groups},
    {.name = "a group's last row is that of all",
     .kernel = groups,
     .edits = {{{".row_end = is_of_m() ? tile_.end : params_.m", ".row_end = params_.m"}}}},
    {.name = "a group's last column is that of all",
     .kernel = groups,
     .edits = {{{".column_end = is_of_n() ? tile_.end : params_.n", ".column_end = params_.n"}}}},
    {.name = "TMA stores rows beyond a group",
     .kernel = groups,
     .edits = {{{"return filled_.row + abi::sm90_warp_rows <= filled_.row_end &&", "return"}}}},
    {.name = "TMA stores columns beyond a group",
     .kernel = groups,
     .edits = {{{"(ends_whole || filled_.column + columns <= filled_.column_end)", "true"}}}},
    {.name = "what threads store of a tile before the last one is lost",
     .kernel = groups,
     .edits = {{{"if constexpr (design.has_groups && stores_by_tma) store_ragged();", ""}}}},
    {.name = "a group is as deep as all",
     .kernel = groups,
     .edits = {{{"return params_.first_k == 0 ? size() : 0U;", "return 64U * params_.k_blocks;"}}}},
    {.name = "a group begins where all k begin",
     .kernel = groups,
     .edits = {{{"return depth() == 0 ? beyond : static_cast<int>(tile_.begin);",
                 "return depth() == 0 ? beyond : 0;"}}}},
    {.name = "a group without k multiplies those of the next one",
     .kernel = groups,
     .edits = {{{"return depth() == 0 ? beyond : static_cast<int>(tile_.begin);",
                 "return depth() == 0 && beyond < 0 ? beyond : static_cast<int>(tile_.begin);"},
                {"if (k_left < tile_k)", "if (k_left > 0 && k_left < tile_k)"}}}},
    {.name = "k behind a group's end is not zero",
     .kernel = groups,
     .edits = {{{"if (k_left < tile_k)", "if (false)"}}}},
    {.name = "k behind a group's end is not zero in A",
     .kernel = groups,
     .edits = {{{"clear_unit(address, k_left * element_bytes, logical * unit_bytes);",
                 "clear_unit(address, line_bytes, logical * unit_bytes);"}}}},
    {.name = "k behind a group's end is not zero in B",
     .kernel = groups,
     .edits = {{{"clear_unit(address, is_beyond ? 0 : line_bytes, 0);",
                 "clear_unit(address, is_beyond ? line_bytes : line_bytes, 0);"}}}},
    {.name = "one k too many is cleared",
     .kernel = groups,
     .edits = {{{"% static_cast<unsigned>(abi::atom_extent(design)) >= k_left",
                 "% static_cast<unsigned>(abi::atom_extent(design)) + 1 >= k_left"}}}},
    {.name = "units are cleared as if they were not swizzled",
     .kernel = groups,
     .edits = {{{"const unsigned logical = unit % units ^ line % units;",
                 "const unsigned logical = unit % units;"}}}},
    {.name = "wgmmas do not wait for zeros",
     .kernel = groups,
     .edits = {{{"ptx::bar_sync<threads>(first_barrier);", "(void)first_barrier;"}}}},
    {.name = "zeros are not visible to wgmmas",
     .kernel = groups,
     .edits = {{{"ptx::fence_proxy_async();\n    ptx::bar_sync<threads>(first_barrier);",
                 "ptx::bar_sync<threads>(first_barrier);"}}}},
    {.name = "the table of tiles is off by one",
     .kernel = groups,
     .edits = {{{"ptx::lanes_where(sum <= tile)", "ptx::lanes_where(sum < tile)"}}}},
    {.name = "sizes of 64 bits are read in 32",
     .kernel = groups,
     .edits = {{{"if (groups_.is_wide != 0) {", "if (false) {"}}}},
    {.name = "one group too many is scanned",
     .kernel = groups,
     .edits = {{{"const bool is_group = group < groups_.count;",
                 "const bool is_group = group <= groups_.count;"},
                {"place.group < groups_.count; place.group += 32",
                 "place.group <= groups_.count; place.group += 32"}}}},
    {.name = "a scan that goes on has lost the tiles before",
     .kernel = groups,
     .edits = {{{"inclusive_sum(own) + place.tiles;", "inclusive_sum(own);"}}}},
    {.name = "all groups store to one matrix",
     .kernel = groups,
     .edits = {{{"filled_.batch * with_groups(params_).out_batch_step", "filled_.batch * 0"}}}},
};

}  // namespace

std::span<const DeviceFault> wgmma_group_faults() noexcept { return fault_table; }

}  // namespace gemmery::conformance
