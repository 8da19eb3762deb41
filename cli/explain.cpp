// SPDX-License-Identifier: Apache-2.0
// gemmery explain: the reason why each family and class of designs serves a problem or not.
#include <unistd.h>

#include <fmt/format.h>
#include <gemmery/discovery.hpp>

#include "cli/device_choice.hpp"
#include "cli/problem_words.hpp"
#include "cli/ranking.hpp"
#include "cli/records.hpp"
#include "cli/selection.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace gemmery::cli {
namespace {

std::string verdict(const Reason& reason) {
  if (!reason.failed.empty()) return reason.failed;
  return fmt::format("{} {} it", reason.fitting,
                     reason.fitting == 1 ? "kernel serves" : "kernels serve");
}

void print_reasons(const std::vector<Reason>& reasons, bool is_wide, Output& output) {
  Table table{"provider", "family", "design", "~answer"};
  for (const Reason& reason : reasons) {
    table.add_row({reason.provider, reason.family, reason.design_class, verdict(reason)});
    for (const Kernel& kernel : reason.nearest)
      table.add_row({"", "", "", "  nearest: " + kernel.name()});
  }
  table.print(output, is_wide ? std::nullopt : columns_to_fit(STDOUT_FILENO));
}

Record nearest_names(const Reason& reason) {
  Record list = Record::array();
  for (const Kernel& kernel : reason.nearest) list.push_back(kernel.name());
  return list;
}

Record head(const ProblemLine& line, const ChosenDevice& device) {
  Record record = {{"problem", to_string(line)}};
  add_device(record, device);
  return record;
}

ExitCode explain_families(const Options& options, const ProblemLine& line,
                          const ChosenDevice& device, Output& output) {
  const Explanation explanation = explain(line.problem, device.info, filter_of(options));
  const std::vector<Reason>& reasons = explanation.reasons;
  if (output.is_text()) {
    output.write_prose(
        fmt::format("{} on {} ({})", to_string(line), device.label, device.info.name));
    if (!explanation.runs_as.empty()) output.write_prose("a plain GEMM: " + explanation.runs_as);
    if (!explanation.tuned.empty()) output.write_prose("tuned: " + explanation.tuned);
    print_reasons(reasons, options.wide, output);
    return ExitCode::success;
  }
  for (const Reason& reason : reasons) {
    Record record = head(line, device);
    if (!explanation.runs_as.empty()) record["runs_as"] = explanation.runs_as;
    if (!explanation.tuned.empty()) record["tuned"] = explanation.tuned;
    record["provider"] = reason.provider;
    record["family"] = reason.family;
    record["design_class"] = reason.design_class;
    record["fitting"] = reason.fitting;
    record["failed"] = reason.failed;
    record["nearest"] = nearest_names(reason);
    output.write_record(record);
  }
  return ExitCode::success;
}

ExitCode explain_ranking(const Options& options, const ProblemLine& line,
                         const ChosenDevice& device, Output& output) {
  std::vector<RankedKernel> kernels = get_kernels(line.problem, device.info, filter_of(options));
  if (options.limit > 0 && kernels.size() > static_cast<std::size_t>(options.limit))
    kernels.erase(kernels.begin() + options.limit, kernels.end());
  const std::string note = estimation_note(device);
  if (!note.empty()) tell_note("note: " + note);
  tell_unconfirmed(device);
  write_ranking(kernels, line, device, options, output);
  return ExitCode::success;
}

ExitCode explain_kernel(const Options& options, const ProblemLine& line, const ChosenDevice& device,
                        Output& output) {
  const Kernel kernel = kernel_of_name(options.kernels.front());
  const Status status = kernel.supports(line.problem, device.info);
  if (output.is_text()) {
    output.write_prose(kernel.name() + (status ? " serves it" : ": " + status.error()));
    return ExitCode::success;
  }
  Record record = head(line, device);
  record["kernel_name"] = kernel.name();
  record["supported"] = status.is_success();
  record["failed"] = status.error();
  output.write_record(record);
  return ExitCode::success;
}

}  // namespace

ExitCode explain_problem(const Options& options, Output& output) {
  const ProblemLine line = read_problem(options.words);
  const ChosenDevice device = choose_device(options);
  if (options.ranking) return explain_ranking(options, line, device, output);
  return options.kernels.empty() ? explain_families(options, line, device, output)
                                 : explain_kernel(options, line, device, output);
}

}  // namespace gemmery::cli
