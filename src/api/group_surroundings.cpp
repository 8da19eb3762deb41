// SPDX-License-Identifier: Apache-2.0
#include "api/group_surroundings.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "operation/groups.hpp"

namespace gemmery::api {
namespace {

using operation::Gap;
using operation::GroupSlice;

enum class Direction : std::uint8_t { none, rows, columns };

Direction ragged_direction(Ragged ragged, ProductRole role) {
  switch (role) {
    case ProductRole::a:
      return ragged == Ragged::m   ? Direction::rows
             : ragged == Ragged::k ? Direction::columns
                                   : Direction::none;
    case ProductRole::b:
      return ragged == Ragged::k   ? Direction::rows
             : ragged == Ragged::n ? Direction::columns
                                   : Direction::none;
    case ProductRole::out:
      return ragged == Ragged::m   ? Direction::rows
             : ragged == Ragged::n ? Direction::columns
                                   : Direction::none;
  }
  return Direction::none;
}

// The elements that the indices of elements in groups address, in increasing order.
std::vector<GroupSlice> indexed_slices(const std::vector<GroupSlice>& slices,
                                       const IndexedElements& indexed,
                                       std::span<const std::byte> bytes) {
  std::vector<bool> are_named(static_cast<std::size_t>(indexed.extent));
  for (const GroupSlice& slice : slices)
    for (std::int64_t at = slice.begin; at < slice.begin + slice.size; ++at) {
      std::int64_t wide = 0;
      std::int32_t narrow = 0;
      const bool is_wide = indexed.bits == 64;
      const std::size_t width = indexed.bits / 8;
      std::memcpy(is_wide ? static_cast<void*>(&wide) : &narrow,
                  &bytes[static_cast<std::size_t>(at) * width], width);
      const std::int64_t index = is_wide ? wide : narrow;
      if (index >= 0) are_named[static_cast<std::size_t>(index / indexed.divide)] = true;
    }
  std::vector<GroupSlice> named;
  for (std::size_t element = 0; element < are_named.size(); ++element)
    if (are_named[element]) named.push_back({0, static_cast<std::int64_t>(element), 1});
  return named;
}

}  // namespace

GroupSurroundings::GroupSurroundings(const GemmProblem& problem, const DrawnGroups& drawn)
    : problem_(problem), drawn_(drawn) {}

std::vector<GroupSurroundings::Box> GroupSurroundings::boxes(const GuardedOperand& operand,
                                                             ProductRole role) const {
  const Extents3& extents = operand.extents();
  const std::int64_t rows = extents.rows;
  const std::int64_t columns = extents.columns;
  std::vector<Box> found;
  if (problem_.groups->sizes == GroupSizes::list) {
    for (std::size_t index = 0; index < drawn_.list().size(); ++index) {
      const auto& [m, n, k] = drawn_.list()[index];
      const auto batch = static_cast<std::int64_t>(index);
      const std::int64_t used_rows = role == ProductRole::b ? k : m;
      const std::int64_t used_columns = role == ProductRole::a ? k : n;
      found.push_back({batch, used_rows, rows, 0, columns});
      found.push_back({batch, 0, used_rows, used_columns, columns});
    }
    return found;
  }
  const Direction direction = ragged_direction(problem_.groups->ragged, role);
  if (direction == Direction::none) return found;
  const auto add = [&](std::int64_t batch, const Gap& gap) {
    found.push_back(direction == Direction::rows ? Box{batch, gap.first, gap.last, 0, columns}
                                                 : Box{batch, 0, rows, gap.first, gap.last});
  };
  std::vector<GroupSlice> slices = operation::read_groups(problem_, drawn_.here());
  std::int64_t extent = operation::ragged_extent(problem_);
  const bool is_out = role == ProductRole::out;
  const IndexedElements& indexed = is_out ? problem_.groups->scatter : problem_.groups->gather;
  if (indexed.are_used()) {
    slices =
        indexed_slices(slices, indexed, is_out ? drawn_.scatter_bytes() : drawn_.gather_bytes());
    extent = indexed.extent;
  }
  if (problem_.groups->share_tensors()) {
    for (const Gap& gap : operation::find_gaps(slices, extent)) add(0, gap);
    return found;
  }
  for (const GroupSlice& slice : slices)
    for (const Gap& gap : operation::find_gaps({slice}, extent)) add(slice.group, gap);
  return found;
}

void GroupSurroundings::poison(GuardedOperand& operand, ProductRole role) const {
  for (const Box& box : boxes(operand, role))
    for (std::int64_t row = box.row_begin; row < box.row_end; ++row)
      for (std::int64_t column = box.column_begin; column < box.column_end; ++column)
        operand.poison_element(box.batch, row, column);
}

std::int64_t GroupSurroundings::count_wrong(const GuardedOperand& result,
                                            const GuardedOperand& before) const {
  const bool is_zero = problem_.groups->outside == OutsideGroups::zero;
  std::int64_t wrong = 0;
  for (const Box& box : boxes(result, ProductRole::out))
    for (std::int64_t row = box.row_begin; row < box.row_end; ++row)
      for (std::int64_t column = box.column_begin; column < box.column_end; ++column) {
        const std::span<const std::byte> got = result.element(box.batch, row, column);
        const std::span<const std::byte> was = before.element(box.batch, row, column);
        for (std::size_t i = 0; i < got.size(); ++i)
          wrong += got[i] != (is_zero ? std::byte{0} : was[i]) ? 1 : 0;
      }
  return wrong;
}

}  // namespace gemmery::api
