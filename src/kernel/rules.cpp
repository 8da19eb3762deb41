// SPDX-License-Identifier: Apache-2.0
// Operand rules, checked in the order in which a user reads operands.
#include "kernel/rules.hpp"

#include <gemmery/error.hpp>
#include <gemmery/family.hpp>

#include <algorithm>
#include <atomic>
#include <string>

namespace gemmery::kernel {
namespace {

std::atomic<bool> needs_determinism{false};

// An operand of a problem and its rule.
struct Pairing {
  const char* name;
  const OperandRule& rule;
  const MatrixType& matrix;
  std::int64_t rows;
  std::int64_t columns;
};

bool keeps_layout(const Pairing& pair) noexcept {
  return kernel::keeps_layout(pair.rule.layout, pair.matrix, pair.rows, pair.columns);
}

std::uint8_t alignment_of(const Pairing& pair) noexcept {
  return run_alignment(pair.rule.layout, pair.matrix, pair.rows, pair.columns);
}

bool keeps_rule(const Pairing& pair) noexcept {
  return pair.rule.dtype == pair.matrix.dtype && keeps_layout(pair) &&
         alignment_of(pair) % pair.rule.alignment == 0;
}

std::string expected_got(const Pairing& pair, const std::string& what, std::string_view expected,
                         std::string_view got) {
  return std::string(pair.name) + ": expected " + what + " " + std::string(expected) + ", got " +
         std::string(got);
}

Status check_pairing(const Pairing& pair) {
  if (pair.rule.dtype != pair.matrix.dtype) {
    return Status::fail(
        expected_got(pair, "element type", name(pair.rule.dtype), name(pair.matrix.dtype)));
  }
  if (!keeps_layout(pair)) {
    return Status::fail(expected_got(pair, "layout", name(pair.rule.layout),
                                     name(layout_of(pair.matrix, pair.rows, pair.columns))));
  }
  if (alignment_of(pair) % pair.rule.alignment != 0) {
    return Status::fail(expected_got(pair, "alignment in bytes of",
                                     std::to_string(pair.rule.alignment),
                                     std::to_string(alignment_of(pair))));
  }
  return Status::success();
}

Pairing pair_a(const OperandRules& rules, const GemmProblem& problem) noexcept {
  return {"A", rules.a, problem.a, problem.m, problem.k};
}
Pairing pair_b(const OperandRules& rules, const GemmProblem& problem) noexcept {
  return {"B", rules.b, problem.b, problem.k, problem.n};
}
Pairing pair_out(const OperandRules& rules, const GemmProblem& problem) noexcept {
  return {"out", rules.out, problem.out, problem.m, problem.n};
}
Pairing pair_c(const OperandRules& rules, const GemmProblem& problem) noexcept {
  return {"C", rules.c, *problem.c, problem.m, problem.n};
}

// Without a `math`, 8-bit floats have promoted accumulators.
bool serves_math(Math kernel, Math problem) noexcept {
  return kernel == problem || (kernel == Math::fp8_promoted && problem == Math::native);
}

}  // namespace

bool keeps_rules(const OperandRules& rules, const GemmProblem& problem) noexcept {
  return rules.accumulator == problem.accumulator && serves_math(rules.math, problem.math) &&
         rules.has_c == problem.c.has_value() && keeps_rule(pair_a(rules, problem)) &&
         keeps_rule(pair_b(rules, problem)) && keeps_rule(pair_out(rules, problem)) &&
         (!rules.has_c || keeps_rule(pair_c(rules, problem)));
}

Status check_rules(const OperandRules& rules, const GemmProblem& problem) {
  for (const Pairing& pair :
       {pair_a(rules, problem), pair_b(rules, problem), pair_out(rules, problem)}) {
    if (Status status = check_pairing(pair); !status) return status;
  }
  if (rules.has_c != problem.c.has_value()) {
    return Status::fail(rules.has_c ? "C: expected a tensor (beta may be 0), got none"
                                    : "C: expected none, got a tensor");
  }
  if (rules.has_c) {
    if (Status status = check_pairing(pair_c(rules, problem)); !status) return status;
  }
  if (rules.accumulator != problem.accumulator) {
    return Status::fail("accumulator: expected " + std::string(name(rules.accumulator)) + ", got " +
                        std::string(name(problem.accumulator)));
  }
  if (!serves_math(rules.math, problem.math)) {
    return Status::fail("math: expected " + std::string(name(rules.math)) + ", got " +
                        std::string(name(problem.math)));
  }
  return Status::success();
}

bool keeps_layout(LayoutRule layout, const MatrixType& matrix, std::int64_t rows,
                  std::int64_t columns) noexcept {
  if (rows == 0 || columns == 0) return true;
  switch (layout) {
    case LayoutRule::any:
      return true;
    case LayoutRule::row:
      return columns == 1 || matrix.column_stride == 1;
    case LayoutRule::column:
      return rows == 1 || matrix.row_stride == 1;
  }
  return false;
}

std::uint8_t run_alignment(LayoutRule layout, const MatrixType& matrix, std::int64_t rows,
                           std::int64_t columns) noexcept {
  const bool steps_by_one =
      (layout == LayoutRule::row && columns <= 1 && matrix.row_stride == 1) ||
      (layout == LayoutRule::column && rows <= 1 && matrix.column_stride == 1);
  const auto element_bytes = static_cast<std::uint8_t>(byte_width(matrix.dtype));
  return steps_by_one ? std::min(element_bytes, matrix.alignment) : matrix.alignment;
}

// --- determinism --------------------------------------------------------------------------------

void require_determinism() noexcept { needs_determinism.store(true, std::memory_order_relaxed); }

bool is_determinism_required() noexcept {
  return needs_determinism.load(std::memory_order_relaxed);
}

bool keeps_determinism(const Kernel& kernel) {
  return !is_determinism_required() || kernel.family().is_deterministic(kernel);
}

Status check_determinism(const Kernel& kernel) {
  if (keeps_determinism(kernel)) return Status::success();
  return Status::fail(
      "determinism: expected a kernel that gives equal bits for equal inputs, which "
      "GEMMERY_DETERMINISTIC asks for, got one whose bits may vary");
}

// --- streams ------------------------------------------------------------------------------------

namespace {

[[noreturn]] void throw_stream_error(Stream stream, Device operands) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "stream",
               .expected = "a stream of the operands' device, " + to_string(operands),
               .got = "a stream of " + to_string(stream.device()),
               .hint = operands.is_cpu() ? "pass Stream::cpu()" : ""});
}

}  // namespace

void check_stream(Stream stream, Device operands) {
  if (stream.device() != operands) [[unlikely]]
    throw_stream_error(stream, operands);
}

// --- targets ------------------------------------------------------------------------------------

bool is_compiled_for(Target code, Target asked) noexcept {
  return code == asked || (code.suffix == 0 && code.architecture == asked.architecture);
}

bool serves_target(Target code, Target asked) noexcept {
  if (asked.suffix == 0) return runs_on(code, asked);
  return is_compiled_for(code, asked);
}

}  // namespace gemmery::kernel
