// SPDX-License-Identifier: Apache-2.0
// Runs a kernel on guarded operands: fills, uploads, runs, downloads, compares with the oracle,
// looks for changed bytes.
#include "api/trial.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <gemmery/error.hpp>
#include <gemmery/family.hpp>

#include "api/bound_problem.hpp"
#include "api/companion_operands.hpp"
#include "api/conv_operands.hpp"
#include "api/group_surroundings.hpp"
#include "api/placed_operands.hpp"
#include "core/number.hpp"
#include "operation/groups.hpp"
#include "platform/float_mode.hpp"

namespace gemmery::api {
namespace {

// --- which numbers ---

// Significand bits of the accumulators.
int exact_accumulator_bits(const OperandRules& rules) {
  if (rules.math == Math::fp8_fast) return 12;
  if (rules.math == Math::f16 || rules.accumulator == DType::float16) return 11;
  if (rules.accumulator == DType::float64) return 53;
  return is_integer(rules.accumulator) ? 31 : 24;
}

// The largest magnitude in an integer fill such that the sum of k products stays exact, at most 2
// for floats.
std::int64_t largest_factor(const ProblemLine& line, const OperandRules& rules) {
  const double sum_limit = std::ldexp(1.0, exact_accumulator_bits(rules)) - 1;
  const double square = sum_limit / static_cast<double>(std::max<std::int64_t>(line.problem.k, 1));
  const auto factor = static_cast<std::int64_t>(std::sqrt(square));
  return std::clamp<std::int64_t>(factor, 1, is_integer(rules.accumulator) ? 255 : 2);
}

Numbers integers_of(DType dtype, std::int64_t limit) {
  Numbers numbers{.least = -limit, .most = limit, .is_integer = is_integer(dtype)};
  if (bit_width(dtype) <= 8 && is_integer(dtype)) {
    const number::Rounding range = number::rounding_of(dtype);
    numbers.least = std::max(-limit, static_cast<std::int64_t>(range.lowest));
    numbers.most = std::min(limit, static_cast<std::int64_t>(range.largest));
  }
  if (facts(dtype).kind == DTypeKind::unsigned_integer) numbers.least = 0;
  return numbers;
}

// For C: large enough that integer outputs sometimes saturate.
std::int64_t largest_addend(DType dtype) { return is_integer(dtype) ? 255 : 4; }

enum class Role : std::uint8_t { a = 1, b, c, out, epilogue, companion = 100 };

// The smallest normal number of a floating type, and a bound of its largest ones.
double smallest_normal(DType dtype) {
  return std::ldexp(1.0, 2 - (1 << (facts(dtype).exponent_bits - 1)));
}
double nearly_largest(DType dtype) {
  return std::ldexp(1.0, (1 << (facts(dtype).exponent_bits - 1)) - 2);
}

// Fills A with subnormal numbers: over their whole range, with a B that makes products normal
// again; or the smallest ones, with ordinary numbers in B, whose products tensor cores truncate.
void apply_subnormal(const GemmProblem& problem, Role role, bool is_least, Numbers& numbers) {
  const double tiny = smallest_normal(problem.a.dtype);
  if (is_least) {
    if (role == Role::a) numbers.scale = std::ldexp(tiny, 1 - facts(problem.a.dtype).mantissa_bits);
    return;
  }
  numbers.fill = Fill::uniform;
  numbers.scale = role == Role::a ? tiny : std::min(1 / tiny, nearly_largest(problem.b.dtype) / 2);
}

bool rounds_operands(const Trial& trial) {
  return trial.line.problem.math != Math::native && trial.line.problem.a.dtype == DType::float32;
}

void apply_pattern(const Trial& trial, Role role, Numbers& numbers) {
  numbers.pattern = trial.pattern;
  // A math that rounds operands leaves subnormal ones few bits, as requested.
  if (trial.pattern != Pattern::subnormal || numbers.is_integer || rounds_operands(trial)) return;
  apply_subnormal(trial.line.problem, role, trial.options.seed % 4 == 3, numbers);
}

Numbers numbers_of(const Trial& trial, const OperandRules& rules, Role role, DType dtype) {
  const std::int64_t limit =
      role == Role::c ? largest_addend(dtype) : largest_factor(trial.line, rules);
  Numbers numbers = integers_of(dtype, limit);
  numbers.fill = trial.options.fill;
  numbers.scale = trial.scale;
  if (role == Role::a || role == Role::b) apply_pattern(trial, role, numbers);
  return numbers;
}

bool is_quarter(double x) { return std::nearbyint(4 * x) == 4 * x; }

// --- where it lies ---

Extents3 extents_out(const GemmProblem& p) {
  return as_extents3(operation::product_extents(p).out);
}
Extents3 extents_c(const GemmProblem& p) { return as_extents3(operation::addend_extents(p, *p.c)); }

GuardedOperand::Place place(const Trial& trial, const MatrixType& type, Extents3 extents,
                            Surroundings surroundings) {
  return {.type = type,
          .extents = extents,
          .surroundings = surroundings,
          .guard_bands = trial.options.guard_bands};
}

GuardedOperand::Place place_input(const Trial& trial, const OperandMemory& memory) {
  return place(trial, memory.type, memory.extents, Surroundings::poison);
}

// The steps of a trial, in order.
class TrialRun {
 public:
  TrialRun(const Trial& trial, const Kernel& kernel, Stream stream)
      : trial_(trial),
        kernel_(kernel),
        stream_(stream),
        operands_(trial, kernel.operands()),
        placed_(operands_, trial.line.problem, stream) {}

  VerifyReport run() {
    const std::optional<GuardedOperand> addend = addend_before();
    const GemmArguments arguments = placed_.arguments(trial_.line);
    const GuardedWorkspace workspace(kernel_.get_workspace_size(arguments), stream_);
    const RunOptions options{.stream = stream_,
                             .workspace = workspace.lend(),
                             .max_multiprocessors = trial_.max_multiprocessors};
    const std::vector<GuardedOperand> before = results_before();
    placed_.groups.put();
    kernel_.run(arguments, options);
    placed_.fetch();
    synchronize(stream_);
    VerifyReport report = judge_result(addend);
    report.guard_violations =
        placed_.violations() + workspace.changes() + changes_outside_groups(before);
    repeat(arguments, options, report);
    report.passed = report.passed && report.guard_violations == 0;
    expect_written(report);
    if (!report.passed && report.first_failure.empty())
      report.first_failure = std::to_string(report.guard_violations) + " bytes outside out changed";
    return report;
  }

 private:
  // C as the oracle reads it.
  std::optional<GuardedOperand> addend_before() const {
    if (!trial_.line.problem.c) return std::nullopt;
    return trial_.in_place ? operands_.out : *operands_.c;
  }

  VerifyReport judge_result(const std::optional<GuardedOperand>& addend) const {
    const std::optional<Tensor> c = addend ? std::optional(addend->here()) : std::nullopt;
    BoundGroups groups;
    if (operands_.groups)
      groups = {&*operands_.groups, operands_.groups->here(),
                operands_.groups->gather_bytes().data(), operands_.groups->scatter_bytes().data()};
    const GemmArguments arguments =
        bind_problem(trial_.line,
                     {operands_.a.here(), operands_.b.here(), operands_.out.here(), c,
                      epilogue_here(), views_of(operands_.companions)},
                     groups);
    const bool exact = trial_.options.fill == Fill::integers && !trial_.nan_inputs &&
                       is_exact_with_integers(trial_.line, kernel_.operands());
    if (trial_.inspect) trial_.inspect(arguments);
    return judge(arguments, declared_math_of(kernel_), exact);
  }

  // The results that have elements in no group: out, results of its shape, and reductions over
  // single rows (or columns).
  std::vector<const GuardedOperand*> results_with_outside() const {
    std::vector<const GuardedOperand*> list;
    const GemmProblem& problem = trial_.line.problem;
    if (!problem.groups || problem.groups->ragged == Ragged::k) return list;
    const bool is_of_rows = problem.groups->ragged == Ragged::m;
    const auto ragged_of = [&](const GuardedOperand& operand) {
      return is_of_rows ? operand.extents().rows : operand.extents().columns;
    };
    for (const GuardedOperand* const result : results()) {
      const bool is_one_of_all = result->extents().batch == operands_.out.extents().batch;
      const bool is_out = result == &operands_.out;
      const std::int64_t extent = ragged_of(operands_.out);
      if (is_out || (is_one_of_all && extent > 1 && ragged_of(*result) == extent))
        list.push_back(result);
    }
    return list;
  }

  std::vector<GuardedOperand> results_before() const {
    std::vector<GuardedOperand> copies;
    for (const GuardedOperand* const result : results_with_outside()) copies.push_back(*result);
    return copies;
  }

  std::int64_t changes_outside_groups(const std::vector<GuardedOperand>& before) const {
    if (before.empty()) return 0;
    const GroupSurroundings surroundings(trial_.line.problem, *operands_.groups);
    const std::vector<const GuardedOperand*> now = results_with_outside();
    std::int64_t count = 0;
    for (std::size_t i = 0; i < now.size(); ++i)
      count += surroundings.count_wrong(*now[i], before[i]);
    return count;
  }

  static std::vector<Tensor> views_of(const std::vector<GuardedOperand>& operands) {
    std::vector<Tensor> tensors;
    for (const GuardedOperand& operand : operands) tensors.push_back(operand.here());
    return tensors;
  }
  std::vector<Tensor> epilogue_here() const { return views_of(operands_.epilogue); }

  // out and the results of an epilogue.
  std::vector<const GuardedOperand*> results() const {
    std::vector<const GuardedOperand*> list{&operands_.out};
    const std::vector<EpilogueTensor> tensors = epilogue_tensors(trial_.line.problem);
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].is_result) list.push_back(&operands_.epilogue[i]);
    return list;
  }

  std::int64_t changes_since(const std::vector<std::vector<std::byte>>& before) const {
    const std::vector<const GuardedOperand*> now = results();
    std::int64_t count = 0;
    for (std::size_t i = 0; i < now.size(); ++i) count += now[i]->count_changes(before[i]);
    return count;
  }

  // Runs again from the same initial state and expects the same bits.
  void repeat(const GemmArguments& arguments, const RunOptions& options, VerifyReport& report) {
    std::vector<std::vector<std::byte>> first;
    for (const GuardedOperand* const result : results()) first.push_back(result->snapshot());
    for (int count = 1; count < trial_.repeats; ++count) {
      placed_.out.put();
      for (PlacedOperand& result : placed_.epilogue_results) result.put();
      kernel_.run(arguments, options);
      placed_.out.fetch();
      for (PlacedOperand& result : placed_.epilogue_results) result.fetch();
      synchronize(stream_);
      if (changes_since(first) == 0) continue;
      report.passed = false;
      report.first_failure = "run " + std::to_string(count + 1) + " gave other bits than the first";
      return;
    }
  }

  // A result may have the right value although it was never written.
  void expect_written(VerifyReport& report) const {
    std::int64_t unwritten = placed_.out.unwritten();
    for (const PlacedOperand& result : placed_.epilogue_results) unwritten += result.unwritten();
    if (unwritten == 0) return;
    report.passed = false;
    if (report.first_failure.empty()) {
      report.first_failure = std::to_string(unwritten) +
                             " bytes of results depend on registers or memory that nobody wrote";
    }
  }

  const Trial& trial_;
  const Kernel& kernel_;
  Stream stream_;
  TrialOperands operands_;
  PlacedOperands placed_;
};

std::optional<GuardedOperand> make_addend(const Trial& trial) {
  const GemmProblem& problem = trial.line.problem;
  if (!problem.c || trial.in_place) return std::nullopt;
  return GuardedOperand(place(trial, *problem.c, extents_c(problem), Surroundings::poison));
}

// From the first to the last byte of an operand.
double span_bytes(const MatrixType& type, const Extents3& extents) {
  const auto step = [](std::int64_t extent, std::int64_t stride) {
    return static_cast<double>(extent - 1) * std::abs(static_cast<double>(stride));
  };
  if (extents.is_empty()) return 0;
  const double matrix =
      step(extents.rows, type.row_stride) + step(extents.columns, type.column_stride) + 1;
  const double others = type.has_pointers() ? static_cast<double>(extents.batch - 1) * matrix
                                            : step(extents.batch, type.batch_stride);
  return static_cast<double>(byte_width(type.dtype)) * (matrix + others);
}

DrawnGroups draw_groups(const Trial& trial) {
  const GemmProblem& problem = trial.line.problem;
  constexpr std::uint64_t own_numbers = 1000;  // other than those of operands
  return trial.even_groups
             ? DrawnGroups::even(problem)
             : DrawnGroups::varied(problem, random_bits(trial.options.seed, own_numbers));
}

[[noreturn]] void throw_out_of_memory(const ProblemLine& line) {
  const GemmProblem& p = line.problem;
  const OperandMemory a = memory_of_a(p);
  const OperandMemory b = memory_of_b(p);
  double bytes = span_bytes(a.type, a.extents) + span_bytes(b.type, b.extents) +
                 span_bytes(p.out, extents_out(p));
  if (p.c) bytes += span_bytes(*p.c, extents_c(p));
  for (const CompanionTensor& companion : companion_tensors(p))
    bytes += span_bytes(companion.type.values, companion.extents);
  for (const EpilogueTensor& tensor : epilogue_tensors(p))
    bytes += span_bytes(tensor.type, tensor.extents);
  throw Error({.kind = ErrorKind::out_of_memory,
               .operand = to_string(line),
               .expected = fmt::format("host memory for operands of {:.0f} bytes and for copies of "
                                       "them to compare with",
                                       bytes),
               .got = "less",
               .hint = "a smaller problem"});
}

}  // namespace

TrialOperands::TrialOperands(const Trial& trial, const OperandRules& rules)
    : a(place_input(trial, memory_of_a(trial.line.problem))),
      b(place_input(trial, memory_of_b(trial.line.problem))),
      out(place(trial, trial.line.problem.out, extents_out(trial.line.problem),
                Surroundings::canary)),
      c(make_addend(trial)) {
  const auto fill = [&](GuardedOperand& operand, Role role) {
    Numbers numbers = numbers_of(trial, rules, role, operand.type().dtype);
    numbers.seed = random_bits(trial.options.seed, static_cast<std::uint64_t>(role));
    operand.fill(numbers);
  };
  if (trial.nan_inputs) {
    a.poison_elements();
    b.poison_elements();
  } else {
    fill(a, Role::a);
    fill(b, Role::b);
  }
  if (trial.line.problem.convolution) {
    poison_gaps(trial.line.problem, true, a);
    poison_gaps(trial.line.problem, false, b);
  }
  if (trial.line.problem.groups) {
    groups = draw_groups(trial);
    const GroupSurroundings surroundings(trial.line.problem, *groups);
    surroundings.poison(a, ProductRole::a);
    surroundings.poison(b, ProductRole::b);
  }
  if (c && trial.line.beta != 0) fill(*c, Role::c);
  if (c && trial.line.beta == 0) c->poison_elements();  // must not be read
  if (trial.in_place && trial.line.problem.c) {
    fill(out, Role::c);
  } else {
    out.poison_elements();
  }
  for (const CompanionTensor& companion : companion_tensors(trial.line.problem)) {
    companions.emplace_back(
        place(trial, companion.type.values, companion.extents, Surroundings::poison));
    companions.back().fill(companion_numbers(
        companion, random_bits(trial.options.seed,
                               static_cast<std::uint64_t>(Role::companion) + companions.size())));
  }
  for (const EpilogueTensor& tensor : epilogue_tensors(trial.line.problem)) {
    epilogue.emplace_back(place(trial, tensor.type, tensor.extents,
                                tensor.is_result ? Surroundings::canary : Surroundings::poison));
    if (tensor.is_result) {
      epilogue.back().poison_elements();
      continue;
    }
    Numbers numbers = numbers_of(trial, rules, Role::c, tensor.type.dtype);
    numbers.seed =
        random_bits(trial.options.seed, static_cast<std::uint64_t>(Role::epilogue) + tensor.index);
    numbers.with_specials = trial.with_specials;
    epilogue.back().fill(numbers);
  }
}

VerifyReport run_trial(const Trial& trial, const Kernel& kernel) try {
  const platform::DefaultFloatMode mode;
  Trial seeded = trial;
  if (seeded.options.seed == 0) seeded.options.seed = fresh_seed();
  std::optional<OwnedStream> own;
  if (!seeded.stream && !seeded.options.device.is_cpu()) own.emplace(seeded.options.device);
  const Stream stream = seeded.stream ? *seeded.stream : own ? own->get() : Stream::cpu();
  VerifyReport report = TrialRun(seeded, kernel, stream).run();
  report.seed = seeded.options.seed;
  return report;
} catch (const std::bad_alloc&) {
  throw_out_of_memory(trial.line);
} catch (const std::length_error&) {
  throw_out_of_memory(trial.line);
}

bool is_exact_with_integers(const ProblemLine& line, const OperandRules& rules) {
  if (line.problem.epilogue != default_epilogue) return false;  // epilogues are judged by intervals
  if (!line.problem.a_companions.empty() || !line.problem.b_companions.empty()) return false;
  if (!is_quarter(line.alpha) || !is_quarter(line.beta)) return false;
  const auto factor = static_cast<double>(largest_factor(line, rules));
  const double sum = static_cast<double>(line.problem.k) * factor * factor;
  if (sum >= std::ldexp(1.0, exact_accumulator_bits(rules))) return false;
  const double addend =
      line.problem.c ? static_cast<double>(largest_addend(line.problem.c->dtype)) : 0;
  const double total = std::abs(line.alpha) * sum + std::abs(line.beta) * addend;
  const int compute_bits = epilogue_compute_type(rules.accumulator) == DType::float64 ? 53 : 24;
  return 4 * total < std::ldexp(1.0, compute_bits);
}

}  // namespace gemmery::api
