// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/problem_list.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "core/invariant.hpp"
#include "device/abi/simt_design.hpp"
#include "operation/groups.hpp"

namespace gemmery::templates {
namespace {

constexpr std::int64_t farthest_line = std::numeric_limits<int>::max();

// True if the kernel reads matrices of an operand as column major. A kernel for any strides gets
// the layout of the list.
bool is_column_major(const OperandRule& rule, const MatrixType& of_list) {
  if (rule.layout != LayoutRule::any) return rule.layout == LayoutRule::column;
  const std::int64_t columns = of_list.column_stride;
  return (columns != 0 && columns != 1) || of_list.row_stride == 1;
}

// find_list_failure has refused others.
int line_of(bool is_column, const MatrixType& matrix) {
  const std::int64_t line = is_column ? matrix.column_stride : matrix.row_stride;
  require(line >= -farthest_line && line <= farthest_line, "lines of a list are too far apart");
  return static_cast<int>(line);
}

// Which operands the kernel reads as column major.
struct ListedLayouts {
  bool a, b, c, out;

  ListedLayouts(const GemmProblem& problem, const OperandRules& rules)
      : a(is_column_major(rules.a, problem.a)),
        b(is_column_major(rules.b, problem.b)),
        c(problem.c && is_column_major(rules.c, *problem.c)),
        out(is_column_major(rules.out, problem.out)) {}

  // The transpose of a column-major matrix is row major.
  unsigned column_major(bool is_turned) const {
    const auto bit = [&](bool is_column, abi::ColumnMajor value) {
      return is_column != is_turned ? static_cast<unsigned>(value) : 0U;
    };
    return bit(is_turned ? b : a, abi::a_is_column) | bit(is_turned ? a : b, abi::b_is_column) |
           bit(c, abi::c_is_column) | bit(out, abi::out_is_column);
  }
};

// Returns the tiles of all problems.
template <unsigned most>
unsigned fill(const GemmArguments& arguments, const ListedKernel& kernel,
              abi::ProblemsOfList<most>& list) {
  const ListedLayouts layouts(arguments.problem(), kernel.rules);
  const auto& problems = arguments.group_memory()->list;
  unsigned tiles = 0;
  for (std::size_t at = 0; at < problems.size(); ++at) {
    const GemmArguments& one = problems[at];
    const GemmProblem& problem = one.problem();
    const int a_line = line_of(layouts.a, problem.a);
    const int b_line = line_of(layouts.b, problem.b);
    list.a[at] = kernel.is_turned ? one.b().data() : one.a().data();
    list.b[at] = kernel.is_turned ? one.a().data() : one.b().data();
    list.a_line[at] = kernel.is_turned ? b_line : a_line;
    list.b_line[at] = kernel.is_turned ? a_line : b_line;
    list.out[at] = one.out().data();
    list.out_line[at] = line_of(layouts.out, problem.out);
    list.alpha[at] = one.alpha();
    list.m[at] = static_cast<unsigned>(kernel.is_turned ? problem.n : problem.m);
    list.n[at] = static_cast<unsigned>(kernel.is_turned ? problem.m : problem.n);
    // With alpha = 0, A and B are not read, so that no NaN of theirs reaches out.
    list.k[at] = one.alpha() == 0 ? 0U : static_cast<unsigned>(problem.k);
    list.first_tile[at] = tiles;
    tiles +=
        abi::tiles_along(list.m[at], kernel.tile_m) * abi::tiles_along(list.n[at], kernel.tile_n);
  }
  list.count = static_cast<unsigned>(problems.size());
  list.first_tile[list.count] = tiles;
  list.column_major = layouts.column_major(kernel.is_turned);
  return tiles;
}

}  // namespace

bool is_list(const Groups& groups) noexcept { return groups.sizes == GroupSizes::list; }

std::string find_list_failure(const GemmProblem& problem) {
  if (!problem.groups || !is_list(*problem.groups)) return {};
  const std::int64_t most = problem.c ? abi::ProblemListWithC::most : abi::ProblemList::most;
  if (problem.l > most)
    return fmt::format("groups: expected at most {} problems in a list{} on a GPU, got {}", most,
                       problem.c ? " with C" : "", problem.l);
  std::string failure;
  const auto check = [&](const char* operand, const MatrixType& matrix) {
    for (const std::int64_t stride : {matrix.row_stride, matrix.column_stride})
      if (failure.empty() && (stride > farthest_line || stride < -farthest_line))
        failure = fmt::format(
            "{}: expected rows (columns) less than 2^31 elements apart in a list on a GPU, got {}",
            operand, stride);
  };
  check("A", problem.a);
  check("B", problem.b);
  check("out", problem.out);
  if (problem.c) check("C", *problem.c);
  return failure;
}

unsigned fill_problem_list(const GemmArguments& arguments, const ListedKernel& kernel,
                           abi::ProblemList& list) {
  return fill(arguments, kernel, list.problems);
}

unsigned fill_problem_list(const GemmArguments& arguments, const ListedKernel& kernel,
                           abi::ProblemListWithC& list) {
  const bool is_column = is_column_major(kernel.rules.c, *arguments.problem().c);
  const auto& problems = arguments.group_memory()->list;
  for (std::size_t at = 0; at < problems.size(); ++at) {
    list.c[at] = problems[at].c()->data();
    list.c_line[at] = line_of(is_column, *problems[at].problem().c);
    list.beta[at] = problems[at].beta();
  }
  return fill(arguments, kernel, list.problems);
}

unsigned set_problem_list(const GemmArguments& arguments, const ListedKernel& kernel,
                          runtime::LaunchPlan& plan) {
  const auto set = [&](auto list) {
    const unsigned tiles = fill_problem_list(arguments, kernel, list);
    plan.set_parameters(list);
    return tiles;
  };
  return arguments.problem().c ? set(abi::ProblemListWithC{}) : set(abi::ProblemList{});
}

}  // namespace gemmery::templates
