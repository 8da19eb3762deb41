// SPDX-License-Identifier: Apache-2.0
// Draws cases, runs them in several threads, collects failures.
#include "tests/conformance/suite.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include <gemmery/discovery.hpp>
#include <gemmery/error.hpp>

#include "kernel/forms.hpp"
#include "operation/companions.hpp"
#include "operation/groups.hpp"
#include "tests/conformance/naive_oracle.hpp"

namespace gemmery::conformance {
namespace {

constexpr std::size_t most_failures_kept = 20;
constexpr double most_naive_products = 20000;

std::string family_text(const Kernel& kernel) {
  return std::string(kernel.family().provider()) + "/" + std::string(kernel.family().name());
}

using FamilyGroups = std::vector<std::vector<Kernel>>;

FamilyGroups group_by_family(const std::vector<Kernel>& kernels) {
  std::map<const Family*, std::size_t> index;
  FamilyGroups groups;
  for (const Kernel& kernel : kernels) {
    const auto [at, is_new] = index.try_emplace(&kernel.family(), groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].push_back(kernel);
  }
  return groups;
}

// The design fields that discovery chooses for each tile. Skinny kernels have as few rows as the
// problem allows, and the widest loads determine their tiles.
bool is_picked(const DesignField& field) {
  return field.name == "raster" || field.name == "stages" || field.name == "split_k";
}

// Whether a rule equals another one, or requires wider accesses or a certain layout where the other
// does not.
bool is_narrower(const OperandRule& rule, const OperandRule& other) {
  return rule.dtype == other.dtype && rule.alignment >= other.alignment &&
         (rule.layout == other.layout || other.layout == LayoutRule::any);
}
bool are_narrower(const OperandRules& rules, const OperandRules& others) {
  return is_narrower(rules.a, others.a) && is_narrower(rules.b, others.b) &&
         is_narrower(rules.out, others.out) && (!rules.has_c || is_narrower(rules.c, others.c)) &&
         rules.has_c == others.has_c && rules.accumulator == others.accumulator &&
         rules.math == others.math;
}

// Whether discovery may list `listed` instead of `kernel`: they differ at most in the fields that
// discovery chooses, and `listed` makes more use of the operands' layout and alignment.
bool stands_for(const Kernel& listed, const Kernel& kernel, bool is_supported) {
  if (&listed.family() != &kernel.family() || !are_narrower(listed.operands(), kernel.operands()))
    return false;
  if (!(listed.operands().a_companions == kernel.operands().a_companions) ||
      !(listed.operands().b_companions == kernel.operands().b_companions))
    return false;
  // sm80 computes a column-major out transposed: the same tile then has other extents in out, which
  // may fit labels where those of this kernel do not.
  const bool has_same_extents = listed.operands().out.layout == kernel.operands().out.layout;
  if (!is_supported && listed.family().name() == "sm80" && !has_same_extents) return false;
  // Another split may take more registers than some targets have.
  if (!is_supported &&
      !std::ranges::equal(listed.family().targets(listed), kernel.family().targets(kernel)))
    return false;
  std::vector<DesignField> theirs = listed.metadata().design;
  std::vector<DesignField> ours = kernel.metadata().design;
  // Discovery chooses tiles together with splits of k, for problems that have use for one.
  const std::string split(kernel.metadata().design_value("split_k"));
  const bool picks_tile = is_supported && kernel.family().name() == "sm90" && split != "1";
  // A kernel with more rows than the problem supports it, one with fewer does not.
  const bool picks_rows = is_supported && !kernel.metadata().design_value("rows").empty();
  const auto is_left_out = [&](const DesignField& field) {
    return is_picked(field) || (picks_rows && field.name == "rows") ||
           ((picks_tile || picks_rows) && field.name == "tile");
  };
  std::erase_if(theirs, is_left_out);
  std::erase_if(ours, is_left_out);
  return theirs == ours;
}

// The result of one case.
struct Outcome {
  bool is_refusal = false;
  VerifyReport report;
  std::string fault;  // empty if the case passed
};

// One case: a trial drawn for one kernel, and run by the same or another one.
class Case {
 public:
  Case(const SuiteOptions& options, const FamilyGroups& groups, std::int64_t index)
      : options_(options),
        choices_(api::random_bits(options.seed, static_cast<std::uint64_t>(index))),
        drawn_for_(choices_.one_of(choices_.one_of(groups))),
        trial_(random_trial(drawn_for_, choices_, options.limits)),
        kernel_(choose_kernel(groups)) {}

  const Kernel& kernel() const { return kernel_; }
  std::string replay() const { return replay_words(trial_, kernel_); }
  // "parallel, array"
  std::string form() const;

  Outcome run(std::optional<Stream> stream) {
    trial_.stream = stream;
    Outcome outcome;
    try {
      const Status status = kernel_.supports(trial_.line.problem, device_info());
      outcome.is_refusal = !status;
      outcome.fault = check_discovery(status.is_success());
      if (!outcome.fault.empty()) return outcome;
      if (!status) {
        outcome.fault = check_refusal(status);
      } else {
        run_supported(outcome);
      }
    } catch (const Error& error) {
      // A single row or column has both layouts; a list of them may be declared with the other one.
      outcome.is_refusal = is_list() && error.kind() == ErrorKind::unsupported;
      if (!outcome.is_refusal) outcome.fault = fmt::format("threw: {}", error.what());
    } catch (const std::exception& error) {
      outcome.fault = fmt::format("threw: {}", error.what());
    }
    return outcome;
  }

 private:
  // Mostly the kernel for which the trial was drawn; or a random one, which usually refuses; or, if
  // nothing must be compiled, another one that discovery offers.
  Kernel choose_kernel(const FamilyGroups& groups) {
    if (!options_.asks_others) return drawn_for_;
    if (choices_.percent(6)) return choices_.one_of(choices_.one_of(groups));
    if (!options_.limits.device.is_cpu() || !choices_.percent(10)) return drawn_for_;
    const auto listed =
        get_kernels(trial_.line.problem, *drawn_for_.family().device_info(options_.limits.device));
    return listed.empty() ? drawn_for_ : static_cast<const Kernel&>(choices_.one_of(listed));
  }

  const DeviceInfo& device_info() const {
    return *kernel_.family().device_info(options_.limits.device);
  }

  // Whether the kernel requires less than the operands have: narrower accesses to A and B, any
  // strides, or batches by pointers. Then discovery lists a faster one instead, which may have
  // other tiles. The same is true for a kernel of sm80 that stores to any strides: for a
  // column-major out, discovery offers kernels that compute out^T, whose tiles fit other operands.
  // Kernels of depthwise convolutions support more filters and numbers of channels than those for
  // which they are offered.
  bool asks_for_less() const {
    const OperandRules& rules = kernel_.operands();
    const GemmProblem& problem = trial_.line.problem;
    const bool takes_any_strides =
        rules.a.layout == LayoutRule::any || rules.b.layout == LayoutRule::any;
    return rules.a.alignment < problem.a.alignment || rules.b.alignment < problem.b.alignment ||
           (takes_any_strides && kernel_.family().name() == "skinny") ||
           (rules.out.layout == LayoutRule::any && kernel_.family().name() == "sm80") ||
           kernel_.family().name() == "depthwise" ||
           !kernel_.metadata().design_value("scales").empty() ||  // of fewer k, or of both operands
           (kernel_.metadata().design_value("batches") == "pointers" &&
            !kernel::has_pointers(problem));
  }

  // Discovery lists a kernel if and only if the kernel supports the problem.
  std::string check_discovery(bool is_supported) {
    if (!choices_.percent(20)) return {};
    const auto listed = get_kernels(trial_.line.problem, device_info());
    const auto is_it = [&](const Kernel& kernel) { return kernel == kernel_; };
    const bool is_listed =
        std::ranges::any_of(listed, is_it) || (kernel_.metadata().design_value("split_k") != "" &&
                                               std::ranges::any_of(listed, [&](const Kernel& one) {
                                                 return stands_for(one, kernel_, is_supported);
                                               }));
    if (is_listed == is_supported || (is_supported && asks_for_less())) return {};
    return is_listed ? "listed by get_kernels, but supports() says no"
                     : "supports() says yes, but get_kernels does not list it";
  }

  // Small matrices of a list may satisfy more than the largest one, which the line describes.
  bool is_list() const {
    const auto& groups = trial_.line.problem.groups;
    return groups && groups->sizes == GroupSizes::list;
  }

  std::string check_refusal(const Status& status) const {
    if (status.error().empty()) return "refused without a reason";
    try {
      api::Trial trial = trial_;
      (void)api::run_trial(trial, kernel_);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported)
        return fmt::format("run refused with another kind: {}", error.what());
      const bool tells_why =
          std::string_view(error.what()).find(status.error()) != std::string_view::npos;
      return tells_why || is_list() ? ""
                                    : fmt::format("run refused with \"{}\", supports() with \"{}\"",
                                                  error.what(), status.error());
    }
    return is_list() ? "" : "ran although supports() says: " + status.error();
  }

  void run_supported(Outcome& outcome) {
    std::string fault;
    // The naive oracle supports only products of matrices without scales.
    const bool is_small = !trial_.line.problem.convolution &&
                          !operation::has_companions(trial_.line.problem) &&
                          trial_.line.problem.flops() <= 2 * most_naive_products;
    const bool asks_naive =
        is_small && kernel_.operands().math == Math::native && choices_.percent(25);
    trial_.inspect = [&](const GemmArguments& arguments) {
      fault = check_line(arguments);
      if (!fault.empty() || !asks_naive) return;
      fault = ask_naive_oracle(arguments);
    };
    outcome.report = api::run_trial(trial_, kernel_);
    if (!outcome.report.passed) {
      outcome.fault =
          fmt::format("{} mismatches, {} bytes changed outside out: {}", outcome.report.mismatches,
                      outcome.report.guard_violations, outcome.report.first_failure);
    } else {
      outcome.fault = fault;
    }
  }

  std::string ask_naive_oracle(const GemmArguments& arguments) const {
    const auto fault_of = [&](const GemmArguments& product) {
      const NaiveVerdict verdict =
          judge_naively(product, kernel_.operands(),
                        api::declared_math_of(kernel_).arithmetic == host::Arithmetic::tensor_core);
      return verdict.mismatches == 0 ? "" : "naive oracle: " + verdict.first_failure;
    };
    if (arguments.group_memory() == nullptr) return fault_of(arguments);
    const operation::GroupSlicer slice_of(arguments);
    for (const operation::GroupSlice& slice : operation::read_groups(arguments)) {
      using operation::IndexedGroup;
      const std::string fault =
          arguments.problem().groups->have_indices()
              ? fault_of(IndexedGroup(arguments, slice, IndexedGroup::Results::present).gemm())
              : fault_of(slice_of(slice));
      if (!fault.empty()) return fmt::format("group {}: {}", slice.group, fault);
    }
    return {};
  }

  // The arguments describe the intended problem, and its line parses to an equal one. A list has
  // the extents of its largest problems instead.
  std::string check_line(const GemmArguments& arguments) const {
    const ProblemLine line{arguments.problem(), arguments.alpha(), arguments.beta()};
    const Groups* const groups = line.problem.groups ? &*line.problem.groups : nullptr;
    const bool is_list = groups != nullptr && groups->sizes == GroupSizes::list;
    if (!is_list && !(line == trial_.line))
      return "the arguments' problem is another one: " + to_string(line);
    const std::string text = to_string(line);
    return parse_problem(text) == line ? "" : "the line does not read back: " + text;
  }

  const SuiteOptions& options_;
  Choices choices_;
  Kernel drawn_for_;
  api::Trial trial_;
  Kernel kernel_;
};

// The kind of split of k, for all families: "serial3" becomes "serial".
std::string_view split_form(const Metadata& metadata) {
  const std::string_view split = metadata.design_value("split_k");
  for (const std::string_view mode : {"serial", "parallel", "stream"})
    if (split.starts_with(mode)) return mode;
  return split.empty() || split == "1" || split == "none" ? "plain" : "cluster";
}

std::string_view batch_form(const GemmProblem& problem) {
  for (const MatrixType* const matrix : {&problem.a, &problem.b, &problem.out})
    if (matrix->batch_stride == by_pointers) return "array";
  return problem.l > 1 ? "batched" : "single";
}

std::string Case::form() const {
  return fmt::format("{}, {}", split_form(kernel_.metadata()), batch_form(trial_.line.problem));
}

class Collector {
 public:
  explicit Collector(std::uint64_t seed) { report_.seed = seed; }

  void add(const Case& one, const Outcome& outcome) {
    const std::scoped_lock lock(mutex_);
    Tally& tally = report_.of_family[family_text(one.kernel())];
    ++(outcome.is_refusal ? tally.refusals : tally.runs);
    tally.exact += outcome.report.method.starts_with("exact integers") ? 1 : 0;
    tally.elements += outcome.report.elements;
    tally.worst_ratio = std::max(tally.worst_ratio, outcome.report.worst_ratio);
    if (!outcome.is_refusal) ++report_.of_form[one.form()];
    if (outcome.fault.empty()) return;
    ++tally.mismatches;
    if (report_.failures.size() < most_failures_kept)
      report_.failures.push_back(one.replay() + "\n    " + outcome.fault);
  }
  SuiteReport take() { return std::move(report_); }

 private:
  std::mutex mutex_;
  SuiteReport report_;
};

// The progress of the suite: how many cases began, and how many of these ran.
struct Progress {
  std::atomic<std::int64_t> begun = 0;
  std::atomic<std::int64_t> ran = 0;
};

constexpr std::int64_t most_refusals_per_run = 20;

void run_worker(const SuiteOptions& options, const FamilyGroups& groups, Progress& progress,
                Collector& collector) {
  const bool is_cpu = options.limits.device.is_cpu();
  std::optional<OwnedStream> own;
  if (!is_cpu) own.emplace(options.limits.device);
  const std::optional<Stream> stream = own ? std::optional(own->get()) : std::nullopt;
  while (progress.ran < options.cases && progress.begun < most_refusals_per_run * options.cases) {
    Case one(options, groups, progress.begun++);
    const Outcome outcome = one.run(stream);
    collector.add(one, outcome);
    if (!outcome.is_refusal) ++progress.ran;
  }
}

}  // namespace

std::int64_t SuiteReport::mismatches() const {
  std::int64_t sum = 0;
  for (const auto& [family, tally] : of_family) sum += tally.mismatches;
  return sum;
}

SuiteReport run_suite(const SuiteOptions& options) {
  Collector collector(options.seed);
  if (options.kernels.empty()) return collector.take();
  const FamilyGroups groups = group_by_family(options.kernels);
  Progress progress;
  {
    std::vector<std::jthread> workers;
    for (int worker = 0; worker < options.threads; ++worker)
      workers.emplace_back([&] { run_worker(options, groups, progress, collector); });
  }
  return collector.take();
}

std::string to_string(const SuiteReport& report) {
  std::string text = fmt::format("seed {}\n", report.seed);
  for (const auto& [family, tally] : report.of_family) {
    text += fmt::format(
        "{:24} {} runs ({} of exact integers, {} elements), {} refusals, {} mismatches, worst "
        "ratio {:.3f}\n",
        family, tally.runs, tally.exact, tally.elements, tally.refusals, tally.mismatches,
        tally.worst_ratio);
  }
  for (const auto& [form, runs] : report.of_form) text += fmt::format("  {}: {}\n", form, runs);
  for (const std::string& failure : report.failures) text += "  " + failure + "\n";
  return text;
}

std::vector<Kernel> choose_kernels(std::vector<Kernel> kernels, std::size_t count,
                                   Choices& choices) {
  if (kernels.size() <= count) return kernels;
  for (std::size_t at = 0; at < count; ++at) {
    const auto other = static_cast<std::size_t>(choices.between(
        static_cast<std::int64_t>(at), static_cast<std::int64_t>(kernels.size()) - 1));
    std::swap(kernels[at], kernels[other]);
  }
  kernels.erase(kernels.begin() + static_cast<std::ptrdiff_t>(count), kernels.end());
  return kernels;
}

Kernel with_pointers(const Kernel& kernel, Choices& choices) {
  if (kernel.family().name() != "sm90" || choices.percent(60)) return kernel;
  std::string name = kernel.name();
  const std::size_t behind_design = std::min({name.find("_c-"), name.find("_e-"), name.size()});
  return find_kernel(name.insert(behind_design, "_pointers")).value_or(kernel);
}

}  // namespace gemmery::conformance
