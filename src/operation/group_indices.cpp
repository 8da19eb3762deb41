// SPDX-License-Identifier: Apache-2.0
// Gather and scatter: the indices of groups' elements, checked, and GEMMs on copies of the
// elements.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "core/number.hpp"
#include "operation/epilogue_operands.hpp"
#include "operation/groups.hpp"
#include "operation/refusal.hpp"

namespace gemmery::operation {
namespace {

constexpr std::int64_t nowhere = -1;

std::int64_t index_at(const GroupIndices& indices, std::int64_t position) {
  if (indices.bits == 64) return static_cast<const std::int64_t*>(indices.data)[position];
  return static_cast<const std::int32_t*>(indices.data)[position];
}

// The element of the tensor for element t of all groups.
std::int64_t element_at(const IndexedElements& indexed, const GroupIndices& indices,
                        std::int64_t position) {
  if (!indexed.are_used()) return position;
  const std::int64_t index = index_at(indices, position);
  return index < 0 ? nowhere : index / indexed.divide;
}

// --- checks -------------------------------------------------------------------------------------

void check_range(std::string_view operand, const IndexedElements& indexed,
                 const GroupIndices& indices, const GroupSlice& slice) {
  const std::int64_t most = indexed.extent * indexed.divide - 1;
  for (std::int64_t position = slice.begin; position < slice.begin + slice.size; ++position) {
    const std::int64_t index = index_at(indices, position);
    if (index >= -1 && index <= most) continue;
    refuse(std::string(operand) + "[" + std::to_string(position) + "]",
           most < 0 ? "-1: there is nothing else" : "-1, or from 0 to " + std::to_string(most),
           std::to_string(index));
  }
}

void check_once(const GroupIndices& indices, const GroupSlice& slice,
                std::vector<std::int64_t>& position_of) {
  for (std::int64_t position = slice.begin; position < slice.begin + slice.size; ++position) {
    const std::int64_t index = index_at(indices, position);
    if (index < 0) continue;
    std::int64_t& before = position_of[static_cast<std::size_t>(index)];
    if (before != nowhere)
      refuse("scatter[" + std::to_string(position) + "]",
             "an element of out for every index, since one result only can be stored there",
             std::to_string(index) + ", as in scatter[" + std::to_string(before) + "]",
             "store to elements of their own and add them up");
    before = position;
  }
}

// --- copies -------------------------------------------------------------------------------------

// The lines of one matrix along the extent that differs.
struct IndexedLines {
  std::byte* data;
  std::int64_t line_stride;     // bytes, from one row (or column) to the next
  std::int64_t element_stride;  // bytes
  std::int64_t length;          // elements of a row
  std::size_t width;            // bytes of an element
};

IndexedLines lines_of(const Tensor& view, Ragged ragged) {
  const auto width = static_cast<std::int64_t>(byte_width(view.dtype()));
  const int line = ragged == Ragged::m ? 1 : 2;
  const int along = 3 - line;
  return {.data = static_cast<std::byte*>(const_cast<void*>(view.data())),
          .line_stride = view.stride(line) * width,
          .element_stride = view.stride(along) * width,
          .length = view.extent(along),
          .width = static_cast<std::size_t>(width)};
}

void copy_line(const IndexedLines& to, std::int64_t to_line, const IndexedLines& from,
               std::int64_t from_line) {
  std::byte* target = to.data + to_line * to.line_stride;
  const std::byte* source = from.data + from_line * from.line_stride;
  const auto width = static_cast<std::int64_t>(to.width);
  if (to.element_stride == width && from.element_stride == width) {
    std::memcpy(target, source, static_cast<std::size_t>(to.length) * to.width);
    return;
  }
  for (std::int64_t element = 0; element < to.length; ++element) {
    std::memcpy(target, source, to.width);
    target += to.element_stride;
    source += from.element_stride;
  }
}

// The same for elements that share bytes, one by one.
void copy_packed_line(const Tensor& to, std::int64_t to_line, const Tensor& from,
                      std::int64_t from_line, Ragged ragged) {
  const int line = ragged == Ragged::m ? 1 : 2;
  const int along = 3 - line;
  for (std::int64_t element = 0; element < from.extent(along); ++element) {
    const double value = number::load(from.dtype(), from.data(),
                                      from_line * from.stride(line) + element * from.stride(along));
    number::store(to.dtype(), to.data(), to_line * to.stride(line) + element * to.stride(along),
                  {value, 0});
  }
}

// True if a tensor of the epilogue varies along the extent that differs; a single element is
// broadcast.
bool is_along(const Tensor& view, Ragged ragged, std::int64_t extent) {
  const int line = ragged == Ragged::m ? 1 : 2;
  return extent > 1 && view.extent(line) == extent && view.stride(line) != 0;
}

// A tensor that is broadcast along the extent that differs, with the new number of elements.
Tensor repeated(const Tensor& view, Ragged ragged, std::int64_t extent, std::int64_t count) {
  const int line = ragged == Ragged::m ? 1 : 2;
  std::array shape{view.extent(0), view.extent(1), view.extent(2)};
  if (shape[static_cast<std::size_t>(line)] != extent) return view;
  shape[static_cast<std::size_t>(line)] = count;
  return with_strides(view, shape, {view.stride(0), view.stride(1), view.stride(2)});
}

}  // namespace

void check_indices(const GemmArguments& arguments, const std::vector<GroupSlice>& slices) {
  const Groups& groups = *arguments.problem().groups;
  const GroupMemory& memory = *arguments.group_memory();
  for (const GroupSlice& slice : slices) {
    if (groups.gather.are_used()) check_range("gather", groups.gather, memory.gather, slice);
    if (groups.scatter.are_used()) check_range("scatter", groups.scatter, memory.scatter, slice);
  }
  if (!groups.scatter.are_used()) return;
  std::vector<std::int64_t> position_of(static_cast<std::size_t>(groups.scatter.extent), nowhere);
  for (const GroupSlice& slice : slices) check_once(memory.scatter, slice, position_of);
}

// Keeps the layout; single elements of a tensor become lines of 1.
Tensor IndexedGroup::copy_of(const Tensor& source, const std::vector<std::int64_t>& elements,
                             bool is_read) {
  const auto count = static_cast<std::int64_t>(elements.size());
  const bool is_m = ragged_ == Ragged::m;
  const std::int64_t rows = is_m ? count : source.extent(1);
  const std::int64_t columns = is_m ? source.extent(2) : count;
  const bool is_column = source.stride(1) == 1 && source.stride(2) != 1;
  const std::int64_t whole = whole_elements(source.dtype());
  const std::int64_t pitch = ((is_column ? rows : columns) + whole - 1) / whole * whole;
  const auto bytes =
      static_cast<std::size_t>(storage_bytes(source.dtype(), pitch * (is_column ? columns : rows)));
  const auto& memory = memory_.emplace_back(std::make_shared<std::byte[]>(bytes));
  const std::array shape{source.extent(0), rows, columns};
  const std::array strides{std::int64_t{0}, is_column ? 1 : pitch, is_column ? pitch : 1};
  const Tensor copy(memory.get(), source.dtype(), shape, strides, source.device());
  if (!is_read || bytes == 0) return copy;
  const IndexedLines to = lines_of(copy, ragged_);
  const IndexedLines from = lines_of(source, ragged_);
  for (std::size_t line = 0; line < elements.size(); ++line)
    if (elements[line] != nowhere && is_packed(source.dtype()))
      copy_packed_line(copy, static_cast<std::int64_t>(line), source, elements[line], ragged_);
    else if (elements[line] != nowhere)
      copy_line(to, static_cast<std::int64_t>(line), from, elements[line]);
  return copy;
}

IndexedGroup::IndexedGroup(const GemmArguments& arguments, const GroupSlice& slice, Results results)
    : ragged_(arguments.problem().groups->ragged) {
  const Groups& groups = *arguments.problem().groups;
  const GroupMemory& indices = *arguments.group_memory();
  for (std::int64_t position = slice.begin; position < slice.begin + slice.size; ++position) {
    const std::int64_t target = element_at(groups.scatter, indices.scatter, position);
    if (target == nowhere) continue;
    read_.push_back(element_at(groups.gather, indices.gather, position));
    written_.push_back(target);
  }
  const bool are_present = results == Results::present;
  const bool is_m = ragged_ == Ragged::m;
  const auto count = static_cast<std::int64_t>(read_.size());
  const std::int64_t extent = arguments.out_.extent(is_m ? 1 : 2);
  GemmArguments all = arguments;  // of this group only
  GemmProblem& problem = all.problem_;
  problem.groups->gather = problem.groups->scatter = {};
  all.result_lines_.by_index = std::make_shared<const std::vector<std::int64_t>>(written_);
  (is_m ? problem.m : problem.n) = count;
  Tensor& input = is_m ? all.a_ : all.b_;
  input = copy_of(input, read_, true);
  const auto take_result = [&](Tensor& view) {
    const Tensor source = view;
    view = copy_of(source, written_, are_present);
    results_.push_back({memory_.back(), view, source});
  };
  take_result(all.out_);
  if (all.c_)
    *all.c_ = is_along(*all.c_, ragged_, extent) ? copy_of(*all.c_, written_, true)
                                                 : repeated(*all.c_, ragged_, extent, count);
  for (std::size_t i = 0; i < all.epilogue_operands_.size(); ++i) {
    auto* const view = std::get_if<Tensor>(&all.epilogue_operands_[i].value);
    if (view == nullptr) continue;
    const bool is_result = rules_of(problem.epilogue).operands[i].is_output;
    if (!is_along(*view, ragged_, extent)) {
      if (!is_result) *view = repeated(*view, ragged_, extent, count);
    } else if (is_result) {
      take_result(*view);
    } else {
      *view = copy_of(*view, written_, true);
    }
  }
  gemm_ = GroupSlicer(all)({slice.group, 0, count});
}

void IndexedGroup::store() const {
  for (const Copy& copy : results_) {
    const IndexedLines from = lines_of(copy.view, ragged_);
    const IndexedLines to = lines_of(copy.source, ragged_);
    const bool shares_bytes = is_packed(copy.view.dtype());
    for (std::size_t line = 0; line < written_.size(); ++line) {
      const auto own = static_cast<std::int64_t>(line);
      if (shares_bytes)
        copy_packed_line(copy.source, written_[line], copy.view, own, ragged_);
      else
        copy_line(to, written_[line], from, own);
    }
  }
}

}  // namespace gemmery::operation
