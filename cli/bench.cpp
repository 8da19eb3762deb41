// SPDX-License-Identifier: Apache-2.0
// gemmery bench: times kernels on problems; the kernels of a problem run in turn.
#include <fmt/format.h>
#include <gemmery/error.hpp>
#include <gemmery/family.hpp>
#include <gemmery/measure.hpp>

#include "cli/device_choice.hpp"
#include "cli/problem_table.hpp"
#include "cli/problem_words.hpp"
#include "cli/progress.hpp"
#include "cli/quantities.hpp"
#include "cli/records.hpp"
#include "cli/selection.hpp"
#include "cli/verbs.hpp"

namespace gemmery::cli {
namespace {

struct BenchProblem {
  std::string id;  // the id of its row in the file, else its position on the command line
  ProblemLine line;
};

std::vector<BenchProblem> read_problems(const Options& options) {
  std::vector<BenchProblem> problems;
  for (const std::string& line : problem_lines(options.words)) {
    problems.push_back({std::to_string(problems.size() + 1), parse_problem(line)});
  }
  if (!options.file.empty()) {
    for (const NamedProblem& row : read_problem_table(options.file, options.dtypes)) {
      problems.push_back({row.id, parse_problem(row.line)});
    }
  }
  if (!problems.empty()) return problems;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "problem",
               .expected = "at least one, or --file",
               .got = "none",
               .hint = "for example: gemmery bench gemm 1024x1024x1024 a=f32"});
}

// The measurements of one problem.
struct BenchRows {
  const BenchProblem& problem;
  std::vector<Kernel> kernels;
  std::vector<Measurement> measurements;
};

BenchRows time_kernels(const Options& options, const BenchProblem& problem,
                       const ChosenDevice& device) {
  std::vector<Kernel> kernels = select_kernels(options, problem.line.problem, device, options.top);
  tell_cliff(options, problem.line.problem, device);
  for (const Kernel& kernel : kernels)
    kernel.compile(kernel.family().target_for(kernel, device.info));
  const MeasureOptions how{.device = *device.device,
                           .samples = options.samples,
                           .sample_ms = options.sample_ms,
                           .seed = options.seed};
  std::vector<Measurement> measurements = measure_interleaved(problem.line, kernels, how);
  return {problem, std::move(kernels), std::move(measurements)};
}

void write_rows(const BenchRows& rows, const ChosenDevice& device, Output& output) {
  for (std::size_t index = 0; index < rows.kernels.size(); ++index) {
    const Kernel& kernel = rows.kernels[index];
    Record record = {{"id", rows.problem.id}, {"problem", to_string(rows.problem.line)}};
    add_device(record, device);
    record["kernel_name"] = kernel.name();
    record["provider"] = kernel.family().provider();
    add_measurement(record, rows.measurements[index]);
    record["data"] = "normal";
    output.write_record(record);
  }
  output.flush();  // a long run shows its results so far
}

std::string quartiles(const Measurement& measurement) {
  return fmt::format("{} .. {}", time_text(measurement.quartile_low_us),
                     time_text(measurement.quartile_high_us));
}

void add_rows(const BenchRows& rows, Table& table) {
  for (std::size_t index = 0; index < rows.kernels.size(); ++index) {
    const Measurement& measurement = rows.measurements[index];
    table.add_row({rows.problem.id, to_string(rows.problem.line), time_text(measurement.median_us),
                   quartiles(measurement), fmt::format("{}", measurement.samples),
                   rate_text(measurement.flops_per_second), share_text(measurement.roofline_share),
                   rows.kernels[index].name()});
  }
}

}  // namespace

ExitCode bench(const Options& options, Output& output) {
  const std::vector<BenchProblem> problems = read_problems(options);
  const ChosenDevice device = choose_present_device(options);
  Table table{"id", "problem", ">median", ">quartiles", ">n", ">rate", ">roofline", "kernel"};
  Progress progress(problems.size());
  for (const BenchProblem& problem : problems) {
    progress.step(to_string(problem.line));
    const BenchRows rows = time_kernels(options, problem, device);
    if (output.is_text()) {
      add_rows(rows, table);
    } else {
      write_rows(rows, device, output);
    }
  }
  if (output.is_text()) table.print(output);
  return ExitCode::success;
}

}  // namespace gemmery::cli
