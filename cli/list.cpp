// SPDX-License-Identifier: Apache-2.0
// gemmery list: all kernels, or those that run a problem, best first.
#include <unistd.h>

#include <fmt/format.h>
#include <gemmery/discovery.hpp>

#include "cli/device_choice.hpp"
#include "cli/metadata_json.hpp"
#include "cli/problem_words.hpp"
#include "cli/ranking.hpp"
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

// Thrown from the enumeration's callback to stop it when the limit is reached.
struct LimitReached {};

// Without a problem, --device means --target with the device's target.
Options narrowed_to_device(Options options) {
  if (options.device.empty()) return options;
  const ChosenDevice device = choose_device(options);
  if (options.target.empty()) options.target = to_string(device.info.target);
  return options;
}

// There are millions of kernels: a terminal gets a few of them.
constexpr int shown_on_terminal = 10;

ExitCode list_all(const Options& options, Output& output) {
  const bool is_sample = options.limit < 0 && output.is_text() && ::isatty(STDOUT_FILENO) == 1;
  const int limit = is_sample ? shown_on_terminal : options.limit;
  int count = 0;
  MetadataJson json;
  const auto visit = [&](const Kernel& kernel) {
    write_kernel(kernel, json, output);
    if (++count == limit) throw LimitReached{};
  };
  try {
    for_each_kernel(visit, filter_of(options));
  } catch (const LimitReached&) {
  }
  if (is_sample && count == limit) {
    output.flush();  // the note must follow the names
    tell_note("more: --limit 0 shows all; gemmery list PROBLEM shows those that run a problem");
  }
  return count > 0 ? ExitCode::success : ExitCode::not_served;
}

// "float32", "sm_80 sm_90a", "tile=64x64x8 stages=4"; of operands a group for each.
std::string spaced(const Record& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_structured()) return value.dump();
  std::string text;
  for (const auto& [key, item] : value.items()) {
    if (!text.empty()) text += item.is_object() ? "; " : " ";
    if (value.is_object()) text += key + (item.is_object() ? ": " : "=");
    text += spaced(item);
  }
  return text;
}

// One field per line.
void print_metadata(const Metadata& metadata, Output& output) {
  const Record record = to_record(metadata);  // outlives the loop: items() only refers to it
  for (const auto& [field, value] : record.items()) {
    output.write_prose(fmt::format("{:<22}  {}", field, spaced(value)));
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
  // No kernel fits: throws an error with the reasons.
  if (kernels.empty()) select_kernels(options, problem, device, 0);
  if (options.limit > 0 && kernels.size() > static_cast<std::size_t>(options.limit)) {
    kernels.erase(kernels.begin() + options.limit, kernels.end());
  }
  return kernels;
}

ExitCode list_fitting(const Options& options, Output& output) {
  const ProblemLine line = read_problem(options.words);
  const ChosenDevice device = choose_device(options);
  const std::vector<RankedKernel> kernels = ranked_kernels(options, line.problem, device);
  tell_cliff(options, line.problem, device);
  tell_unconfirmed(device);
  write_ranking(kernels, line, device, options, output);
  return ExitCode::success;
}

}  // namespace

ExitCode list(const Options& options, Output& output) {
  if (!options.words.empty()) return list_fitting(options, output);
  if (!options.kernels.empty()) return list_named(options, output);
  return list_all(narrowed_to_device(options), output);
}

}  // namespace gemmery::cli
