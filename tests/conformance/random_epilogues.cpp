// SPDX-License-Identifier: Apache-2.0
// Draws a product, a program over it, and the kernels to run.
#include "tests/conformance/random_epilogues.hpp"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "api/trial.hpp"

namespace gemmery::conformance {
namespace {

// Layouts, types that are narrowed, tails and batches.
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

std::string random_product(std::mt19937_64& random, int most_extent) {
  const auto extent = [&] {
    const auto value = 1 + static_cast<int>(random() % static_cast<unsigned>(most_extent));
    return random() % 2 == 0 ? value : (value + 7) / 8 * 8;
  };
  const int m = extent();
  const int n = extent();
  const int k = extent();
  const std::string batches = random() % 4 == 0 ? "x" + std::to_string(2 + random() % 3) : "";
  const std::string_view product = products[random() % std::size(products)];
  const std::string pitch = product.ends_with("=") ? std::to_string((n + 15) / 8 * 8) : "";
  return fmt::format("gemm {}x{}x{}{} a={}{}", m, n, k, batches, product, pitch);
}

// The best, and others behind it.
std::vector<Kernel> choose(const std::vector<RankedKernel>& kernels, std::size_t count,
                           std::mt19937_64& random) {
  std::vector<Kernel> all(kernels.begin(), kernels.end());
  if (all.size() > 1) std::shuffle(all.begin() + 1, all.end(), random);
  if (all.size() > count) all.erase(all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
  return all;
}

bool has_families_for(const GemmProblem& problem, const DeviceInfo& device) {
  GemmProblem plain = problem;
  plain.epilogue = default_epilogue;
  plain.epilogue_operands.clear();
  return !get_kernels(plain, device).empty();
}

class Run {
 public:
  explicit Run(const EpilogueOptions& options)
      : options_(options), device_(device_info(options.device)) {}

  void try_program(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::string text = tests::add_random_program(
        random, random_product(random, options_.most_extent), options_.limits);
    replay_ = fmt::format("{} (seed {})", text, seed);
    const ProblemLine line = parse_problem(text);
    const auto kernels = get_kernels(line.problem, device_);
    if (kernels.empty()) return check_refusal(line.problem);
    ++report_.programs;
    for (const Kernel& kernel : choose(kernels, options_.kernels_per_program, random))
      try_kernel(line, kernel, seed);
  }
  const EpilogueReport& report() const { return report_; }

 private:
  void try_kernel(const ProblemLine& line, const Kernel& kernel, std::uint64_t seed) {
    ++report_.runs;
    try {
      const VerifyReport report =
          api::run_trial({.line = line,
                          .options = {.seed = seed, .device = options_.device},
                          .with_specials = seed % 3 == 0,
                          .repeats = 2},
                         kernel);
      report_.elements += report.elements;
      report_.open += report.open;
      if (!report.passed) fail(kernel.name() + ": " + report.first_failure);
    } catch (const Error& error) {
      fail(kernel.name() + ": " + error.what());
    }
  }

  // Where the product alone is served, somebody must say what of the epilogue is not.
  void check_refusal(const GemmProblem& problem) {
    ++report_.refused;
    if (!has_families_for(problem, device_)) return;
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
  Run run(options);
  for (int program = 0; program < options.programs; ++program)
    run.try_program(options.seed + static_cast<std::uint64_t>(program));
  return run.report();
}

std::string to_string(const EpilogueReport& report) {
  std::string text =
      fmt::format("{} programs ran, {} were refused; {} runs, {} elements, {} of them open\n",
                  report.programs, report.refused, report.runs, report.elements, report.open);
  for (std::size_t i = 0; i < std::min<std::size_t>(report.failures.size(), 10); ++i)
    text += report.failures[i] + "\n";
  return text;
}

}  // namespace gemmery::conformance
