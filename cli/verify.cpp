// SPDX-License-Identifier: Apache-2.0
// gemmery verify: checks the results of kernels against their proven bound.
#include <unistd.h>

#include <fmt/format.h>
#include <gemmery/family.hpp>
#include <gemmery/verify.hpp>

#include "cli/device_choice.hpp"
#include "cli/problem_words.hpp"
#include "cli/progress.hpp"
#include "cli/quantities.hpp"
#include "cli/records.hpp"
#include "cli/selection.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace gemmery::cli {
namespace {

Fill fill_of(const std::string& word) {
  if (word == "uniform") return Fill::uniform;
  return word == "integers" ? Fill::integers : Fill::normal;
}

VerifyOptions verify_options(const Options& options, const ChosenDevice& device) {
  return {.fill = fill_of(options.fill), .seed = options.seed, .device = *device.device};
}

void print_report(const Kernel& kernel, const VerifyReport& report, Output& output) {
  const std::string outcome = report.passed ? painted("ok", Colour::green, STDOUT_FILENO) + "      "
                                            : painted("FAILED", Colour::red, STDOUT_FILENO) + "  ";
  output.write_line(outcome + kernel.name());
  output.write_line(
      fmt::format("        worst error {} of what is allowed: {}\n"
                  "        {} of {} elements outside,{} {} guard bytes changed\n"
                  "        {}, seed {}",
                  share_text(report.worst_ratio), report.passed ? "ok" : "FAILED",
                  report.mismatches, report.elements,
                  report.without_bound > 0
                      ? fmt::format(" {} without a bound (not checked),", report.without_bound)
                      : "",
                  report.guard_violations, report.method, report.seed));
  if (!report.passed) output.write_prose("        " + report.first_failure);
}

void write_report(const ProblemLine& line, const ChosenDevice& device, const Kernel& kernel,
                  const VerifyReport& report, Output& output) {
  if (output.is_text()) return print_report(kernel, report, output);
  Record record = {{"problem", to_string(line)}};
  add_device(record, device);
  record["kernel_name"] = kernel.name();
  record["provider"] = kernel.family().provider();
  add_verification(record, report);
  output.write_record(record);
}

}  // namespace

ExitCode verify_problem(const Options& options, Output& output) {
  const ProblemLine line = read_problem(options.words);
  const ChosenDevice device = choose_present_device(options);
  const std::vector<Kernel> kernels = select_kernels(options, line.problem, device, options.top);
  bool all_passed = true;
  Progress progress(kernels.size());
  for (const Kernel& kernel : kernels) {
    progress.step(kernel.name());
    const VerifyReport report = verify(line, kernel, verify_options(options, device));
    write_report(line, device, kernel, report, output);
    all_passed = all_passed && report.passed;
  }
  return all_passed ? ExitCode::success : ExitCode::not_served;
}

}  // namespace gemmery::cli
