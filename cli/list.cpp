// SPDX-License-Identifier: Apache-2.0
// gemmery list: every kernel, or those that run a problem, best first.
#include <fmt/format.h>
#include <gemmery/discovery.hpp>

#include "cli/device_choice.hpp"
#include "cli/metadata_json.hpp"
#include "cli/problem_words.hpp"
#include "cli/quantities.hpp"
#include "cli/records.hpp"
#include "cli/selection.hpp"
#include "cli/verbs.hpp"

namespace gemmery::cli {
namespace {

void write_kernel(const Kernel& kernel, MetadataJson& json, Output& output) {
  if (output.is_text()) {
    output.write_line(kernel.name());
  } else if (output.is_json()) {
    output.write_line(json.write(kernel));
  } else {
    output.write_record(to_record(kernel.metadata()));
  }
}

// Thrown out of the enumeration when enough was listed: it has no other way to stop.
struct LimitReached {};

ExitCode list_all(const Options& options, Output& output) {
  int count = 0;
  MetadataJson json;
  const auto visit = [&](const Kernel& kernel) {
    write_kernel(kernel, json, output);
    if (++count == options.limit) throw LimitReached{};
  };
  try {
    for_each_kernel(visit, filter_of(options));
  } catch (const LimitReached&) {
  }
  return count > 0 ? ExitCode::success : ExitCode::not_served;
}

// A field per line.
void print_metadata(const Metadata& metadata, Output& output) {
  const Record record = to_record(metadata);  // outlives the loop: items() only refers to it
  for (const auto& [field, value] : record.items()) {
    output.write_line(fmt::format("{:<22} {}", field,
                                  value.is_string() ? value.get<std::string>() : value.dump()));
  }
}

ExitCode list_named(const Options& options, Output& output) {
  const Kernel kernel = kernel_of_name(options.kernels.front());
  if (output.is_text()) {
    print_metadata(kernel.metadata(), output);
  } else {
    output.write_record(to_record(kernel.metadata()));
  }
  return ExitCode::success;
}

std::vector<RankedKernel> ranked_kernels(const Options& options, const GemmProblem& problem,
                                         const ChosenDevice& device) {
  std::vector<RankedKernel> kernels = get_kernels(problem, device.info, filter_of(options));
  if (!options.kernels.empty()) {
    const Kernel wanted = kernel_of_name(options.kernels.front());
    std::erase_if(kernels, [&](const RankedKernel& kernel) {
      return static_cast<const Kernel&>(kernel) != wanted;
    });
  }
  // Nothing left: throws with the reasons.
  if (kernels.empty()) select_kernels(options, problem, device, 0);
  if (options.limit > 0 && kernels.size() > static_cast<std::size_t>(options.limit)) {
    kernels.erase(kernels.begin() + options.limit, kernels.end());
  }
  return kernels;
}

double predicted_rate(const GemmProblem& problem, const RankedKernel& kernel) {
  return problem.flops() / (kernel.predicted_us * 1e-6);
}

void print_ranked(const std::vector<RankedKernel>& kernels, const GemmProblem& problem,
                  Output& output) {
  Table table{">rank", ">time", ">rate", "from", "provider", "kernel"};
  int rank = 0;
  for (const RankedKernel& kernel : kernels) {
    table.add_row({fmt::format("{}", ++rank), time_text(kernel.predicted_us),
                   rate_text(predicted_rate(problem, kernel)),
                   kernel.is_measured ? "measured" : "predicted",
                   std::string(kernel.family().provider()), kernel.name()});
  }
  table.print(output);
}

void write_ranked(const std::vector<RankedKernel>& kernels, const ProblemLine& line,
                  const ChosenDevice& device, Output& output) {
  int rank = 0;
  for (const RankedKernel& kernel : kernels) {
    Record record = {{"problem", to_string(line)}};
    add_device(record, device);
    record["rank"] = ++rank;
    record["predicted_us"] = kernel.predicted_us;
    record["is_measured"] = kernel.is_measured;
    record.update(to_record(kernel.metadata()));
    output.write_record(record);
  }
}

ExitCode list_fitting(const Options& options, Output& output) {
  const ProblemLine line = parse_problem(only_problem_line(options.words));
  const ChosenDevice device = choose_device(options);
  const std::vector<RankedKernel> kernels = ranked_kernels(options, line.problem, device);
  tell_cliff(options, line.problem, device);
  if (output.is_text()) {
    print_ranked(kernels, line.problem, output);
  } else {
    write_ranked(kernels, line, device, output);
  }
  return ExitCode::success;
}

}  // namespace

ExitCode list(const Options& options, Output& output) {
  if (!options.words.empty()) return list_fitting(options, output);
  return options.kernels.empty() ? list_all(options, output) : list_named(options, output);
}

}  // namespace gemmery::cli
