// SPDX-License-Identifier: Apache-2.0
// Random expressions over all operations, with parts that are used more than once, and their values
// without any rewriting.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <gemmery/dtype.hpp>
#include <gemmery/epilogue.hpp>

#include "core/number.hpp"
#include "epilogue/evaluate.hpp"
#include "epilogue/expressed.hpp"
#include "epilogue/formulas.hpp"
#include "epilogue/graph.hpp"

namespace gemmery::epilogue::tests {

inline constexpr std::array<const char*, 3> operand_names{"bias", "C", "scale"};

struct Drawn {
  std::vector<Expression> numbers;
  std::vector<Expression> truths;
};

class RandomExpressions {
 public:
  explicit RandomExpressions(std::uint64_t seed) : RandomExpressions(seed, all_operations()) {}
  RandomExpressions(std::uint64_t seed, std::vector<Op> operations)
      : random_(seed), operations_(std::move(operations)) {}

  static std::vector<Op> all_operations() {
    return {
#define GEMMERY_OP(name, ...) Op::name,
#include <gemmery/ops.def>
    };
  }

  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }

  // The types of casts; if empty, expressions have no casts.
  std::vector<DType> cast_types = [] {
    std::vector<DType> all;
    for (const DTypeFacts& row : dtype_table)
      if (number::is_host_number(row.dtype)) all.push_back(row.dtype);
    return all;
  }();

  // Draws leaves, then operations on earlier values; the last number is the result.
  Drawn draw(std::size_t operations) {
    Drawn drawn{{accum()}, {}};
    for (const char* const name : operand_names) drawn.numbers.push_back(operand(name));
    for (int count = 0; count < 4; ++count) drawn.numbers.push_back(constant());
    drawn.truths.push_back(drawn.numbers[0] < drawn.numbers[below(drawn.numbers.size())]);
    for (; operations > 0; --operations)
      if (!cast_types.empty() && below(8) == 0)
        add_cast(drawn);
      else
        add_operation(drawn);
    return drawn;
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  static constexpr double nan = std::numeric_limits<double>::quiet_NaN();

  double constant() {
    constexpr std::array<double, 20> values{
        0,   -0.0, 1,     -1,    2,     -2,     0.5,    0.25,     3,         6,
        0.1, 3e9,  65504, -1e39, 1e-46, -1e-40, 0x1p31, infinity, -infinity, nan};
    return values[below(values.size())];
  }

  const Expression& number(const Drawn& drawn) {
    // Recent values are used most, so that expressions grow.
    const std::size_t count = drawn.numbers.size();
    return drawn
        .numbers[below(2) == 0 ? count - 1 - below(std::min<std::size_t>(count, 4)) : below(count)];
  }

  const Expression& truth(const Drawn& drawn) { return drawn.truths[below(drawn.truths.size())]; }

  void add_cast(Drawn& drawn) {
    const DType dtype = cast_types[below(cast_types.size())];
    drawn.numbers.push_back(cast(number(drawn), dtype, static_cast<Rounding>(below(2)),
                                 static_cast<Overflow>(below(2))));
  }

  void add_operation(Drawn& drawn) {
    const Op op = operations_[below(operations_.size())];
    const OpRow& row = row_of(op);
    std::vector<Expression> operands;
    for (int at = 0; at < row.arity; ++at) {
      const bool is_condition = row.kind == OpKind::choose && at == 0;
      const bool is_counted =
          (row.kind == OpKind::real || row.kind == OpKind::choose) && below(10) == 0;
      const bool wants_truth = row.kind == OpKind::logical || is_condition || is_counted;
      operands.push_back(wants_truth ? truth(drawn) : number(drawn));
    }
    // The exponent is 3, since squares are rounded once, which the host's pow does not guarantee.
    if (op == Op::pow) operands[1] = Expression(3);
    Expression made = epilogue::apply(op, operands);
    const bool is_truth = row.kind == OpKind::compare || row.kind == OpKind::logical;
    (is_truth ? drawn.truths : drawn.numbers).push_back(std::move(made));
  }

  std::mt19937_64 random_;
  std::vector<Op> operations_;
};

// Values of accum and of the operands, in the order of `operand_names`.
using Values = std::array<double, 4>;

inline double evaluate_as_written(const Expressed& value, const Values& values) {
  if (value.kind == NodeKind::accumulator) return values[0];
  if (value.kind == NodeKind::constant) return value.constant;
  if (value.kind == NodeKind::input) {
    for (std::size_t at = 0; at < operand_names.size(); ++at)
      if (value.name == operand_names[at]) return values[1 + at];
  }
  std::array<double, 3> operands{};
  for (std::size_t at = 0; at < 3 && value.operands[at] != nullptr; ++at)
    operands[at] = evaluate_as_written(*value.operands[at], values);
  if (value.kind == NodeKind::cast) return cast_value(operands[0], value.cast);
  return formula_of<double>(value.op)(operands[0], operands[1], operands[2]);
}

}  // namespace gemmery::epilogue::tests
