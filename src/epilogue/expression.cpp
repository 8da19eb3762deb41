// SPDX-License-Identifier: Apache-2.0
// Expressions as C++ writes them; errors are thrown where they are written.
#include <fmt/format.h>
#include <gemmery/epilogue.hpp>
#include <gemmery/error.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/number.hpp"
#include "epilogue/expressed.hpp"
#include "epilogue/refusal.hpp"

namespace gemmery::epilogue {
namespace {

using Shared = std::shared_ptr<const Expressed>;

const Shared& value_of(const Expression& x) {
  if (x.value() == nullptr)
    refuse("a value", "an expression that was moved from", "copy expressions, copies are cheap");
  return x.value();
}

Expression expression_of(Expressed expressed) {
  return Expression(std::make_shared<const Expressed>(std::move(expressed)));
}

bool wants_truth(OpKind kind, std::size_t operand) {
  return kind == OpKind::logical || (kind == OpKind::choose && operand == 0);
}

// A truth value may be used as a number, 0 or 1, in arithmetic. A comparison of truth values, or a
// number as a condition, is more likely a mistake.
void check_operand(const OpRow& row, std::size_t operand, const Expressed& value) {
  if (wants_truth(row.kind, operand) && !value.is_truth)
    refuse(
        "a truth value as operand " + std::to_string(operand + 1) + " of " + std::string(row.name),
        "a number", "compare it: x != 0");
  if (row.kind == OpKind::compare && value.is_truth)
    refuse("numbers as operands of " + std::string(row.name), "a truth value",
           "comparisons do not chain: a < b and b < c; where(x, 1, 0) makes a number of one");
}

void check_depth(int depth) {
  if (depth <= most_depth) return;
  throw Error({.kind = ErrorKind::unsupported,
               .operand = "epilogue",
               .expected = "at most " + std::to_string(most_depth) +
                           " operations that stand within each other",
               .got = "more",
               .hint = "balance the long sum or product"});
}

constexpr std::array<std::string_view, 16> reserved_words{
    "accum", "and",  "or",   "not",   "if",    "else", "inf",    "nan",
    "True",  "true", "None", "False", "false", "def",  "lambda", "return"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

bool is_reserved(std::string_view name) noexcept {
  return std::ranges::find(reserved_words, name) != reserved_words.end();
}

bool is_operand_name(std::string_view name) noexcept {
  const auto is_inner = [](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= 64 && is_letter(name.front()) &&
         std::ranges::all_of(name, is_inner) && !is_reserved(name);
}

Expression::Expression(double constant)
    : value_(std::make_shared<const Expressed>(
          Expressed{.kind = NodeKind::constant, .constant = constant})) {}

Expression accum() { return expression_of({.kind = NodeKind::accumulator}); }

Expression operand(std::string_view name) {
  if (!is_operand_name(name) || name == "D")
    refuse(
        "a name of at most 64 letters, digits and '_' that begins with a letter",
        '"' + std::string(name.substr(0, 80)) + '"',
        is_reserved(name) || name == "D" ? "this word has a meaning of its own in programs" : "");
  return expression_of({.kind = NodeKind::input, .name = std::string(name)});
}

Expression cast(const Expression& x, DType dtype, Rounding rounding, Overflow overflow) {
  const Shared& value = value_of(x);
  if (static_cast<std::size_t>(dtype) >= std::size(dtype_table))
    refuse("a cast to an element type", fmt::format("number {}", static_cast<int>(dtype)),
           "the types are those of gemmery::DType");
  if (!number::is_host_number(dtype))
    refuse("a cast to a type that is a number by itself", std::string(gemmery::name(dtype)),
           "scales and packed 4-bit types belong to scaled_gemm");
  check_depth(value->depth + 1);
  return expression_of({.kind = NodeKind::cast,
                        .operands = {value},
                        .cast = {dtype, rounding, overflow},
                        .depth = value->depth + 1});
}

Expression reduce(const Expression& x, Reduction reduction, Block block) {
  const Shared& value = value_of(x);
  if (reduction == Reduction::none)
    refuse("a reduction of a block", "none of them", "they are sum, max, min and amax");
  for (const std::int32_t extent : {block.rows, block.columns})
    if (extent < 0 || extent > most_block_extent)
      refuse("a block of 1 to 2^20 rows and columns, or 0 for all",
             fmt::format("{} by {}", block.rows, block.columns), "");
  check_depth(value->depth + 1);
  return expression_of({.kind = NodeKind::reduction,
                        .operands = {value},
                        .reduction = {reduction, block},
                        .depth = value->depth + 1});
}

Expression apply(Op op, std::span<const Expression> operands) {
  if (static_cast<std::size_t>(op) >= count_ops())
    refuse("an operation", fmt::format("number {}", static_cast<int>(op)),
           "the operations are those of gemmery::epilogue::Op");
  const OpRow& row = row_of(op);
  if (std::cmp_not_equal(operands.size(), row.arity))
    refuse(std::to_string(row.arity) + (row.arity == 1 ? " operand of " : " operands of ") +
               std::string(row.name),
           std::to_string(operands.size()), "");
  Expressed made{.kind = NodeKind::operation,
                 .op = op,
                 .is_truth = row.kind == OpKind::compare || row.kind == OpKind::logical};
  std::size_t at = 0;
  for (const Expression& x : operands) {
    const Shared& value = value_of(x);
    check_operand(row, at, *value);
    made.depth = std::max(made.depth, value->depth + 1);
    made.operands[at++] = value;
  }
  check_depth(made.depth);
  return expression_of(std::move(made));
}

}  // namespace gemmery::epilogue
