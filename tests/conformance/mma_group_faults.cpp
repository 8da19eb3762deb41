// SPDX-License-Identifier: Apache-2.0
// The faults of sm80 kernels that find groups on the device, or in a table of the host.
#include "tests/conformance/device_faults.hpp"

namespace gemmery::conformance {
namespace {

constexpr auto groups = SoundKernel::mma_groups;
constexpr auto persistent = SoundKernel::mma_persistent;
constexpr auto table = SoundKernel::mma_table;

constexpr DeviceFault fault_table[] = {
    {.name = "nothing", .kernel = groups},
    {.name = "a group's last row is that of all",
     .kernel = groups,
     .edits = {{{"own.m = tile.end;", "(void)0;"}}}},
    {.name = "a group's last column is that of all",
     .kernel = groups,
     .edits = {{{"own.n = tile.end;", "(void)0;"}}}},
    {.name = "a group is as deep as all",
     .kernel = groups,
     .edits = {{{"own.k = min(own.k, tile.end - tile.begin);", "(void)0;"}}}},
    {.name = "a group begins where all k begin",
     .kernel = groups,
     .edits = {{{".first_k = is_of_m || is_of_n ? 0U : tile.begin", ".first_k = 0U"}}}},
    {.name = "k behind a group's end is not zero",
     .kernel = groups,
     .edits = {{{"const int k = static_cast<int>(min(k_left, static_cast<unsigned>(operand.k)));",
                 "const int k = operand.k;"}}}},
    {.name = "a store is not clipped at a group's last row",
     .kernel = groups,
     .edits = {{{"if (tile_row < 0 || row >= params_.m || column >= params_.n) continue;",
                 "if (tile_row < 0 || column >= params_.n) continue;"}}}},
    {.name = "a store is not clipped at a group's last column",
     .kernel = groups,
     .edits = {{{"if (tile_row < 0 || row >= params_.m || column >= params_.n) continue;",
                 "if (tile_row < 0 || row >= params_.m) continue;"},
                {"static_cast<int>(min(params_.n - column, static_cast<unsigned>(columns)))",
                 "columns"}}}},
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
    {.name = "groups without depth have no tiles",
     .kernel = groups,
     .edits = {{{"if (groups_.ragged == abi::RaggedExtent::k) return tiles_across_;",
                 "if (groups_.ragged == abi::RaggedExtent::k) return size == 0 ? 0 : "
                 "tiles_across_;"}}}},
    {.name = "a group of no k begins at an address that no copy may have",
     .kernel = groups,
     .edits = {{{"if (params_.k == 0) return;", "if (false) return;"}}}},
    {.name = "padding behind a label is of its group",
     .kernel = groups,
     .edits = {{{"label_at(groups, begin + element) == group", "true"}}}},
    {.name = "labels of 64 bits are read in 32",
     .kernel = groups,
     .edits = {{{"groups.is_wide != 0", "false"}}}},
    {.name = "a band of tiles is as wide as all",
     .kernel = groups,
     .edits = {{{"const unsigned own = left < width ? left : width;",
                 "const unsigned own = left < width ? width : width;"}}}},

    {.name = "nothing", .kernel = persistent},
    {.name = "a scan that goes on has lost the tiles before",
     .kernel = persistent,
     .edits = {{{"inclusive_sum(own) + place.tiles;", "inclusive_sum(own);"}}}},
    {.name = "a scan that goes on has lost the counts before",
     .kernel = persistent,
     .edits = {{{"place.elements += span.elements;", "place.elements += span.elements & 0;"}}}},
    {.name = "nothing waits between two tiles",
     .kernel = persistent,
     .edits = {{{"kept = {.index = index, .tile = tile, .place = place_};\n    __syncthreads();",
                 "kept = {.index = index, .tile = tile, .place = place_};"}}}},
    {.name = "a tile is kept where the stages are",
     .kernel = persistent,
     .edits = {{{"(shared + abi::kept_group_tile_offset(design))", "(shared)"}}}},

    {.name = "nothing", .kernel = table},
    {.name = "the first of groups that begin at one tile has it",
     .kernel = table,
     .edits = {{{"if (table.rows[middle].first_tile <= tile)",
                 "if (table.rows[middle].first_tile < tile)"}}}},
    {.name = "a group starts where the one before it ends, whatever the alignment",
     .kernel = table,
     .edits = {{{"const unsigned rest = before % groups.alignment;", "const unsigned rest = 0;"}}}},
    {.name = "masked groups follow each other",
     .kernel = table,
     .edits = {{{"const bool follows = group > 0 && groups.form != abi::GroupForm::masked;",
                 "const bool follows = group > 0;"}}}},
    {.name = "a tile is counted from the first of all",
     .kernel = table,
     .edits = {{{".tile = tile - table.rows[group].first_tile}", ".tile = tile}"}}}},
};

}  // namespace

std::span<const DeviceFault> mma_group_faults() noexcept { return fault_table; }

}  // namespace gemmery::conformance
