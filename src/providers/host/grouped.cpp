// SPDX-License-Identifier: Apache-2.0
// Distributes threads over groups, and clears elements of no group.
#include "providers/host/grouped.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "epilogue/blocks.hpp"
#include "operation/epilogue_operands.hpp"
#include "operation/groups.hpp"
#include "platform/parallel.hpp"
#include "providers/host/epilogue_writer.hpp"
#include "providers/host/plain.hpp"

namespace gemmery::host {
namespace {

using operation::Gap;
using operation::GroupSlice;
using operation::IndexedGroup;

// --- threads ------------------------------------------------------------------------------------

struct Group {
  GroupSlice slice;
  double flops;
};

double flops_of(const GemmArguments& arguments, const GroupSlice& slice) {
  const GemmProblem& problem = arguments.problem();
  if (problem.groups->sizes == GroupSizes::list)
    return arguments.group_memory()->list[static_cast<std::size_t>(slice.group)].problem().flops();
  const auto whole = static_cast<double>(operation::ragged_extent(problem));
  const double each = 2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                      static_cast<double>(problem.k);
  return whole == 0 ? 0 : each * static_cast<double>(slice.size) / whole;
}

// Sorts groups by work, the largest first, so that all threads end at about the same time.
std::vector<Group> sort_by_work(const GemmArguments& arguments,
                                const std::vector<GroupSlice>& slices) {
  std::vector<Group> groups;
  groups.reserve(slices.size());
  for (const GroupSlice& slice : slices) groups.push_back({slice, flops_of(arguments, slice)});
  std::ranges::stable_sort(groups, std::ranges::greater{}, &Group::flops);
  return groups;
}

// Groups with more work than this use all threads, one after the other: a single thread would need
// more than a quarter of the whole time for one of them.
double least_work_of_all_threads(const std::vector<Group>& groups, int threads) {
  double sum = 0;
  for (const Group& group : groups) sum += group.flops;
  return std::max(least_shared_flops, sum / (4.0 * threads));
}

// --- what belongs to no group -------------------------------------------------------------------

// One matrix of a tensor and a part of its rows or columns.
void clear(const Tensor& view, std::int64_t batch, Ragged ragged, const Gap& gap) {
  const MatrixView matrix = matrix_of(view, batch);
  const bool is_of_rows = ragged == Ragged::m;
  const std::size_t width = byte_width(matrix.dtype);
  const std::int64_t rows_begin = is_of_rows ? gap.first : 0;
  const std::int64_t rows_end = is_of_rows ? gap.last : view.extent(1);
  const std::int64_t columns_begin = is_of_rows ? 0 : gap.first;
  const std::int64_t columns_end = is_of_rows ? view.extent(2) : gap.last;
  auto* const data = static_cast<std::byte*>(matrix.data);
  for (std::int64_t row = rows_begin; row < rows_end; ++row)
    for (std::int64_t column = columns_begin; column < columns_end; ++column)
      std::memset(data + (row * matrix.row_stride + column * matrix.column_stride) *
                             static_cast<std::int64_t>(width),
                  0, width);
}

// The blocks that have no element of a group.
Gap blocks_in(const Gap& gap, std::int32_t block) {
  return {epilogue::count_blocks(gap.first, block), epilogue::count_blocks(gap.last, block)};
}

// `block`: how many elements along the extent that differs share a value of the result.
void clear_outside(const GemmArguments& arguments, const std::vector<GroupSlice>& slices,
                   const Tensor& view, std::int32_t block = 1) {
  const GemmProblem& problem = arguments.problem();
  const Ragged ragged = problem.groups->ragged;
  const std::int64_t extent = operation::ragged_extent(problem);
  if (problem.groups->share_tensors()) {
    for (const Gap& gap : operation::find_gaps(slices, extent)) clear(view, 0, ragged, gap);
    return;
  }
  for (const GroupSlice& slice : slices)
    for (const Gap& gap : operation::find_gaps({slice}, extent))
      clear(view, slice.group, ragged, blocks_in(gap, block));
}

// True if a result has an element for every element along the extent that differs.
bool is_of_lines(const GemmProblem& problem, const Tensor& view, bool is_full) {
  if (is_full) return true;
  const std::int64_t extent = operation::ragged_extent(problem);
  const std::int64_t own = view.extent(problem.groups->ragged == Ragged::m ? 1 : 2);
  return extent > 1 && own == extent && (!operation::is_out_shared(problem) || view.extent(0) == 1);
}

// Clears out and the further results that have elements of no group.
void clear_outside(const GemmArguments& arguments, const std::vector<GroupSlice>& slices) {
  const GemmProblem& problem = arguments.problem();
  if (problem.groups->outside == OutsideGroups::untouched || problem.groups->ragged == Ragged::k)
    return;
  clear_outside(arguments, slices, arguments.out());
  if (problem.epilogue == default_epilogue) return;
  const EpilogueRules& rules = rules_of(problem.epilogue);
  for (std::size_t i = 0; i < rules.operands.size(); ++i) {
    const EpilogueOperandRule& rule = rules.operands[i];
    if (!rule.is_output) continue;
    const bool is_full =
        operation::reduction_of(rules.program, rule.name) == epilogue::Reduction::none;
    const Tensor& view = std::get<Tensor>(arguments.epilogue_operands()[i].value);
    const std::int32_t block =
        problem.groups->ragged == Ragged::m ? rule.block.rows : rule.block.columns;
    if (is_of_lines(problem, view, is_full)) clear_outside(arguments, slices, view, block);
  }
}

}  // namespace

void run_groups(const GemmArguments& arguments, Multiply multiply, Concurrency concurrency,
                int threads) {
  const std::vector<GroupSlice> slices = operation::read_groups(arguments);
  operation::check_indices(arguments, slices);
  const bool have_indices = arguments.problem().groups->have_indices();
  const operation::GroupSlicer slice_of(arguments);
  const std::vector<Group> groups = sort_by_work(arguments, slices);
  const int available = threads > 0 ? threads : platform::thread_count();
  const double least = least_work_of_all_threads(groups, available);
  const auto run = [&](const Group& group, int own_threads) {
    if (!have_indices) return multiply.call(multiply.context, slice_of(group.slice), own_threads);
    const IndexedGroup indexed(arguments, group.slice, IndexedGroup::Results::undefined);
    multiply.call(multiply.context, indexed.gemm(), own_threads);
    indexed.store();
  };
  std::size_t next = 0;
  const auto uses_all_threads = [&](const Group& group) {
    return concurrency == Concurrency::one_by_one || group.flops > least;
  };
  while (next < groups.size() && uses_all_threads(groups[next])) run(groups[next++], threads);
  platform::parallel_for(
      static_cast<std::int64_t>(groups.size() - next), 1,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t index = begin; index < end; ++index)
          run(groups[next + static_cast<std::size_t>(index)], 1);
      },
      threads);
  clear_outside(arguments, slices);
}

GemmProblem one_group(GemmProblem problem) {
  problem.groups.reset();
  problem.l = 1;
  for (MatrixType* const matrix : {&problem.a, &problem.b, &problem.out}) matrix->batch_stride = 0;
  if (problem.c) problem.c->batch_stride = 0;
  for (MatrixType& matrix : problem.epilogue_operands) matrix.batch_stride = 0;
  return problem;
}

}  // namespace gemmery::host
