// SPDX-License-Identifier: Apache-2.0
// gemmery emulate PROGRAM: runs a CUDA program unchanged on emulated devices and reports its
// faults.
#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <gemmery/device.hpp>
#include <gemmery/emulate.hpp>
#include <gemmery/error.hpp>

#include "cli/emulated_process.hpp"
#include "cli/emulation_records.hpp"
#include "cli/verbs.hpp"

namespace gemmery::cli {
namespace {

// "h200,emulated:h200" without the prefixes. Throws Error (invalid_argument) for a device that is
// not known.
std::string device_names(const std::string& words) {
  std::string names;
  std::string_view rest = words.empty() ? std::string_view("h200") : words;
  while (true) {
    const std::size_t end = rest.find(',');
    std::string name(rest.substr(0, end));
    if (name.starts_with("emulated:")) name.erase(0, 9);
    if (!find_device_info(name))
      throw Error({.kind = ErrorKind::invalid_argument,
                   .operand = "--device",
                   .expected = "names of known devices, such as h200 or h200,h200",
                   .got = "'" + name + "'"});
    names += (names.empty() ? "" : ",") + name;
    if (end == std::string_view::npos) return names;
    rest.remove_prefix(end + 1);
  }
}

// All runs of the program.
struct ProgramRuns {
  EmulationReport report;
  std::uint64_t launches = 0;
  int exit_code = 0;  // of the first run that failed
  int signal = 0;     // that ended a run
  int interrupted_by = 0;
  std::vector<std::string> refusals;
  std::map<std::string, std::size_t> places;  // of the report's findings
};

void add(ProgramRuns& runs, EmulatedProcessResult result) {
  EmulationReport& report = runs.report;
  for (std::size_t index = 0; index < result.findings.size(); ++index) {
    EmulationFinding& found = result.findings[index];
    const auto [place, is_new] =
        runs.places.try_emplace(result.places[index], report.findings.size());
    if (is_new) {
      report.findings.push_back(std::move(found));
      continue;
    }
    EmulationFinding& known = report.findings[place->second];
    known.count += found.count;
    known.seeds.insert(known.seeds.end(), found.seeds.begin(), found.seeds.end());
    known.is_by_the_letter = known.is_by_the_letter && found.is_by_the_letter;
  }
  for (std::string& refusal : result.refusals) {
    if (std::ranges::find(runs.refusals, refusal) == runs.refusals.end())
      runs.refusals.push_back(std::move(refusal));
  }
  ++report.schedules;
  report.timed_out = report.timed_out || result.timed_out;
  report.warp_instructions += result.warp_instructions;
  report.lane_instructions += result.lane_instructions;
  runs.launches += result.launches;
  if (runs.exit_code == 0) runs.exit_code = result.exit_code;
  if (runs.signal == 0) runs.signal = result.signal;
  if (runs.interrupted_by == 0) runs.interrupted_by = result.interrupted_by;
}

ProgramRuns run_all(const Options& all, bool keeps_output_free) {
  const EmulateOptions& options = all.emulate;
  ProgramRuns runs;
  runs.report.kernel = options.program.front();
  EmulatedProcess process{.words = options.program,
                          .devices = device_names(all.device),
                          .seed = std::max<std::uint64_t>(all.seed, 1),
                          .timeout_s = options.timeout_s,
                          .keeps_output_free = keeps_output_free};
  for (int run = 0; run < std::max(options.schedules, 1); ++run, ++process.seed) {
    add(runs, run_emulated(process));
    if (runs.report.timed_out || runs.interrupted_by != 0) break;
    if (options.stops_at_first && !runs.report.findings.empty()) break;
  }
  return runs;
}

void write_summary(const ProgramRuns& runs, const Options& options, Output& output) {
  const EmulationReport& report = runs.report;
  output.write_record({{"record", "summary"},
                       {"program", options.emulate.program},
                       {"devices", device_names(options.device)},
                       {"passed", report.passed()},
                       {"timed_out", report.timed_out},
                       {"exit_code", runs.exit_code},
                       {"runs", report.schedules},
                       {"launches", runs.launches},
                       {"warp_instructions", report.warp_instructions},
                       {"lane_instructions", report.lane_instructions},
                       {"refused", runs.refusals},
                       {"unused_rules", report.unused_rules}});
}

void write_report(const ProgramRuns& runs, const Options& options, Output& output) {
  if (output.is_text()) {
    if (runs.signal != 0 && !runs.report.timed_out)
      tell_note(fmt::format(
          "gemmery: {} was ended by a signal ({}); launches of that run, and how often a finding "
          "occurred, were not counted",
          runs.report.kernel, strsignal(runs.signal)));
    else if (runs.launches == 0 && runs.report.findings.empty() && !runs.report.timed_out)
      tell_note(
          "gemmery: no kernel was launched; see docs/emulator-programs.md for what a program "
          "needs");
    std::istringstream lines(to_string(runs.report));
    for (std::string line; std::getline(lines, line);) tell_prose(line);
    return;
  }
  for (const EmulationFinding& finding : runs.report.findings) write_finding(finding, output);
  write_summary(runs, options, output);
}

ExitCode exit_code_of(const ProgramRuns& runs) {
  if (runs.report.timed_out) return ExitCode::failed;
  if (!runs.report.passed()) return ExitCode::not_served;
  return static_cast<ExitCode>(runs.exit_code);
}

}  // namespace

ExitCode emulate_program(const Options& options, Output& output) {
  ProgramRuns runs = run_all(options, !output.is_text());
  if (!options.emulate.rules.empty())
    suppress_findings(runs.report, read_text(options.emulate.rules), options.emulate.rules);
  write_report(runs, options, output);
  if (runs.interrupted_by != 0) {
    output.flush();
    std::signal(runs.interrupted_by, SIG_DFL);
    std::raise(runs.interrupted_by);  // after the report, as if it had ended this process at once
  }
  return exit_code_of(runs);
}

}  // namespace gemmery::cli
