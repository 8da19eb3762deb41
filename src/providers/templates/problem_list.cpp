// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/problem_list.hpp"

#include <cstddef>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include <gemmery/error.hpp>

#include "device/abi/simt_design.hpp"
#include "operation/groups.hpp"

namespace gemmery::templates {
namespace {

// An operand of all problems: the layout in which the kernel reads it.
struct ListedOperand {
  std::string_view name;
  bool is_column;
};

// A kernel for any strides gets the layout of the list.
ListedOperand listed_operand(std::string_view name, const OperandRule& rule,
                             const MatrixType& of_list) {
  if (rule.layout == LayoutRule::any)
    return {name, of_list.column_stride > 1 || of_list.row_stride == 1};
  return {name, rule.layout == LayoutRule::column};
}

int line_of(const ListedOperand& operand, const MatrixType& matrix, std::size_t problem) {
  const std::int64_t line = operand.is_column ? matrix.column_stride : matrix.row_stride;
  if (line >= std::numeric_limits<int>::min() && line <= std::numeric_limits<int>::max())
    return static_cast<int>(line);
  throw Error({.kind = ErrorKind::unsupported,
               .operand = fmt::format("{} of problem {}", operand.name, problem),
               .expected = "rows (columns) less than 2^31 elements apart in a list on a GPU",
               .got = std::to_string(line),
               .hint = "run the problem by itself"});
}

struct ListedOperands {
  ListedOperand a, b, c, out;

  ListedOperands(const GemmProblem& problem, const OperandRules& rules)
      : a(listed_operand("A", rules.a, problem.a)),
        b(listed_operand("B", rules.b, problem.b)),
        c(listed_operand("C", rules.c, problem.c ? *problem.c : problem.out)),
        out(listed_operand("out", rules.out, problem.out)) {}

  // The transpose of a column-major matrix is row major.
  unsigned column_major(bool is_turned) const {
    const auto bit = [&](const ListedOperand& operand, abi::ColumnMajor value) {
      return operand.is_column != is_turned ? static_cast<unsigned>(value) : 0U;
    };
    return bit(is_turned ? b : a, abi::a_is_column) | bit(is_turned ? a : b, abi::b_is_column) |
           bit(c, abi::c_is_column) | bit(out, abi::out_is_column);
  }
};

template <unsigned most>
void fill(const GemmArguments& arguments, const ListedKernel& kernel,
          const ListedOperands& operands, abi::ProblemsOfList<most>& list) {
  const auto& problems = arguments.group_memory()->list;
  unsigned tiles = 0;
  for (std::size_t at = 0; at < problems.size(); ++at) {
    const GemmArguments& one = problems[at];
    const GemmProblem& problem = one.problem();
    const int a_line = line_of(operands.a, problem.a, at);
    const int b_line = line_of(operands.b, problem.b, at);
    list.a[at] = kernel.is_turned ? one.b().data() : one.a().data();
    list.b[at] = kernel.is_turned ? one.a().data() : one.b().data();
    list.a_line[at] = kernel.is_turned ? b_line : a_line;
    list.b_line[at] = kernel.is_turned ? a_line : b_line;
    list.out[at] = one.out().data();
    list.out_line[at] = line_of(operands.out, problem.out, at);
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
  list.column_major = operands.column_major(kernel.is_turned);
}

}  // namespace

bool is_list(const Groups& groups) noexcept { return groups.sizes == GroupSizes::list; }

std::string find_list_failure(const GemmProblem& problem) {
  if (!problem.groups || !is_list(*problem.groups)) return {};
  const std::int64_t most = problem.c ? abi::ProblemListWithC::most : abi::ProblemList::most;
  if (problem.l <= most) return {};
  return fmt::format("groups: expected at most {} problems in a list{} on a GPU, got {}", most,
                     problem.c ? " with C" : "", problem.l);
}

unsigned set_problem_list(const GemmArguments& arguments, const ListedKernel& kernel,
                          runtime::LaunchPlan& plan) {
  const ListedOperands operands(arguments.problem(), kernel.rules);
  if (!arguments.problem().c) {
    abi::ProblemList list{};
    fill(arguments, kernel, operands, list.problems);
    plan.set_parameters(list);
    return list.problems.first_tile[list.problems.count];
  }
  abi::ProblemListWithC list{};
  fill(arguments, kernel, operands, list.problems);
  const auto& problems = arguments.group_memory()->list;
  for (std::size_t at = 0; at < problems.size(); ++at) {
    list.c[at] = problems[at].c()->data();
    list.c_line[at] = line_of(operands.c, *problems[at].problem().c, at);
    list.beta[at] = problems[at].beta();
  }
  plan.set_parameters(list);
  return list.problems.first_tile[list.problems.count];
}

}  // namespace gemmery::templates
