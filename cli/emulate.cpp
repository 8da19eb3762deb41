// SPDX-License-Identifier: Apache-2.0
// gemmery emulate: runs one of the user's kernels on an emulated device and reports its faults.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <gemmery/discovery.hpp>
#include <gemmery/emulate.hpp>
#include <gemmery/error.hpp>

#include "cli/emulation_records.hpp"
#include "cli/emulation_words.hpp"
#include "cli/npy.hpp"
#include "cli/verbs.hpp"

namespace gemmery::cli {
namespace {

constexpr int default_schedules = 8;

// --- the request --------------------------------------------------------------------------------

Device device_of(const std::string& word) {
  const std::string name = word.empty() ? "h200" : word;
  const std::string full = name.starts_with("emulated:") ? name : "emulated:" + name;
  if (const std::optional<Device> device = parse_device(full)) return *device;
  std::string known;
  for (const std::string_view each : known_device_names())
    known += (known.empty() ? "" : ", ") + std::string(each);
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "--device",
               .expected = "one of " + known,
               .got = "'" + word + "'"});
}

std::vector<std::string> compile_options(const EmulateOptions& options) {
  std::vector<std::string> words = options.compile_options;
  for (const std::string& folder : options.include_folders) words.push_back("-I" + folder);
  for (const std::string& definition : options.definitions) words.push_back("-D" + definition);
  const std::filesystem::path folder = std::filesystem::path(options.kernel).parent_path();
  words.push_back("-I" + (folder.empty() ? std::string(".") : folder.string()));
  return words;
}

std::vector<NamedArgument> named_arguments(const EmulateOptions& options) {
  std::vector<NamedArgument> arguments;
  for (const std::string& word : options.arguments)
    arguments.push_back(parse_argument(word, arguments.size()));
  return arguments;
}

EmulationRequest request_of(const Options& all, const std::vector<NamedArgument>& arguments) {
  const EmulateOptions& options = all.emulate;
  EmulationRequest request{
      .code = read_text(options.kernel),
      .file = options.kernel,
      .compile_options = compile_options(options),
      .entry = options.entry,
      .device = device_of(all.device),
      .launch = {.grid = parse_extents(options.grid, "--grid"),
                 .block = parse_extents(options.block, "--block"),
                 .cluster = parse_extents(options.cluster, "--cluster"),
                 .shared_bytes = options.shared_bytes,
                 .seed = std::max<std::uint64_t>(all.seed, 1)},
      .arguments = {},
      .schedules = options.schedules == 0 ? default_schedules : options.schedules,
      .stops_at_first = options.stops_at_first,
      .timeout_s = options.timeout_s,
      .sampled_clusters = options.sampled_clusters,
      .wants_coverage = options.wants_coverage,
      .rules = options.rules.empty() ? std::string() : read_text(options.rules),
      .rules_file = options.rules};
  if (!options.trace.empty()) request.trace = parse_trace(options.trace);
  for (const NamedArgument& each : arguments) request.arguments.push_back(each.argument);
  return request;
}

// --- text ---------------------------------------------------------------------------------------

// Prints a text of several lines, each wrapped.
void print_lines(const std::string& text, Output& output) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) output.write_prose(line);
}

// Prints one line for each range of instructions that no lane executed.
void print_coverage(const std::vector<EmulatedLine>& lines, Output& output) {
  const auto ran = std::ranges::count_if(lines, &EmulatedLine::has_run);
  output.write_line(fmt::format("coverage: {} of {} instructions ran", ran, lines.size()));
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (lines[at].has_run) continue;
    const EmulatedLine& first = lines[at];
    while (at + 1 < lines.size() && !lines[at + 1].has_run) ++at;
    const std::string place = first.source_line == 0
                                  ? std::string()
                                  : fmt::format("; {}:{}", first.source_file, first.source_line);
    output.write_line(
        fmt::format("  not run: PTX lines {} to {}{}", first.ptx_line, lines[at].ptx_line, place));
  }
}

// A line for each instruction: warp, lanes, PTX, place in the source, result of the first lane.
void print_trace(const std::vector<EmulatedStep>& steps, Output& output) {
  for (const EmulatedStep& step : steps) {
    const EmulatedPlace& place = step.place;
    const std::string source = place.source_line == 0
                                   ? std::string()
                                   : fmt::format("  {}:{}", place.source_file, place.source_line);
    output.write_line(fmt::format("warp {}  lanes {:08x}  {}: {}{}{}", place.warp, step.lanes,
                                  place.ptx_line, place.ptx_text, source,
                                  step.result.empty() ? "" : "  " + step.result));
  }
}

// --- JSON ---------------------------------------------------------------------------------------

void write_line(const EmulatedLine& line, Output& output) {
  output.write_record({{"record", "line"},
                       {"ptx_line", line.ptx_line},
                       {"ptx", line.ptx_text},
                       {"file", line.source_file},
                       {"line", line.source_line},
                       {"ran", line.has_run}});
}

void write_step(const EmulatedStep& step, Output& output) {
  output.write_record({{"record", "step"},
                       {"at", to_record(step.place)},
                       {"lanes", step.lanes},
                       {"result", step.result}});
}

void write_summary(const EmulationReport& report, const EmulationRequest& request, Output& output) {
  output.write_record({{"record", "summary"},
                       {"kernel", report.kernel},
                       {"device", to_string(request.device)},
                       {"passed", report.passed()},
                       {"timed_out", report.timed_out},
                       {"schedules", report.schedules},
                       {"warp_instructions", report.warp_instructions},
                       {"lane_instructions", report.lane_instructions},
                       {"unused_rules", report.unused_rules}});
}

// --- results ------------------------------------------------------------------------------------

// Writes the array to the output folder, if there is one, and returns its path; otherwise "".
std::string save(const EmulationOutput& result, const NamedArgument& argument,
                 const std::string& folder) {
  if (folder.empty()) return {};
  std::filesystem::create_directories(folder);
  const std::string file = (std::filesystem::path(folder) / (argument.name + ".npy")).string();
  write_npy(file, {.descr = argument.descr, .shape = argument.shape, .bytes = result.bytes});
  return file;
}

void write_result(const EmulationOutput& result, const NamedArgument& argument,
                  const std::string& file, Output& output) {
  if (output.is_json()) {
    Record record = {{"record", "result"},
                     {"argument", result.argument},
                     {"name", argument.name},
                     {"bytes", result.bytes.size()},
                     {"unwritten_bytes", result.unwritten_bytes}};
    if (!file.empty()) record["file"] = file;
    return output.write_record(record);
  }
  std::string text;
  if (!file.empty()) text = fmt::format("{} -> {}", argument.name, file);
  if (result.unwritten_bytes != 0)
    text += fmt::format("{}{} of its {} bytes were never written",
                        text.empty() ? argument.name + ": " : "; ", result.unwritten_bytes,
                        result.bytes.size());
  if (!text.empty()) output.write_line(text);
}

void write_report(const EmulationReport& report, const EmulationRequest& request, Output& output) {
  if (output.is_text()) {
    print_trace(report.trace, output);
    if (request.wants_coverage) print_coverage(report.coverage, output);
    return print_lines(to_string(report), output);
  }
  for (const EmulationFinding& finding : report.findings) write_finding(finding, output);
  for (const EmulatedLine& line : report.coverage) write_line(line, output);
  for (const EmulatedStep& step : report.trace) write_step(step, output);
  write_summary(report, request, output);
}

}  // namespace

ExitCode emulate_kernel(const Options& options, Output& output) {
  if (options.emulate.kernel.empty()) {
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "kernel",
                 .expected = "a .cu or .ptx file",
                 .got = "none",
                 .hint = "see gemmery emulate --help"});
  }
  const std::vector<NamedArgument> arguments = named_arguments(options.emulate);
  const EmulationRequest request = request_of(options, arguments);
  const EmulationReport report = emulate(request);
  for (const EmulationOutput& result : report.outputs) {
    const NamedArgument& argument = arguments[result.argument];
    write_result(result, argument, save(result, argument, options.output), output);
  }
  write_report(report, request, output);
  if (report.timed_out) return ExitCode::failed;
  return report.passed() ? ExitCode::success : ExitCode::not_served;
}

}  // namespace gemmery::cli
