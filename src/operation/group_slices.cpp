// SPDX-License-Identifier: Apache-2.0
// Sizes of groups as parts of tensors, and parts of tensors as GEMMs.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/arithmetic.hpp"
#include "epilogue/blocks.hpp"
#include "operation/epilogue_operands.hpp"
#include "operation/groups.hpp"
#include "operation/matrix.hpp"
#include "operation/refusal.hpp"

namespace gemmery::operation {
namespace {

// --- sizes --------------------------------------------------------------------------------------

std::int64_t size_at(const GroupIndices& sizes, std::int64_t index) {
  if (sizes.bits == 64) return static_cast<const std::int64_t*>(sizes.data)[index];
  return static_cast<const std::int32_t*>(sizes.data)[index];
}

[[noreturn]] void refuse_size(const Groups& groups, std::int64_t index, std::string expected,
                              std::int64_t got) {
  refuse(std::string(name(groups.sizes)) + "[" + std::to_string(index) + "]", std::move(expected),
         std::to_string(got));
}

// Groups that follow each other in shared tensors: sizes in the forms ends, prefix and counts.
class AdjacentGroups {
 public:
  AdjacentGroups(const GemmProblem& problem, const GroupIndices& sizes)
      : groups_(*problem.groups),
        sizes_(sizes),
        count_(problem.l),
        extent_(ragged_extent(problem)) {}

  std::vector<GroupSlice> read() const {
    std::vector<GroupSlice> slices;
    slices.reserve(static_cast<std::size_t>(count_));
    const std::int64_t skipped = groups_.sizes == GroupSizes::prefix ? 1 : 0;
    if (skipped == 1 && size_at(sizes_, 0) != 0) refuse_size(groups_, 0, "0", size_at(sizes_, 0));
    std::int64_t end = 0;
    for (std::int64_t group = 0; group < count_; ++group) {
      const std::int64_t begin = round_up(end, groups_.alignment);
      slices.push_back(slice_from(begin, end, group, group + skipped));
      end = slices.back().begin + slices.back().size;
    }
    return slices;
  }

 private:
  // An empty group may end where the previous group ends, which need not be a multiple of the
  // alignment.
  GroupSlice slice_from(std::int64_t begin, std::int64_t before, std::int64_t group,
                        std::int64_t index) const {
    const std::int64_t size = size_at(sizes_, index);
    if (groups_.sizes == GroupSizes::counts) {
      check(index, size, 0, std::max<std::int64_t>(extent_ - begin, 0));
      return size == 0 ? GroupSlice{group, before, 0} : GroupSlice{group, begin, size};
    }
    if (size == before) return {group, before, 0};
    check(index, size, begin, extent_);
    return {group, begin, size - begin};
  }
  void check(std::int64_t index, std::int64_t size, std::int64_t least, std::int64_t most) const {
    if (size >= least && size <= most) return;
    refuse_size(groups_, index,
                least > most ? "0: the groups before it take all"
                             : "from " + std::to_string(least) + " to " + std::to_string(most),
                size);
  }

  const Groups& groups_;
  const GroupIndices& sizes_;
  std::int64_t count_;
  std::int64_t extent_;
};

std::vector<GroupSlice> read_masked(const GemmProblem& problem, const GroupIndices& sizes) {
  std::vector<GroupSlice> slices;
  const std::int64_t most = ragged_extent(problem);
  for (std::int64_t group = 0; group < problem.l; ++group) {
    const std::int64_t size = size_at(sizes, group);
    if (size < 0 || size > most)
      refuse_size(*problem.groups, group, "from 0 to " + std::to_string(most), size);
    slices.push_back({group, 0, size});
  }
  return slices;
}

std::string labels_text(std::int64_t count) {
  if (count == 0) return "-1, since there are no groups";
  return "a group from 0 to " + std::to_string(count - 1) + ", or -1";
}

// Runs of equal labels.
std::vector<GroupSlice> read_labels(const GemmProblem& problem, const GroupIndices& sizes) {
  std::vector<GroupSlice> slices;
  const Groups& groups = *problem.groups;
  std::int64_t before = -1;
  for (std::int64_t index = 0; index < sizes.count; ++index) {
    const std::int64_t label = size_at(sizes, index);
    if (label < -1 || label >= problem.l) refuse_size(groups, index, labels_text(problem.l), label);
    // Padding may begin anywhere within an aligned part, after the rows of its group.
    const bool is_within = index % groups.alignment != 0;
    if (is_within && label != before && label != -1)
      refuse_size(groups, index,
                  std::to_string(before) + " (labels change at multiples of " +
                      std::to_string(groups.alignment) + " only)",
                  label);
    if (label >= 0 && label == before) ++slices.back().size;
    if (label >= 0 && label != before) slices.push_back({label, index, 1});
    before = label;
  }
  return slices;
}

std::vector<GroupSlice> number_list(const GemmProblem& problem) {
  std::vector<GroupSlice> slices;
  for (std::int64_t group = 0; group < problem.l; ++group) slices.push_back({group, 0, 0});
  return slices;
}

// --- parts --------------------------------------------------------------------------------------

// A part of one matrix of a batch: its beginning and its extents.
struct Part {
  std::int64_t batch = 0;
  std::int64_t row = 0, column = 0;
  std::int64_t rows = 0, columns = 0;
};

Tensor part_of(const Tensor& view, const Part& part) {
  const std::array shape{std::int64_t{1}, part.rows, part.columns};
  const std::array strides{std::int64_t{0}, view.stride(1), view.stride(2)};
  const bool is_pointed = view.has_pointers();
  const auto* const start =
      is_pointed && view.data() != nullptr
          ? static_cast<const std::byte*>(static_cast<void* const*>(view.data())[part.batch])
          : static_cast<const std::byte*>(view.data());
  const std::int64_t elements = (is_pointed ? 0 : part.batch * view.stride(0)) +
                                part.row * view.stride(1) + part.column * view.stride(2);
  const bool is_empty = start == nullptr || part.rows == 0 || part.columns == 0;
  return Tensor(is_empty ? start : start + storage_bytes(view.dtype(), elements), view.dtype(),
                shape, strides, view.device());
}

using Box = GroupSlicer::Box;

Box box_of(const GemmProblem& problem, const GroupSlice& slice) {
  Box box{.m = problem.m, .n = problem.n, .k = problem.k};
  switch (problem.groups->ragged) {
    case Ragged::m:
      box.row = slice.begin;
      box.m = slice.size;
      break;
    case Ragged::n:
      box.column = slice.begin;
      box.n = slice.size;
      break;
    case Ragged::k:
      box.depth = slice.begin;
      box.k = slice.size;
      break;
  }
  return box;
}

// A tensor that groups share has a batch of 1.
std::int64_t batch_in(const Tensor& view, std::int64_t group) {
  return view.extent(0) == 1 ? 0 : group;
}

bool is_reduced(const GemmProblem& problem, std::string_view operand) {
  return reduction_of(rules_of(problem.epilogue).program, operand) != epilogue::Reduction::none;
}

// C, or a tensor of the epilogue that is read or stored for every element of out.
Tensor addend_part(const Tensor& view, const Box& box, std::int64_t group) {
  return part_of(view, {.batch = batch_in(view, group),
                        .row = box.row,
                        .column = box.column,
                        .rows = box.m,
                        .columns = box.n});
}

// The extent of a result in which every group has its own matrix and uses a part of it. An extent
// of 1 does not change.
std::int64_t masked_extent(std::int64_t own, std::int64_t whole, std::int64_t used) {
  return own == whole && own > 1 ? used : own;
}

// The part of a reduction's result, whose extents are 1 along reduced directions. If groups share
// out, the result has an element per group, or per row (or column) of all groups.
Tensor reduced_part(const Tensor& view, const GemmProblem& problem, const Box& box,
                    std::int64_t group) {
  const bool is_of_lines =
      is_out_shared(problem) && (problem.l > 1 ? view.extent(0) == 1 : ragged_extent(problem) > 1);
  const Ragged ragged = problem.groups->ragged;
  const bool is_of_rows = is_of_lines && ragged == Ragged::m && view.extent(1) == problem.m;
  const bool is_of_columns = is_of_lines && ragged == Ragged::n && view.extent(2) == problem.n;
  return part_of(
      view, {.batch = batch_in(view, group),
             .row = is_of_rows ? box.row : 0,
             .column = is_of_columns ? box.column : 0,
             .rows = is_of_rows ? box.m : masked_extent(view.extent(1), problem.m, box.m),
             .columns = is_of_columns ? box.n : masked_extent(view.extent(2), problem.n, box.n)});
}

// The part of a result for blocks of out. If groups share out, blocks are of one of a group's
// lines. Swizzled values are those of all groups (ResultLines).
Tensor block_part(const Tensor& view, const EpilogueOperandRule& rule, const GemmProblem& problem,
                  const Box& box, std::int64_t group) {
  Part part{.batch = batch_in(view, group), .rows = view.extent(1), .columns = view.extent(2)};
  if (rule.layout != ScaleLayout::strided) return part_of(view, part);
  if (is_out_shared(problem)) {
    part.row = box.row;
    part.column = box.column;
  }
  part.rows = epilogue::count_blocks(box.m, rule.block.rows);
  part.columns = epilogue::count_blocks(box.n, rule.block.columns);
  return part_of(view, part);
}

// The part of a tensor of the epilogue.
Tensor operand_part(const Tensor& view, const EpilogueOperandRule& rule, const GemmProblem& problem,
                    const Box& box, std::int64_t group) {
  if (rule.block != epilogue::one_element) return block_part(view, rule, problem, box, group);
  return is_reduced(problem, rule.name) ? reduced_part(view, problem, box, group)
                                        : addend_part(view, box, group);
}

// The companions of one group; blocks are still those of all groups.
BoundCompanions companion_part(BoundCompanions memory, OperandCompanions& types,
                               std::int64_t group) {
  const auto take = [&](Tensor& view, CompanionType& type) {
    view = part_of(
        view, {.batch = batch_in(view, group), .rows = view.extent(1), .columns = view.extent(2)});
    type.values.batch_stride = 0;
  };
  for (std::size_t i = 0; i < memory.scales.size(); ++i) take(memory.scales[i], types.scales[i]);
  if (memory.zero_point) take(*memory.zero_point, *types.zero_point);
  return memory;
}

// The same of the program's operands, of which a group has the part at `part`.
void take_program_part(BoundCompanions& memory, OperandCompanions& types, Part part) {
  for (std::size_t i = 0; i < memory.program_operands.size(); ++i) {
    auto* const tensor = std::get_if<Tensor>(&memory.program_operands[i].value);
    if (tensor == nullptr) continue;
    *tensor = part_of(*tensor, part);
    types.program->operands[i].batch_stride = 0;
  }
}

void set_origin(BoundCompanions& memory, std::int64_t row, std::int64_t k, std::int64_t all_k) {
  memory.first_row = row;
  memory.first_k = k;
  memory.all_k = all_k;
}

}  // namespace

std::vector<GroupSlice> read_groups(const GemmProblem& problem, const GroupIndices& sizes) {
  switch (problem.groups->sizes) {
    case GroupSizes::list:
      return number_list(problem);
    case GroupSizes::masked:
      return read_masked(problem, sizes);
    case GroupSizes::labels:
      return read_labels(problem, sizes);
    default:
      return AdjacentGroups(problem, sizes).read();
  }
}

std::vector<GroupSlice> read_groups(const GemmArguments& arguments) {
  return read_groups(arguments.problem(), arguments.group_memory()->sizes);
}

std::vector<Gap> find_gaps(std::vector<GroupSlice> slices, std::int64_t extent) {
  std::vector<Gap> gaps;
  std::int64_t end = 0;
  for (const GroupSlice& slice : slices) {
    if (slice.size == 0) continue;
    if (slice.begin > end) gaps.push_back({end, slice.begin});
    end = slice.begin + slice.size;
  }
  if (end < extent) gaps.push_back({end, extent});
  return gaps;
}

// Leaves the operands and results of a box; the epilogue's operands are still those of all.
void GroupSlicer::take_box(GemmArguments& own, const Box& box, std::int64_t batch) {
  const std::int64_t all_k = own.problem_.k;
  const auto take = [&](Tensor& view, Part part) {
    part.batch = batch_in(view, batch);
    view = part_of(view, part);
  };
  const Part part_of_a{
      .batch = batch, .row = box.row, .column = box.depth, .rows = box.m, .columns = box.k};
  const Part part_of_b{
      .batch = batch, .row = box.depth, .column = box.column, .rows = box.k, .columns = box.n};
  take(own.a_, part_of_a);
  take(own.b_, part_of_b);
  take(own.out_, {.row = box.row, .column = box.column, .rows = box.m, .columns = box.n});
  if (own.c_) *own.c_ = addend_part(*own.c_, box, batch);
  own.a_companions_ = companion_part(own.a_companions_, own.problem_.a_companions, batch);
  own.b_companions_ = companion_part(own.b_companions_, own.problem_.b_companions, batch);
  take_program_part(own.a_companions_, own.problem_.a_companions, part_of_a);
  take_program_part(own.b_companions_, own.problem_.b_companions, part_of_b);
  set_origin(own.a_companions_, box.row, box.depth, all_k);
  set_origin(own.b_companions_, box.column, box.depth, all_k);
  own.problem_.l = 1;
  own.problem_.m = box.m;
  own.problem_.n = box.n;
  own.problem_.k = box.k;
  own.problem_.a = matrix_type(own.a_);
  own.problem_.b = matrix_type(own.b_);
  own.problem_.out = matrix_type(own.out_);
  if (own.c_) own.problem_.c = matrix_type(*own.c_);
}

GemmArguments GroupSlicer::row_of(const GemmArguments& arguments, std::int64_t batch,
                                  std::int64_t row) {
  const GemmProblem& problem = arguments.problem_;
  GemmArguments own = arguments;
  take_box(own, {.row = row, .m = 1, .n = problem.n, .k = problem.k}, batch);
  for (std::size_t i = 0; i < own.epilogue_operands_.size(); ++i) {
    auto* const tensor = std::get_if<Tensor>(&own.epilogue_operands_[i].value);
    if (tensor == nullptr) continue;
    *tensor = part_of(*tensor, {.batch = batch_in(*tensor, batch),
                                .row = tensor->extent(1) == 1 ? 0 : row,
                                .rows = 1,
                                .columns = tensor->extent(2)});
    own.problem_.epilogue_operands[i].batch_stride = 0;
  }
  return own;
}

GemmArguments GroupSlicer::operator()(const GroupSlice& slice) const {
  const GemmProblem& problem = arguments_.problem_;
  if (problem.groups->sizes == GroupSizes::list)
    return arguments_.groups_->list[static_cast<std::size_t>(slice.group)];
  const Box box = box_of(problem, slice);
  GemmArguments own = arguments_;
  own.groups_.reset();
  own.problem_.groups.reset();
  take_box(own, box, slice.group);
  if (is_out_shared(problem)) own.result_lines_.first = box.row + box.column;
  for (std::size_t i = 0; i < own.epilogue_operands_.size(); ++i) {
    auto* const tensor = std::get_if<Tensor>(&own.epilogue_operands_[i].value);
    if (tensor == nullptr) continue;
    *tensor =
        operand_part(*tensor, rules_of(problem.epilogue).operands[i], problem, box, slice.group);
    own.problem_.epilogue_operands[i].batch_stride = 0;
  }
  return own;
}

}  // namespace gemmery::operation
