// SPDX-License-Identifier: Apache-2.0
// Validates the tensors and sizes of groups, and lists of problems.
#include <gemmery/grouped.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "operation/epilogue_operands.hpp"
#include "operation/groups.hpp"
#include "operation/matrix.hpp"
#include "operation/overlap.hpp"
#include "operation/refusal.hpp"
#include "operation/scaled_sums.hpp"
#include "operation/shapes.hpp"

namespace gemmery {
namespace {

using operation::as_batch;
using operation::check_extents;
using operation::GroupMemory;
using operation::matrix_type;
using operation::refuse;
using operation::require_extent;
using operation::shape_text;

// --- the form -----------------------------------------------------------------------------------

struct GivenTensors {
  const Tensor& a;
  const Tensor& b;
  const Tensor& out;
};

// The ranks of A, B and out for each extent that differs.
struct RankRow {
  int a, b, out;
  Ragged ragged;
};
constexpr std::array<RankRow, 3> shared_ranks{{
    {2, 3, 2, Ragged::m},
    {3, 2, 2, Ragged::n},
    {2, 2, 3, Ragged::k},
}};

[[noreturn]] void refuse_ranks(const GivenTensors& given, std::string_view expected) {
  refuse("A, B, out", std::string(expected),
         fmt::format("shapes {}, {} and {}", shape_text(given.a), shape_text(given.b),
                     shape_text(given.out)));
}

// Refuses a `ragged` that contradicts the ranks; m is the default and never does.
void check_said(Ragged said, Ragged ragged) {
  if (said == Ragged::m || said == ragged) return;
  refuse("ragged", std::string(name(ragged)) + ", by the ranks of A, B and out",
         std::string(name(said)), "leave it out: it is of masked groups");
}

Ragged ragged_of(const GivenTensors& given, const GroupOffsets& offsets) {
  const bool are_stacks = given.a.rank() == 3 && given.b.rank() == 3 && given.out.rank() == 3;
  if (offsets.form == GroupSizes::masked) {
    if (!are_stacks)
      refuse_ranks(given, "stacks (G, M, K), (G, K, N) and (G, M, N) of masked groups");
    return offsets.ragged;
  }
  for (const RankRow& row : shared_ranks)
    if (given.a.rank() == row.a && given.b.rank() == row.b && given.out.rank() == row.out) {
      check_said(offsets.ragged, row.ragged);
      return row.ragged;
    }
  refuse_ranks(given, are_stacks
                          ? "one tensor that the groups share; sizes of stacks are masked counts"
                          : "(T, K), (G, K, N), (T, N); (G, M, K), (K, T), (M, T); or (M, T), (T, "
                            "N), (G, M, N)");
}

Groups form_of(const GivenTensors& given, const GroupOffsets& offsets) {
  if (offsets.form == GroupSizes::list)
    refuse("sizes", "ends, prefix, counts, labels or masked", "list",
           "a list of problems makes GroupedGemmArguments by itself");
  return {.sizes = offsets.form,
          .ragged = ragged_of(given, offsets),
          .index_bits = static_cast<std::uint8_t>(offsets.sizes.bits),
          .are_on_host = offsets.read_now || offsets.sizes.device != given.out.device(),
          .outside = offsets.outside,
          .alignment = offsets.alignment,
          .expected = offsets.expected};
}

// --- indices ------------------------------------------------------------------------------------

void check_index_array(std::string_view operand, const GroupIndices& indices, Device device) {
  const std::string name(operand);
  if (indices.bits != 32 && indices.bits != 64)
    refuse(name, "int32 or int64", "whole numbers of " + std::to_string(indices.bits) + " bits");
  if (indices.device != device)
    refuse(name, "memory on " + to_string(device) + " (where out is)",
           "memory on " + to_string(indices.device), "move the indices there");
  operation::check_group_memory(indices, name);
}

IndexedElements indexed_by(const std::optional<GroupIndices>& indices, std::int32_t divide,
                           std::int64_t extent) {
  if (!indices) return {};
  return {.bits = static_cast<std::uint8_t>(indices->bits), .divide = divide, .extent = extent};
}

void require_count(std::string_view operand, const GroupIndices& indices, std::int64_t count,
                   std::string_view of) {
  if (indices.count != count)
    refuse(std::string(operand),
           std::to_string(count) + " indices, one for each " + std::string(of),
           std::to_string(indices.count));
}

// T, the number of elements of all groups, with indices: the number of indices, which must equal
// the extent of the tensor without indices.
std::int64_t count_elements(const GroupOffsets& offsets, Ragged ragged, std::int64_t read,
                            std::int64_t written) {
  const bool is_m = ragged == Ragged::m;
  if (offsets.gather && offsets.scatter) {
    require_count("scatter", *offsets.scatter, offsets.gather->count, "index of gather");
  } else if (offsets.gather) {
    require_count("gather", *offsets.gather, written, is_m ? "row of out" : "column of out");
  } else {
    require_count("scatter", *offsets.scatter, read, is_m ? "row of A" : "column of B");
  }
  return (offsets.gather ? offsets.gather : offsets.scatter)->count;
}

// --- sizes --------------------------------------------------------------------------------------

void check_sizes(const GroupIndices& sizes, std::int64_t count, GroupSizes form, Device device) {
  const std::string operand(name(form));
  if (sizes.bits != 32 && sizes.bits != 64)
    refuse(operand, "int32 or int64", "whole numbers of " + std::to_string(sizes.bits) + " bits");
  if (sizes.count != count)
    refuse(operand, std::to_string(count) + " sizes", std::to_string(sizes.count));
  if (sizes.device != device && !sizes.device.is_cpu())
    refuse(operand, "memory on " + to_string(device) + " (where out is) or of the host",
           "memory on " + to_string(sizes.device), "move the sizes to one of these");
  operation::check_group_memory(sizes);
}

GroupIndices keep_copy(const GroupIndices& sizes, GroupMemory& memory) {
  auto copy = std::make_shared<std::vector<std::int64_t>>();
  for (std::int64_t index = 0; index < sizes.count; ++index)
    copy->push_back(sizes.bits == 64 ? static_cast<const std::int64_t*>(sizes.data)[index]
                                     : static_cast<const std::int32_t*>(sizes.data)[index]);
  memory.kept = copy;
  return {copy->data(), sizes.count};
}

GroupIndices bind_indices(std::string_view operand, const std::optional<GroupIndices>& indices,
                          const Tensor& out) {
  if (!indices) return {};
  check_index_array(operand, *indices, out.device());
  operation::check_sizes_apart(*indices, out, operand);
  return *indices;
}

// --- lists --------------------------------------------------------------------------------------

std::string problem_text(std::string_view operand, std::size_t index) {
  return fmt::format("{} of problem {}", operand, index);
}

// A matrix that repeats a row or a column has neither layout.
bool is_of_layout(const MatrixType& type, std::int64_t rows, std::int64_t columns, Layout layout) {
  if (rows == 0 || columns == 0) return true;
  const auto is_line = [](std::int64_t extent, std::int64_t stride) {
    return extent == 1 || stride == 1;
  };
  const auto are_apart = [](std::int64_t extent, std::int64_t stride) {
    return extent == 1 || stride != 0;
  };
  if (layout == Layout::row)
    return is_line(columns, type.column_stride) && are_apart(rows, type.row_stride);
  return is_line(rows, type.row_stride) && are_apart(columns, type.column_stride);
}

// One operand of all problems.
struct ListedOperand {
  std::string_view name;
  Tensor (*view)(const GemmArguments&);
};

// The alignment of a matrix's rows (columns). Rows (columns) of one element may be adjacent.
int line_alignment(const MatrixType& type, std::int64_t rows, std::int64_t columns, bool is_row) {
  const bool are_adjacent =
      is_row ? columns <= 1 && type.row_stride == 1 : rows <= 1 && type.column_stride == 1;
  return are_adjacent ? std::min<int>(type.alignment, static_cast<int>(byte_width(type.dtype)))
                      : type.alignment;
}

// How far apart rows (columns) are; 0 where there is one.
std::int64_t line_distance(const MatrixType& type, std::int64_t rows, std::int64_t columns,
                           bool is_row) {
  if (is_row) return rows > 1 ? type.row_stride : 0;
  return columns > 1 ? type.column_stride : 0;
}

// The alignment that all matrices of an operand have. `has_lines`: rows (columns) are apart.
struct ListPromise {
  int alignment = 16;
  std::int64_t farthest = 0;  // distance of rows (columns)
  bool descends = false;      // some of them lie in memory before those of smaller number
};
ListPromise promise_of(const std::vector<GemmArguments>& list, const ListedOperand& operand,
                       bool has_lines, bool is_row) {
  ListPromise promise;
  for (const GemmArguments& one : list) {
    const Tensor view = operand.view(one);
    if (view.element_count() == 0) continue;
    const MatrixType type = matrix_type(view);
    promise.alignment = std::min<int>(promise.alignment, type.alignment);
    if (!has_lines) continue;
    promise.alignment =
        std::min(promise.alignment, line_alignment(type, view.extent(1), view.extent(2), is_row));
    const std::int64_t line = line_distance(type, view.extent(1), view.extent(2), is_row);
    promise.farthest = std::max(promise.farthest, line < 0 ? -line : line);
    promise.descends = promise.descends || line < 0;
  }
  return promise;
}

// The operand of all problems as a batch by pointers, with the largest extents and the smallest
// alignment; all matrices must have its layout. Rows (columns) of one element are not adjacent in
// it, unless all matrices have both layouts, so that its strides determine the layout.
// If rows of some matrix descend in memory, or are 2^31 or more elements apart, so do its strides:
// kernels may refuse that.
Tensor gather(const std::vector<GemmArguments>& list, const ListedOperand& operand,
              std::vector<const void*>& addresses, std::array<std::int64_t, 2> extents) {
  bool is_row = true;
  bool is_column = true;
  const Tensor first = operand.view(list.front());
  for (std::size_t index = 0; index < list.size(); ++index) {
    const Tensor view = operand.view(list[index]);
    const MatrixType type = matrix_type(view);
    if (view.dtype() != first.dtype())
      refuse(problem_text(operand.name, index),
             std::string(name(first.dtype())) + " as of problem 0",
             std::string(name(view.dtype())));
    is_row = is_row && is_of_layout(type, view.extent(1), view.extent(2), Layout::row);
    is_column = is_column && is_of_layout(type, view.extent(1), view.extent(2), Layout::column);
    if (!is_row && !is_column)
      refuse(problem_text(operand.name, index),
             "the layout of the problems before it, row or column", "another layout",
             "make a list of each layout", ErrorKind::unsupported);
    addresses.push_back(view.data());
  }
  std::int64_t apart = is_row ? extents[1] : extents[0];
  // If each matrix has both layouts, the batch has one of them.
  const bool has_lines = is_row != is_column || apart > 1;
  const ListPromise promise = promise_of(list, operand, has_lines, is_row);
  if (has_lines) {  // at least two elements, and whole accesses
    const auto whole = std::max<std::int64_t>(16 / static_cast<int>(byte_width(first.dtype())), 2);
    apart = std::max<std::int64_t>((apart + whole - 1) / whole, 1) * whole;
    if (promise.farthest > std::numeric_limits<std::int32_t>::max()) apart = promise.farthest;
    if (promise.descends) apart = -apart;
  }
  const std::array strides =
      is_row ? std::array<std::int64_t, 2>{apart, 1} : std::array<std::int64_t, 2>{1, apart};
  return Tensor(PointerArray{addresses.data(), promise.alignment}, first.dtype(),
                {static_cast<std::int64_t>(list.size()), extents[0], extents[1]}, strides,
                list.front().device());
}

void check_alike(const std::vector<GemmArguments>& list) {
  const GemmProblem& first = list.front().problem();
  for (std::size_t index = 0; index < list.size(); ++index) {
    const GemmProblem& other = list[index].problem();
    if (other.epilogue != default_epilogue)
      refuse(problem_text("epilogue", index), "the default program in a list of problems",
             "\"" + std::string(text(other.epilogue)) + "\"",
             "give each problem its C, alpha and beta, or let groups share tensors",
             ErrorKind::unsupported);
    if (other.math != first.math)
      refuse(problem_text("math", index), std::string(name(first.math)) + " as of problem 0",
             std::string(name(other.math)));
    if (other.c.has_value() != first.c.has_value())
      refuse(problem_text("C", index),
             first.c ? "a tensor, as problem 0 has" : "none, as of problem 0",
             other.c ? "a tensor" : "none", "beta may be 0");
    if (list[index].device() != list.front().device())
      refuse(problem_text("out", index), "memory on " + to_string(list.front().device()),
             "memory on " + to_string(list[index].device()));
  }
}

// Sorts results by address; only neighbours may then overlap.
void check_separate_results(const std::vector<GemmArguments>& list) {
  std::vector<std::size_t> order;
  for (std::size_t index = 0; index < list.size(); ++index)
    if (list[index].out().element_count() > 0) order.push_back(index);
  const auto range = [&](std::size_t index) { return byte_range(list[index].out()); };
  std::ranges::sort(order, {}, [&](std::size_t index) { return range(index).first; });
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      if (range(order[j]).first >= range(order[i]).last) break;
      if (operation::may_overlap(list[order[i]].out(), list[order[j]].out()))
        refuse(problem_text("out", std::max(order[i], order[j])),
               fmt::format("memory that shares nothing with out of problem {}",
                           std::min(order[i], order[j])),
               "overlapping memory");
    }
}

void check_matrix(std::string_view operand, const Tensor& tensor, std::size_t index) {
  if (tensor.rank() == 2) return;
  refuse(problem_text(operand, index), "a matrix", "rank " + std::to_string(tensor.rank()));
}

std::vector<GemmArguments> validate_list(const std::vector<GroupedProblem>& problems,
                                         DType accumulator_type) {
  if (problems.empty()) refuse("problems", "at least one, whose types are those of all", "none");
  std::vector<GemmArguments> list;
  list.reserve(problems.size());
  for (std::size_t index = 0; index < problems.size(); ++index) {
    const GroupedProblem& problem = problems[index];
    check_matrix("A", problem.A, index);
    check_matrix("B", problem.B, index);
    check_matrix("out", problem.out, index);
    try {
      list.emplace_back(problem.A, problem.B, problem.out, accumulator_type, problem.options);
    } catch (const Error& error) {
      throw Error({.kind = error.kind(),
                   .operand = std::string(error.operand()) + fmt::format(" of problem {}", index),
                   .expected = std::string(error.expected()),
                   .got = std::string(error.got()),
                   .hint = std::string(error.hint())});
    }
  }
  check_alike(list);
  check_separate_results(list);
  return list;
}

}  // namespace

GroupedGemmArguments::GroupedGemmArguments(const Tensor& A, const Tensor& B, const Tensor& out,
                                           DType accumulator_type, const GroupOffsets& offsets,
                                           const GemmOptions& options)
    : GroupedGemmArguments(ScaledOperand(A), ScaledOperand(B), out, accumulator_type, offsets,
                           options) {}

GroupedGemmArguments::GroupedGemmArguments(const ScaledOperand& A, const ScaledOperand& B,
                                           const Tensor& out, DType accumulator_type,
                                           const GroupOffsets& offsets,
                                           const GemmOptions& options) {
  Groups groups = form_of({A.quantized, B.quantized, out}, offsets);
  gemm_.a_ = as_batch({"A", A.quantized}, "(T, K), (G, M, K) or (M, T)");
  gemm_.b_ = as_batch({"B", B.quantized}, "(G, K, N), (K, T) or (T, N)");
  gemm_.out_ = as_batch({"out", out}, "(T, N), (M, T) or (G, M, N)");
  const auto& [a, b, d] = std::tie(gemm_.a_, gemm_.b_, gemm_.out_);
  require_extent("B", "rows (K)", a.extent(2), "A columns", b.extent(1));
  const bool is_m = groups.ragged == Ragged::m;
  const std::int64_t read = is_m ? a.extent(1) : b.extent(2);
  const std::int64_t written = is_m ? d.extent(1) : d.extent(2);
  groups.gather = indexed_by(offsets.gather, offsets.gather_divide, read);
  groups.scatter = indexed_by(offsets.scatter, 1, written);
  const bool have_indices = groups.have_indices();
  operation::check_indexable(groups);
  if (!have_indices || groups.ragged != Ragged::m)
    require_extent("out", "rows (M)", a.extent(1), "A rows", d.extent(1));
  if (!have_indices || groups.ragged != Ragged::n)
    require_extent("out", "columns (N)", b.extent(2), "B columns", d.extent(2));
  const bool is_stack = groups.sizes == GroupSizes::masked;
  const std::int64_t count = is_stack || groups.ragged == Ragged::k ? d.extent(0)
                             : groups.ragged == Ragged::m           ? b.extent(0)
                                                                    : a.extent(0);
  if (is_stack) {
    require_extent("A", "matrices (G)", count, "out", a.extent(0));
    require_extent("B", "matrices (G)", count, "out", b.extent(0));
  }
  gemm_.problem_.groups = groups;
  gemm_.problem_.l = count;
  gemm_.bind_companions(A, B);
  const Tensor domain =
      operation::with_strides(d, {count, d.extent(1), d.extent(2)},
                              {d.extent(0) == count ? d.stride(0) : 0, d.stride(1), d.stride(2)});
  gemm_.bind(accumulator_type, options, domain);
  if (have_indices)
    (is_m ? gemm_.problem_.m : gemm_.problem_.n) =
        count_elements(offsets, groups.ragged, read, written);
  operation::check_groups(gemm_.problem_);
  auto memory = std::make_shared<GroupMemory>();
  memory->sizes = offsets.sizes;
  memory->gather = bind_indices("gather", offsets.gather, gemm_.out_);
  memory->scatter = bind_indices("scatter", offsets.scatter, gemm_.out_);
  check_sizes(offsets.sizes,
              operation::size_count(groups, count, operation::ragged_extent(gemm_.problem_)),
              groups.sizes, gemm_.device());
  if (offsets.check && !offsets.sizes.device.is_cpu())
    refuse("check", "sizes in host memory", "sizes on " + to_string(offsets.sizes.device),
           "check a copy of them, or leave the check out", ErrorKind::unsupported);
  if (groups.are_on_host) memory->sizes = keep_copy(offsets.sizes, *memory);
  operation::check_sizes_apart(memory->sizes, gemm_.out_);
  gemm_.groups_ = memory;
  gemm_.scaled_sums_ = operation::ScaleBinder::bind(gemm_);
  if (offsets.check || groups.are_on_host) {
    const auto slices = operation::read_groups(gemm_);
    if (offsets.check && gemm_.device().is_cpu()) operation::check_indices(gemm_, slices);
  }
}

GroupedGemmArguments::GroupedGemmArguments(const std::vector<GroupedProblem>& problems,
                                           DType accumulator_type) {
  auto memory = std::make_shared<GroupMemory>();
  memory->list = validate_list(problems, accumulator_type);
  const std::vector<GemmArguments>& list = memory->list;
  std::int64_t m = 0, n = 0, k = 0;
  for (const GemmArguments& one : list) {
    m = std::max(m, one.problem().m);
    n = std::max(n, one.problem().n);
    k = std::max(k, one.problem().k);
  }
  gemm_.a_ =
      gather(list, {"A", [](const GemmArguments& one) { return one.a(); }}, memory->a, {m, k});
  gemm_.b_ =
      gather(list, {"B", [](const GemmArguments& one) { return one.b(); }}, memory->b, {k, n});
  gemm_.out_ = gather(list, {"out", [](const GemmArguments& one) { return one.out(); }},
                      memory->out, {m, n});
  GemmProblem& problem = gemm_.problem_;
  const GemmProblem& first = list.front().problem();
  problem.groups = Groups{.sizes = GroupSizes::list, .are_on_host = true};
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.l = static_cast<std::int64_t>(list.size());
  problem.a = matrix_type(gemm_.a_);
  problem.b = matrix_type(gemm_.b_);
  problem.out = matrix_type(gemm_.out_);
  problem.accumulator = accumulator_type;
  problem.math = first.math;
  problem.epilogue = first.epilogue;
  if (first.c) {
    gemm_.c_ = gather(list, {"C", [](const GemmArguments& one) { return one.c().value(); }},
                      memory->c, {m, n});
    problem.c = matrix_type(*gemm_.c_);
  }
  gemm_.beta_ = std::ranges::any_of(list, [](const auto& one) { return one.beta() != 0; }) ? 1 : 0;
  gemm_.groups_ = std::move(memory);
}

}  // namespace gemmery
