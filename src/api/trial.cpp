// SPDX-License-Identifier: Apache-2.0
// Runs a kernel on guarded operands: fills, uploads, runs, downloads, compares with the oracle,
// looks for changed bytes.
#include "api/trial.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <gemmery/error.hpp>
#include <gemmery/family.hpp>

#include "emulator/device.hpp"
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
  if (dtype == DType::int8) {
    numbers.least = std::max<std::int64_t>(-limit, -128);
    numbers.most = std::min<std::int64_t>(limit, 127);
  }
  if (facts(dtype).kind == DTypeKind::unsigned_integer) numbers.least = 0;
  return numbers;
}

// For C: large enough that integer outputs sometimes saturate.
std::int64_t largest_addend(DType dtype) { return is_integer(dtype) ? 255 : 4; }

enum class Role : std::uint8_t { a = 1, b, c, out, epilogue };

// The smallest normal number of a floating type, and a bound of its largest ones.
double smallest_normal(DType dtype) {
  return std::ldexp(1.0, 2 - (1 << (facts(dtype).exponent_bits - 1)));
}
double nearly_largest(DType dtype) {
  return std::ldexp(1.0, (1 << (facts(dtype).exponent_bits - 1)) - 2);
}

// Fills A with subnormal numbers: over their whole range beside a B that makes products normal
// again, or the smallest of them beside ordinary numbers, whose products tensor cores truncate.
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

Extents3 extents_a(const GemmProblem& p) { return {p.l, p.m, p.k}; }
Extents3 extents_b(const GemmProblem& p) { return {p.l, p.k, p.n}; }
Extents3 extents_out(const GemmProblem& p) { return {p.l, p.m, p.n}; }

GuardedOperand::Place place(const Trial& trial, const MatrixType& type, Extents3 extents,
                            Surroundings surroundings) {
  return {.type = type,
          .extents = extents,
          .surroundings = surroundings,
          .guard_bands = trial.options.guard_bands};
}

// An image in the device's memory: a copy of it, or the image itself on the CPU.
class PlacedOperand {
 public:
  PlacedOperand(GuardedOperand& operand, Stream stream)
      : operand_(&operand), stream_(stream), before_(operand.snapshot()) {
    if (!stream.device().is_cpu()) {
      copy_ = Buffer(operand.bytes().size(), stream);
      expected_ = operand.pointers_at(copy_.data());
    } else {
      expected_ = operand.pointers_at(operand.bytes().data());
    }
    if (!expected_.empty() && !stream.device().is_cpu())
      pointers_ = Buffer(expected_.size() * sizeof(void*), stream);
    put();
  }

  Tensor view() const {
    if (stream_.device().is_cpu()) return operand_->here();
    return operand_->at(copy_.data(), pointers_.data(), stream_.device());
  }
  // Copies the initial image to the device.
  void put() {
    if (stream_.device().is_cpu()) {
      std::memcpy(operand_->bytes().data(), before_.data(), before_.size());
    } else {
      copy(copy_.data(), stream_.device(), before_.data(), Device::cpu(), before_.size(), stream_);
      if (!expected_.empty())
        copy(pointers_.data(), stream_.device(), expected_.data(), Device::cpu(),
             expected_.size() * sizeof(void*), stream_);
    }
  }
  void fetch() {
    if (stream_.device().is_cpu()) return;
    copy(operand_->bytes().data(), Device::cpu(), copy_.data(), stream_.device(), before_.size(),
         stream_);
  }
  // Bytes of the copy whose value was never computed, such as the content of an unwritten register.
  // Known only on emulated devices.
  std::int64_t unwritten() const {
    if (stream_.device().type != DeviceType::emulated) return 0;
    emulator::EmulatedDevice& device = emulator::device_at(stream_.device().index);
    const std::lock_guard lock(device.executing);
    return static_cast<std::int64_t>(device.memory.count_unwritten(
        reinterpret_cast<std::uintptr_t>(copy_.data()), before_.size()));
  }
  std::int64_t changes() const { return operand_->count_changes(before_) + pointer_changes(); }
  std::int64_t changes_outside() const {
    return operand_->count_changes_outside(before_) + pointer_changes();
  }

 private:
  // Bytes, whole pointers.
  std::int64_t pointer_changes() const {
    if (expected_.empty()) return 0;
    std::vector<const void*> now(operand_->pointers().begin(), operand_->pointers().end());
    if (!stream_.device().is_cpu()) {
      copy(now.data(), Device::cpu(), pointers_.data(), stream_.device(),
           now.size() * sizeof(void*), stream_);
      synchronize(stream_);
    }
    std::int64_t changes = 0;
    for (std::size_t i = 0; i < now.size(); ++i)
      changes += now[i] == expected_[i] ? 0 : static_cast<std::int64_t>(sizeof(void*));
    return changes;
  }

  GuardedOperand* operand_;
  Stream stream_;
  std::vector<std::byte> before_;
  Buffer copy_;
  std::vector<const void*> expected_;  // of the copy's matrices, where it has pointers
  Buffer pointers_;                    // the same in the device's memory
};

// Scratch memory filled with NaN, followed by canaries.
class GuardedWorkspace {
 public:
  GuardedWorkspace(std::size_t bytes, Stream stream) : bytes_(bytes), stream_(stream) {
    if (bytes == 0) return;
    buffer_ = Buffer(bytes + guard_bytes, stream);
    gemmery::fill(buffer_.data(), 0xff, bytes, stream);
    gemmery::fill(static_cast<std::byte*>(buffer_.data()) + bytes, canary, guard_bytes, stream);
  }
  Workspace lend() const { return {buffer_.data(), bytes_}; }
  std::int64_t changes() const {
    if (bytes_ == 0) return 0;
    std::vector<std::uint8_t> guard(guard_bytes);
    copy(guard.data(), Device::cpu(), static_cast<const std::byte*>(buffer_.data()) + bytes_,
         stream_.device(), guard_bytes, stream_);
    synchronize(stream_);
    return static_cast<std::int64_t>(guard_bytes) - std::ranges::count(guard, canary);
  }

 private:
  static constexpr std::size_t guard_bytes = 4096;
  static constexpr std::uint8_t canary = 0xc3;
  std::size_t bytes_;
  Stream stream_;
  Buffer buffer_;
};

GemmArguments make_arguments(const ProblemLine& line, const Tensor& a, const Tensor& b,
                             const Tensor& out, const std::optional<Tensor>& c,
                             const std::vector<Tensor>& epilogue) {
  GemmOptions options{.c = c, .alpha = line.alpha, .beta = line.beta, .math = line.problem.math};
  options.epilogue = bind_epilogue(line, epilogue);
  return GemmArguments(a, b, out, line.problem.accumulator, options);
}

// The operands in the kernel's memory.
struct PlacedOperands {
  PlacedOperand a, b, out;
  std::optional<PlacedOperand> c;
  std::vector<PlacedOperand> epilogue_inputs, epilogue_results;

  PlacedOperands(TrialOperands& operands, const GemmProblem& problem, Stream stream)
      : a(operands.a, stream), b(operands.b, stream), out(operands.out, stream) {
    if (operands.c) c.emplace(*operands.c, stream);
    const std::vector<EpilogueTensor> tensors = epilogue_tensors(problem);
    for (std::size_t i = 0; i < tensors.size(); ++i)
      (tensors[i].is_result ? epilogue_results : epilogue_inputs)
          .emplace_back(operands.epilogue[i], stream);
  }
  GemmArguments arguments(const ProblemLine& line) const {
    std::optional<Tensor> addend;
    if (line.problem.c) addend = c ? c->view() : out.view();
    std::vector<Tensor> epilogue;
    for (const auto* const some : {&epilogue_inputs, &epilogue_results})
      for (const PlacedOperand& operand : *some) epilogue.push_back(operand.view());
    return make_arguments(line, a.view(), b.view(), out.view(), addend, epilogue);
  }
  void fetch() {
    a.fetch();
    b.fetch();
    out.fetch();
    if (c) c->fetch();
    for (PlacedOperand& operand : epilogue_inputs) operand.fetch();
    for (PlacedOperand& operand : epilogue_results) operand.fetch();
  }
  std::int64_t violations() const {
    std::int64_t count = a.changes() + b.changes() + out.changes_outside() + (c ? c->changes() : 0);
    for (const PlacedOperand& operand : epilogue_inputs) count += operand.changes();
    for (const PlacedOperand& operand : epilogue_results) count += operand.changes_outside();
    return count;
  }
};

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
    kernel_.run(arguments, options);
    placed_.fetch();
    synchronize(stream_);
    VerifyReport report = judge_result(addend);
    report.guard_violations = placed_.violations() + workspace.changes();
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
    const GemmArguments arguments =
        make_arguments(trial_.line, operands_.a.here(), operands_.b.here(), operands_.out.here(), c,
                       epilogue_here());
    const bool exact = trial_.options.fill == Fill::integers && !trial_.nan_inputs &&
                       is_exact_with_integers(trial_.line, kernel_.operands());
    if (trial_.inspect) trial_.inspect(arguments);
    return judge(arguments, declared_math_of(kernel_), exact);
  }

  std::vector<Tensor> epilogue_here() const {
    std::vector<Tensor> tensors;
    for (const GuardedOperand& operand : operands_.epilogue) tensors.push_back(operand.here());
    return tensors;
  }

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

  // A result may be right by luck although it was never written.
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
  return GuardedOperand(place(trial, *problem.c, extents_out(problem), Surroundings::poison));
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

[[noreturn]] void throw_out_of_memory(const ProblemLine& line) {
  const GemmProblem& p = line.problem;
  double bytes = span_bytes(p.a, extents_a(p)) + span_bytes(p.b, extents_b(p)) +
                 span_bytes(p.out, extents_out(p));
  if (p.c) bytes += span_bytes(*p.c, extents_out(p));
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
    : a(place(trial, trial.line.problem.a, extents_a(trial.line.problem), Surroundings::poison)),
      b(place(trial, trial.line.problem.b, extents_b(trial.line.problem), Surroundings::poison)),
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
  if (c && trial.line.beta != 0) fill(*c, Role::c);
  if (c && trial.line.beta == 0) c->poison_elements();  // must not be read
  if (trial.in_place && trial.line.problem.c) {
    fill(out, Role::c);
  } else {
    out.poison_elements();
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
