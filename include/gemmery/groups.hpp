// SPDX-License-Identifier: Apache-2.0
// Groups: how the GEMMs of a grouped problem differ, and the form of their sizes. The sizes
// themselves are in memory and not part of a problem.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <gemmery/export.hpp>

namespace gemmery {

// The form of the array of sizes. There are G groups; T is the number of elements along the extent
// that differs, in all groups and the gaps between them.
enum class GroupSizes : std::uint8_t {
  ends,    // G: where each group ends; the first one starts at 0 (torch's offs)
  prefix,  // G + 1: a 0, then the ends
  counts,  // G: the size of each group; a group starts where the previous one ends
  labels,  // T: the group of each row or column, -1 if it belongs to no group
  masked,  // G: how much of each matrix of a stack is used, from its start
  list,    // none: each problem of a list has its own extents
};
GEMMERY_API std::string_view name(GroupSizes sizes) noexcept;
GEMMERY_API std::optional<GroupSizes> parse_group_sizes(std::string_view word) noexcept;

// The extent that differs from group to group. In a list all extents may differ.
enum class Ragged : std::uint8_t { m, n, k };
GEMMERY_API std::string_view name(Ragged ragged) noexcept;
GEMMERY_API std::optional<Ragged> parse_ragged(std::string_view word) noexcept;

// The treatment of rows (or columns) of out that belong to no group.
enum class OutsideGroups : std::uint8_t { untouched, zero };
GEMMERY_API std::string_view name(OutsideGroups outside) noexcept;
GEMMERY_API std::optional<OutsideGroups> parse_outside_groups(std::string_view word) noexcept;

// Rows by index (columns where N differs): the caller's array gives the index, in a tensor, of
// element t of all groups. An index of -1 means no element.
struct IndexedElements {
  std::uint8_t bits = 0;    // of an index: 32 or 64; 0: no indices, element t is element t
  std::int32_t divide = 1;  // element t is element index / divide
  std::int64_t extent = 0;  // how many elements the tensor has

  bool are_used() const noexcept { return bits != 0; }
  friend bool operator==(const IndexedElements&, const IndexedElements&) = default;
};

// The form of a grouped problem.
struct Groups {
  GroupSizes sizes = GroupSizes::ends;
  Ragged ragged = Ragged::m;
  std::uint8_t index_bits = 32;  // of a size: 32 or 64
  bool are_on_host = false;      // sizes that were read when the arguments were made
  OutsideGroups outside = OutsideGroups::untouched;
  // A group starts at the next multiple of this after the end of the previous group, so all starts
  // are multiples of it. Labels change only at multiples of it.
  std::int32_t alignment = 1;
  // The average size of a group, a hint for predictions; 0 if unknown. It never changes a result.
  std::int64_t expected = 0;
  // The element of A (of B where N differs) from which element t of all groups is read, and the
  // element of out to which it is stored. -1 reads zeros, and stores nothing.
  IndexedElements gather = {};
  IndexedElements scatter = {};

  bool have_indices() const noexcept { return gather.are_used() || scatter.are_used(); }
  // True if all groups share one tensor along the extent that differs, instead of having a matrix
  // each.
  bool share_tensors() const noexcept {
    return sizes != GroupSizes::masked && sizes != GroupSizes::list;
  }
  friend bool operator==(const Groups&, const Groups&) = default;
};

}  // namespace gemmery
