// SPDX-License-Identifier: Apache-2.0
// Draws a product, a program over it, and the kernels to run.
#include "tests/conformance/random_epilogues.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "api/trial.hpp"
#include "epilogue/graph.hpp"

namespace gemmery::conformance {
namespace {

// Layouts, results of narrower types, partial tiles and batches.
constexpr const char* products[] = {"f32",
                                    "f16",
                                    "bf16",
                                    "bf16 b=bf16:c",
                                    "f16 out=f32",
                                    "bf16 out=f32:c",
                                    "f16:c b=f16:c out=f16:c",
                                    "f16 out=f16/ld=",  // which follows: rows apart
                                    "f32 out=bf16",
                                    "f64",
                                    "bf16 out=f16"};

std::string random_product(std::mt19937_64& random, int most_extent, int most_rows) {
  const auto extent = [&] {
    const auto value = 1 + static_cast<int>(random() % static_cast<unsigned>(most_extent));
    return random() % 2 == 0 ? value : (value + 7) / 8 * 8;
  };
  int m = extent();
  int n = extent();
  if (most_rows > 0)
    (random() % 2 == 0 ? m : n) = 1 + static_cast<int>(random() % static_cast<unsigned>(most_rows));
  const int k = extent();
  const std::string batches = random() % 4 == 0 ? "x" + std::to_string(2 + random() % 3) : "";
  const std::string_view product = products[random() % std::size(products)];
  const std::string pitch = product.ends_with("=") ? std::to_string((n + 15) / 8 * 8) : "";
  return fmt::format("gemm {}x{}x{}{} a={}{}", m, n, k, batches, product, pitch);
}

struct GroupForm {
  char ragged;  // 'm', 'n' or 'k'; with 'k' each group has a matrix of out
  std::string_view words;
};
constexpr GroupForm group_forms[] = {{'m', "ends=i32/align=8"},
                                     {'m', "counts=i64"},
                                     {'m', "labels=i32/align=128"},
                                     {'m', "prefix=i32/host/align=16"},
                                     {'m', "counts=i32 scatter=i32/of=2000"},
                                     {'m', "ends=i64 gather=i32/of=90"},
                                     {'m', "gather=i32/of=70/divide=2 scatter=i64/of=1500"},
                                     {'n', "ragged=n ends=i32 gather=i32/of=90 scatter=i64/of=900"},
                                     {'n', "ragged=n ends=i32/align=16"},
                                     {'n', "ragged=n ends=i32"},
                                     {'n', "ragged=n counts=i32/host/align=16"},
                                     {'k', "masked=i32"},
                                     {'k', "ragged=n masked=i32"},
                                     {'k', "ragged=k ends=i32/align=8"}};

// A grouped product, and the limits of programs over it.
std::string random_groups(std::mt19937_64& random, int most_extent, tests::ProgramLimits& limits) {
  const auto extent = [&](int most) {
    return 8 * (1 + static_cast<int>(random() % static_cast<unsigned>(most / 8)));
  };
  constexpr std::string_view types[] = {"bf16", "f16 out=f32", "bf16 b=bf16:c", "f32",
                                        "bf16 out=f32:c"};
  const GroupForm form = group_forms[random() % std::size(group_forms)];
  const bool has_labels = form.words.find("labels") != std::string_view::npos;
  limits.groups = form.ragged;
  limits.with_reductions = !has_labels;
  limits.with_blocks = random() % 3 == 0;
  const bool is_of_n = form.words.find("ragged=n") != std::string_view::npos;
  const bool has_stack = form.ragged == 'k';
  const int many = (has_stack ? 1 : 4) * extent(most_extent);
  const auto groups = 1 + random() % (has_stack ? 8 : 40);
  return fmt::format("grouped_gemm {}x{}x{} groups={} {} a={}",
                     is_of_n ? extent(most_extent) : many, is_of_n ? many : extent(most_extent),
                     extent(most_extent), groups, form.words, types[random() % std::size(types)]);
}

std::vector<RankedKernel> kernels_of(const GemmProblem& problem, const DeviceInfo& device,
                                     const EpilogueOptions& options) {
  std::vector<RankedKernel> kernels = get_kernels(problem, device);
  std::erase_if(kernels, [&](const Kernel& kernel) {
    const bool is_of_family = options.family.empty() || kernel.family().name() == options.family;
    return !is_of_family || kernel.name().find(options.name_part) == std::string::npos;
  });
  return kernels;
}

// The best kernel, and random others.
std::vector<Kernel> choose(const std::vector<RankedKernel>& kernels, std::size_t count,
                           std::mt19937_64& random) {
  std::vector<Kernel> all(kernels.begin(), kernels.end());
  if (all.size() > 1) std::shuffle(all.begin() + 1, all.end(), random);
  if (all.size() > count) all.erase(all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
  return all;
}

bool has_families_for(const GemmProblem& problem, const DeviceInfo& device,
                      const EpilogueOptions& options) {
  GemmProblem plain = problem;
  plain.epilogue = default_epilogue;
  plain.epilogue_operands.clear();
  return !kernels_of(plain, device, options).empty();
}

void add(EpilogueTally& sum, const EpilogueTally& part) {
  sum.programs += part.programs;
  sum.runs += part.runs;
  sum.elements += part.elements;
  sum.without_bound += part.without_bound;
}

void add(EpilogueReport& sum, const EpilogueReport& part) {
  add(sum.all, part.all);
  for (const auto& [family, tally] : part.of_family) add(sum.of_family[family], tally);
  sum.refused += part.refused;
  sum.silent += part.silent;
  sum.failures.insert(sum.failures.end(), part.failures.begin(), part.failures.end());
}

// Makes some operands of a batch arrays of pointers.
GemmProblem with_pointers(GemmProblem problem, std::mt19937_64& random) {
  const auto maybe = [&](MatrixType& matrix) {
    if (matrix.batch_stride != 0 && random() % 2 == 0) matrix.batch_stride = by_pointers;
  };
  for (MatrixType* const matrix : {&problem.a, &problem.b, &problem.out}) maybe(*matrix);
  const epilogue::Graph& graph = rules_of(problem.epilogue).program.graph();
  for (std::size_t i = 0; i < problem.epilogue_operands.size(); ++i) {
    const std::string& name = rules_of(problem.epilogue).operands[i].name;
    const auto output = std::ranges::find(graph.outputs, name, &epilogue::Output::name);
    if (output == graph.outputs.end() || output->reduction == epilogue::Reduction::none)
      maybe(problem.epilogue_operands[i]);
  }
  return problem;
}

class Run {
 public:
  explicit Run(const EpilogueOptions& options)
      : options_(options), device_(device_info(options.device)) {}

  // Whether a kernel ran the program, and most elements have a bound.
  bool try_program(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    tests::ProgramLimits limits = options_.limits;
    const std::string product =
        options_.groups ? random_groups(random, options_.most_extent, limits)
                        : random_product(random, options_.most_extent, options_.most_rows);
    const std::string text = tests::add_random_program(random, product, limits);
    replay_ = fmt::format("{} (seed {})", text, seed);
    ProblemLine line = parse_problem(text);
    auto kernels = kernels_of(line.problem, device_, options_);
    const GemmProblem pointed =
        options_.groups ? line.problem : with_pointers(line.problem, random);
    if (auto takers = kernels_of(pointed, device_, options_); !takers.empty()) {
      line.problem = pointed;
      kernels = std::move(takers);
      replay_ = fmt::format("{} (seed {})", to_string(line), seed);
    }
    if (kernels.empty()) {
      check_refusal(line.problem);
      return false;
    }
    EpilogueTally all{.programs = 1};
    std::map<std::string, EpilogueTally> of_family;
    for (const Kernel& kernel : choose(kernels, options_.kernels_per_program, random)) {
      const EpilogueTally tally = try_kernel(line, kernel, seed);
      add(all, tally);
      EpilogueTally& own = of_family[std::string(kernel.family().name())];
      own.programs = 1;
      add(own, tally);
    }
    if (2 * all.without_bound >= all.elements) {
      if (all.elements > 0) ++report_.silent;  // otherwise all groups are empty
      return false;
    }
    add(report_.all, all);
    for (const auto& [family, tally] : of_family) add(report_.of_family[family], tally);
    return true;
  }
  const EpilogueReport& report() const { return report_; }

 private:
  EpilogueTally try_kernel(const ProblemLine& line, const Kernel& kernel, std::uint64_t seed) {
    EpilogueTally tally{.runs = 1};
    try {
      const VerifyReport report =
          api::run_trial({.line = line,
                          .options = {.seed = seed, .device = options_.device},
                          .with_specials = seed % 3 == 0,
                          .repeats = 2,
                          .max_multiprocessors = most_multiprocessors(kernel, seed)},
                         kernel);
      tally.elements = report.elements;
      tally.without_bound = report.without_bound;
      if (!report.passed) fail(kernel.name() + ": " + report.first_failure);
    } catch (const Error& error) {
      fail(kernel.name() + ": " + error.what());
    }
    return tally;
  }

  // Few for half of the programs, so that blocks have several tiles.
  int most_multiprocessors(const Kernel& kernel, std::uint64_t seed) const {
    if (seed % 2 == 0 || kernel.family().name() != options_.family_on_few) return 0;
    return 1 + static_cast<int>(seed / 2 % 3);
  }

  // If the product alone is supported, a family must give the epilogue as the reason.
  void check_refusal(const GemmProblem& problem) {
    ++report_.refused;
    if (!has_families_for(problem, device_, options_)) return;
    const Explanation explanation = explain(problem, device_);
    const bool names_epilogue = std::ranges::any_of(explanation.reasons, [](const Reason& reason) {
      return reason.failed.find("epilogue") != std::string::npos;
    });
    if (!names_epilogue) fail("refused without a word about the epilogue");
  }

  void fail(const std::string& what) { report_.failures.push_back(replay_ + "\n  " + what); }

  const EpilogueOptions& options_;
  const DeviceInfo& device_;
  EpilogueReport report_;
  std::string replay_;
};

}  // namespace

EpilogueReport run_random_epilogues(const EpilogueOptions& options) {
  // The number of tries for each program that is to run; few fit the kernels with a given name.
  const int most_tries = options.name_part.empty() ? 20 : 5000;
  std::atomic<int> next = 0;
  std::atomic<int> ran = 0;
  std::mutex mutex;
  EpilogueReport sum;
  const auto work = [&] {
    Run run(options);
    while (ran < options.programs) {
      const int program = next++;
      if (program >= most_tries * options.programs) break;
      if (run.try_program(options.seed + static_cast<std::uint64_t>(program))) ++ran;
    }
    const std::scoped_lock lock(mutex);
    add(sum, run.report());
  };
  std::vector<std::jthread> workers;
  for (int worker = 1; worker < options.threads; ++worker) workers.emplace_back(work);
  work();
  workers.clear();
  return sum;
}

std::string to_string(const EpilogueReport& report) {
  std::string text = fmt::format(
      "{} programs ran, {} more mostly without a bound, {} were refused; {} runs, {} elements, {} "
      "of "
      "them without a bound\n",
      report.all.programs, report.silent, report.refused, report.all.runs, report.all.elements,
      report.all.without_bound);
  for (const auto& [family, tally] : report.of_family) {
    text += fmt::format("  {}: {} programs, {} runs, {} elements, {} of them without a bound\n",
                        family, tally.programs, tally.runs, tally.elements, tally.without_bound);
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(report.failures.size(), 10); ++i)
    text += report.failures[i] + "\n";
  return text;
}

}  // namespace gemmery::conformance
