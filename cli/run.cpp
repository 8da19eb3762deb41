// SPDX-License-Identifier: Apache-2.0
// gemmery run: finds, compiles, times and verifies the best kernel of a problem.
#include <optional>

#include <fmt/format.h>
#include <gemmery/family.hpp>
#include <gemmery/measure.hpp>
#include <gemmery/verify.hpp>

#include "cli/device_choice.hpp"
#include "cli/problem_words.hpp"
#include "cli/quantities.hpp"
#include "cli/records.hpp"
#include "cli/selection.hpp"
#include "cli/verbs.hpp"

namespace gemmery::cli {
namespace {

struct RunResult {
  ProblemLine line;
  ChosenDevice device;
  Kernel kernel;
  Target target;
  double compile_ms = 0;
  std::optional<Measurement> measurement;  // none for an emulated device
  VerifyReport verification;
};

std::optional<Measurement> measure_once(const Options& options, const ProblemLine& line,
                                        const Kernel& kernel, Device device) {
  if (device.type == DeviceType::emulated) return std::nullopt;
  return measure(line, kernel, {.device = device, .seed = options.seed});
}

RunResult run_once(const Options& options, const ProblemLine& line, const ChosenDevice& device) {
  const Kernel kernel = select_kernels(options, line.problem, device, 1).front();
  tell_cliff(options, line.problem, device);
  const Target target = kernel.family().target_for(kernel, device.info);
  const Artifact artifact = kernel.compile(target);
  return {.line = line,
          .device = device,
          .kernel = kernel,
          .target = target,
          .compile_ms = artifact.compile_ms(),
          .measurement = measure_once(options, line, kernel, *device.device),
          .verification = verify(line, kernel, {.seed = options.seed, .device = *device.device})};
}

void print_time(const Measurement& measurement, Output& output) {
  output.write_prose(fmt::format("time      {} (median of {}, quartiles {} to {})",
                                 time_text(measurement.median_us), measurement.samples,
                                 time_text(measurement.quartile_low_us),
                                 time_text(measurement.quartile_high_us)));
  output.write_prose(fmt::format("rate      {}", rate_text(measurement.flops_per_second)));
  output.write_prose(fmt::format("roofline  {} (least time by peak arithmetic and bandwidth {})",
                                 share_text(measurement.roofline_share),
                                 time_text(measurement.roofline_us)));
}

void print_error(const VerifyReport& report, Output& output) {
  output.write_prose(
      fmt::format("error     {} of its bound at most, |error| <= {:.3g} ({} elements, {}, seed {})",
                  share_text(report.worst_ratio), report.worst_error, report.elements,
                  report.method, report.seed));
  output.write_prose(report.passed ? "verified  yes" : "verified  NO: " + report.first_failure);
}

void print_result(const RunResult& result, Output& output) {
  output.write_prose("problem   " + to_string(result.line));
  output.write_prose(fmt::format("device    {}, {}", result.device.label, result.device.info.name));
  output.write_prose(
      fmt::format("kernel    {} ({})", result.kernel.name(), result.kernel.family().provider()));
  const bool is_kept = result.compile_ms == 0 && !result.target.is_cpu();
  output.write_prose(
      is_kept
          ? fmt::format("compile   found in the cache, for {}", to_string(result.target))
          : fmt::format("compile   {:.1f} ms for {}", result.compile_ms, to_string(result.target)));
  if (result.measurement) {
    print_time(*result.measurement, output);
  } else {
    output.write_prose("time      not measured: that of an emulated device means nothing");
  }
  print_error(result.verification, output);
}

void write_result(const RunResult& result, Output& output) {
  Record record = {{"problem", to_string(result.line)}};
  add_device(record, result.device);
  record["kernel_name"] = result.kernel.name();
  record["provider"] = result.kernel.family().provider();
  record["target"] = to_string(result.target);
  record["compile_ms"] = result.compile_ms;
  if (result.measurement) add_measurement(record, *result.measurement);
  add_verification(record, result.verification);
  output.write_record(record);
}

}  // namespace

ExitCode run_problem(const Options& options, Output& output) {
  const ProblemLine line = read_problem(options.words);
  const RunResult result = run_once(options, line, choose_present_device(options));
  if (output.is_text()) {
    print_result(result, output);
  } else {
    write_result(result, output);
  }
  return result.verification.passed ? ExitCode::success : ExitCode::not_served;
}

}  // namespace gemmery::cli
