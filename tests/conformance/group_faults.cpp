// SPDX-License-Identifier: Apache-2.0
// The faults of simt kernels that find groups on the device, and their rows by indices.
#include "tests/conformance/device_faults.hpp"

namespace gemmery::conformance {
namespace {

constexpr auto groups = SoundKernel::groups;
constexpr auto indexed = SoundKernel::indexed_groups;

constexpr DeviceFault fault_table[] = {
    {.name = "nothing", .kernel = groups},
    {.name = "a group's last row is that of all",
     .kernel = groups,
     .edits = {{{"own.m = tile.end;", ""}}}},
    {.name = "a group's last column is that of all",
     .kernel = groups,
     .edits = {{{"own.n = tile.end;", ""}}}},
    {.name = "a group is as deep as all",
     .kernel = groups,
     .edits = {{{"own.k = min(own.k, tile.end - tile.begin);", ""}}}},
    {.name = "the table of tiles is off by one",
     .kernel = groups,
     .edits = {{{"ptx::lanes_where(sum <= tile)", "ptx::lanes_where(sum < tile)"}}}},
    {.name = "sizes of 64 bits are read in 32",
     .kernel = groups,
     .edits = {{{"if (groups_.is_wide != 0) {", "if (false) {"}}}},
    {.name = "a group starts where the one before it ends, whatever the alignment",
     .kernel = groups,
     .edits = {{{"const unsigned begin = min(round_up(before), groups_.extent);",
                 "const unsigned begin = min(before, groups_.extent);"}}}},
    {.name = "counts are added up without their padding",
     .kernel = groups,
     .edits = {{{"const unsigned padded = round_up(span.end);",
                 "const unsigned padded = span.end;"}}}},
    {.name = "groups beyond the 32nd start over",
     .kernel = groups,
     .edits = {{{"place.tiles = ptx::value_of_lane(sum, 31);", ""}}}},
    {.name = "groups without depth have no tiles",
     .kernel = groups,
     .edits = {{{"if (groups_.ragged == abi::RaggedExtent::k) return tiles_across_;",
                 "if (groups_.ragged == abi::RaggedExtent::k) return size == 0 ? 0 : "
                 "tiles_across_;"}}}},
    {.name = "padding behind a label is of its group",
     .kernel = groups,
     .edits = {{{"label_at(groups, begin + element) == group", "true"}}}},
    {.name = "labels of 64 bits are read in 32",
     .kernel = groups,
     .edits = {{{"groups.is_wide != 0", "false"}}}},
    {.name = "nothing", .kernel = indexed},
    {.name = "indices of 64 bits are read in 32",
     .kernel = indexed,
     .edits = {{{"indices.is_wide != 0", "false"}}}},
    {.name = "an index of -1 is that of the first row",
     .kernel = indexed,
     .edits = {{{"if (index < 0) return no_element;", "if (index < 0) return 0;"}}}},
    {.name = "indices are not divided",
     .kernel = indexed,
     .edits = {{{"indices.divide == 1 ? index : index / indices.divide", "index"}}}},
    {.name = "what goes nowhere is stored to the first row",
     .kernel = indexed,
     .edits = {{{"if constexpr (design.indexed == abi::IndexedExtent::rows) return "
                 "find_element(scatter_, own);",
                 "if constexpr (design.indexed == abi::IndexedExtent::rows) return "
                 "max(find_element(scatter_, own), 0);"}}}},
    {.name = "rows beyond a group are stored where the next ones go",
     .kernel = indexed,
     .edits = {{{"if (own >= params_.m) return no_element;", ""}}}},
    {.name = "padding within whole tiles is read as the first row",
     .kernel = indexed,
     .edits = {{{"is_interior_ = is_interior_ && elements_[pass] != no_element;", ""}}}},
    {.name = "padding at edges is read as the first row",
     .kernel = indexed,
     .edits = {{{"return elements_[pass % Units::passes_per_period] == no_element ? 0 : 1;",
                 "return 1;"}}}},
    {.name = "rows are stored in the order of groups",
     .kernel = indexed,
     .edits = {{{".scatter = &params.scatter}", ".scatter = &params.gather}"}}}},
};

}  // namespace

std::span<const DeviceFault> group_faults() noexcept { return fault_table; }

}  // namespace gemmery::conformance
