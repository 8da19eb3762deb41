// SPDX-License-Identifier: Apache-2.0
// Faults of code that kernels of several families share: tiles of groups, labels, indices, lists,
// and elements of no group.
#pragma once

#include "tests/conformance/device_faults.hpp"

namespace gemmery::conformance::shared_edits {

using Edits = std::array<Edit, 2>;

inline constexpr Edits tiles_off_by_one{
    {{"ptx::lanes_where(sum <= tile)", "ptx::lanes_where(sum < tile)"}}};
inline constexpr Edits sizes_in_32_bits{{{"if (groups_.is_wide != 0) {", "if (false) {"}}};
inline constexpr Edits no_tiles_without_depth{
    {{"if (groups_.ragged == abi::RaggedExtent::k) return tiles_across_;",
      "if (groups_.ragged == abi::RaggedExtent::k) return size == 0 ? 0 : "
      "tiles_across_;"}}};
inline constexpr Edits padding_in_group{{{"label_at(groups, begin + element) == group", "true"}}};
inline constexpr Edits labels_in_32_bits{{{"groups.is_wide != 0", "false"}}};
inline constexpr Edits cleared_beyond_out{
    {{"const unsigned within = elements_between(0, groups.extent, strip * 32);",
      "const unsigned within = 0xffffffffU;"}}};
inline constexpr Edits indices_in_32_bits{{{"indices.is_wide != 0", "false"}}};
inline constexpr Edits no_index_is_first_row{
    {{"if (index < 0) return no_element;", "if (index < 0) return 0;"}}};
inline constexpr Edits first_of_one_tile{
    {{"if (first_tile(middle) <= tile)", "if (first_tile(middle) < tile)"}}};
inline constexpr Edits one_tile_too_many{
    {{"if (tile >= list.first_tile[list.count])", "if (tile > list.first_tile[list.count])"}}};
inline constexpr Edits one_group_too_many{{{"const bool is_group = group < groups_.count;",
                                            "const bool is_group = group <= groups_.count;"},
                                           {"place.group < groups_.count; place.group += 32",
                                            "place.group <= groups_.count; place.group += 32"}}};
inline constexpr Edits lost_tiles_before{
    {{"inclusive_sum(own) + place.tiles;", "inclusive_sum(own);"}}};

}  // namespace gemmery::conformance::shared_edits
