// SPDX-License-Identifier: Apache-2.0
// Operand rules, checked in the order in which a user reads operands.
#include "kernel/rules.hpp"

#include <gemmery/error.hpp>
#include <gemmery/family.hpp>

#include <algorithm>
#include <atomic>
#include <string>

#include "kernel/operand_programs.hpp"

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

// "e4m3.swizzled.f32.zero.s8", "none"
std::string text_of(const CompanionRules& rules) {
  std::string text;
  const auto append = [&](const std::string& word) { text += (text.empty() ? "" : ".") + word; };
  for (const CompanionRule& scale : rules.scales) {
    if (!scale.is_used()) continue;
    append(std::string(alias(scale.dtype())));
    if (scale.layout() == ScaleLayout::swizzled_128x4) append("swizzled");
  }
  if (rules.zero_point.is_used()) append("zero." + std::string(alias(rules.zero_point.dtype())));
  if (rules.has_table) append("table");
  if (rules.is_prepared) append("fragments");
  return text.empty() ? "none" : text;
}

Status check_companions(const OperandRules& rules, const GemmProblem& problem, bool is_a) {
  const CompanionRules& expected = is_a ? rules.a_companions : rules.b_companions;
  const CompanionRules got = companion_rules(is_a ? problem.a_companions : problem.b_companions);
  if (expected == got) return Status::success();
  if (expected.is_prepared != got.is_prepared)
    return Status::fail(std::string(is_a ? "A" : "B") + ": expected elements " +
                        (expected.is_prepared ? "prepared for this kernel (prepare_operand), got "
                                                "elements in the order of their strides"
                                              : "in the order of their strides, got elements that "
                                                "are prepared for another kernel"));
  return Status::fail(std::string(is_a ? "A" : "B") + ": expected scales " + text_of(expected) +
                      " in the main loop, got " + text_of(got));
}

// Without a `math`, 8-bit floats have promoted accumulators.
bool serves_math(Math kernel, Math problem) noexcept {
  return kernel == problem || (kernel == Math::fp8_promoted && problem == Math::native);
}

}  // namespace

bool keeps_rules(const OperandRules& rules, const GemmProblem& problem) noexcept {
  return rules.accumulator == problem.accumulator && serves_math(rules.math, problem.math) &&
         rules.has_c == problem.c.has_value() &&
         rules.a_companions == companion_rules(problem.a_companions) &&
         rules.b_companions == companion_rules(problem.b_companions) &&
         serves_programs(rules.programs, problem) && keeps_rule(pair_a(rules, problem)) &&
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
  for (const bool is_a : {true, false})
    if (Status status = check_companions(rules, problem, is_a); !status) return status;
  if (Status status = check_programs(rules.programs, problem); !status) return status;
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

CompanionRules companion_rules(const OperandCompanions& companions) noexcept {
  CompanionRules rules;
  for (std::size_t i = 0; i < std::min(companions.scales.size(), rules.scales.size()); ++i)
    rules.scales[i] = {companions.scales[i].values.dtype, companions.scales[i].layout};
  if (companions.zero_point)
    rules.zero_point = {companions.zero_point->values.dtype, ScaleLayout::strided};
  rules.has_table = companions.table.has_value();
  rules.is_prepared = companions.order == ElementOrder::fragments;
  return rules;
}

namespace {

constexpr std::string_view companion_tag = "_scaled-";

// A word up to the next point.
std::string_view take_part(std::string_view& text) {
  const std::size_t end = text.find('.');
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

std::optional<DType> dtype_of(std::string_view alias) {
  const auto found = std::ranges::find(dtype_table, alias, &DTypeFacts::alias);
  return found == dtype_table.end() ? std::nullopt : std::optional(found->dtype);
}

// The inverse of text_of.
std::optional<CompanionRules> parse_rules(const std::string_view text) {
  CompanionRules rules;
  std::size_t count = 0;
  for (std::string_view rest = text == "none" ? std::string_view{} : text; !rest.empty();) {
    const std::string_view part = take_part(rest);
    if (part == "table") {
      rules.has_table = true;
      continue;
    }
    if (part == "fragments") {
      rules.is_prepared = true;
      continue;
    }
    const auto dtype = dtype_of(part == "zero" ? take_part(rest) : part);
    if (!dtype || count == rules.scales.size() + 1) return std::nullopt;
    if (part == "zero") {
      rules.zero_point = {*dtype, ScaleLayout::strided};
      continue;
    }
    if (count == rules.scales.size()) return std::nullopt;
    const bool is_swizzled = rest == "swizzled" || rest.starts_with("swizzled.");
    if (is_swizzled) take_part(rest);
    rules.scales[count++] = {*dtype,
                             is_swizzled ? ScaleLayout::swizzled_128x4 : ScaleLayout::strided};
  }
  if (text_of(rules) != text) return std::nullopt;
  return rules;
}

}  // namespace

std::string companion_suffix(const OperandRules& rules) {
  const std::string programs = programs_suffix(rules.programs);
  if (!rules.a_companions.are_used() && !rules.b_companions.are_used()) return programs;
  return std::string(companion_tag) + text_of(rules.a_companions) + "-" +
         text_of(rules.b_companions) + programs;
}

std::optional<CompanionSuffix> take_companion_suffix(std::string_view& name) {
  const auto programs = take_programs_suffix(name);
  if (!programs) return std::nullopt;
  const std::size_t at = name.rfind(companion_tag);
  if (at == std::string_view::npos) return CompanionSuffix{.a = {}, .b = {}, .programs = *programs};
  const std::string_view text = name.substr(at + companion_tag.size());
  const std::size_t middle = text.find('-');
  if (middle == std::string_view::npos) return std::nullopt;
  const auto a = parse_rules(text.substr(0, middle));
  const auto b = parse_rules(text.substr(middle + 1));
  if (!a || !b || (!a->are_used() && !b->are_used())) return std::nullopt;
  name = name.substr(0, at);
  return CompanionSuffix{*a, *b, *programs};
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
