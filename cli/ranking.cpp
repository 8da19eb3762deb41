// SPDX-License-Identifier: Apache-2.0
#include "cli/ranking.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gemmery/device_facts.hpp>
#include <gemmery/discovery.hpp>

#include "cli/quantities.hpp"
#include "cli/records.hpp"
#include "cli/terminal.hpp"

namespace gemmery::cli {
namespace {

double rate(const GemmProblem& problem, const RankedKernel& kernel) {
  return problem.flops() / (kernel.predicted_us * 1e-6);
}

const char* time_source(const RankedKernel& kernel, const ChosenDevice& device) {
  if (kernel.is_measured) return "measured";
  return is_model_calibrated(device.info.target) ? "predicted" : "estimated";
}

constexpr std::size_t shown_by_default = 10;

// Family and design: what kernels for other alignments have in common.
std::string design_of(const Kernel& kernel) {
  const Metadata& metadata = kernel.metadata();
  std::string text(kernel.family().name());
  for (const DesignField& field : metadata.design) text += ' ' + field.name + '=' + field.value;
  return text;
}

// Ranks, from 0: with a limit all of them; else the first ten of different designs.
std::vector<std::size_t> shown_ranks(std::span<const RankedKernel> kernels, bool has_limit) {
  std::vector<std::size_t> ranks;
  std::set<std::string> designs;
  for (std::size_t rank = 0; rank < kernels.size(); ++rank) {
    if (!has_limit && ranks.size() == shown_by_default) break;
    if (has_limit || designs.insert(design_of(kernels[rank])).second) ranks.push_back(rank);
  }
  return ranks;
}

void print_table(std::span<const RankedKernel> kernels, std::span<const std::size_t> ranks,
                 const GemmProblem& problem, const ChosenDevice& device, bool is_wide,
                 Output& output) {
  Table table{">rank", ">time", ">rate", "from", "kernel"};
  for (const std::size_t rank : ranks) {
    const RankedKernel& kernel = kernels[rank];
    table.add_row({fmt::format("{}", rank + 1), time_text(kernel.predicted_us),
                   rate_text(rate(problem, kernel)), time_source(kernel, device), kernel.name()});
  }
  table.print(output, is_wide ? std::nullopt : columns_to_fit(STDOUT_FILENO));
}

void print_ranking(std::span<const RankedKernel> kernels, const GemmProblem& problem,
                   const ChosenDevice& device, const Options& options, Output& output) {
  const std::vector<std::size_t> ranks = shown_ranks(kernels, options.limit >= 0);
  print_table(kernels, ranks, problem, device, options.wide, output);
  if (ranks.size() == kernels.size()) return;
  output.flush();  // the note must follow the table
  tell_note(fmt::format("{} more: --limit 0 shows all", kernels.size() - ranks.size()));
}

void write_records(const std::vector<RankedKernel>& kernels, const ProblemLine& line,
                   const ChosenDevice& device, Output& output) {
  int rank = 0;
  for (const RankedKernel& kernel : kernels) {
    Record record = {{"problem", to_string(line)}};
    add_device(record, device);
    record["rank"] = ++rank;
    record["predicted_us"] = kernel.predicted_us;
    record["is_measured"] = kernel.is_measured;
    record["time_source"] = time_source(kernel, device);
    record.update(to_record(kernel.metadata()));
    output.write_record(record);
  }
}

}  // namespace

void write_ranking(const std::vector<RankedKernel>& kernels, const ProblemLine& line,
                   const ChosenDevice& device, const Options& options, Output& output) {
  if (output.is_text()) {
    print_ranking(kernels, line.problem, device, options, output);
  } else {
    write_records(kernels, line, device, output);
  }
}

std::string estimation_note(const ChosenDevice& device) {
  if (is_model_calibrated(device.info.target)) return {};
  return fmt::format(
      "times on {} are estimated from the device's facts: no kernel was timed on this architecture",
      to_string(device.info.target));
}

void tell_unconfirmed(const ChosenDevice& device) {
  const std::string_view facts = unconfirmed_facts(device.info);
  if (facts.empty()) return;
  tell_note(fmt::format("note: facts of {} that no source confirms: {}", device.info.name, facts));
}

}  // namespace gemmery::cli
