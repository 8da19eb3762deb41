// SPDX-License-Identifier: Apache-2.0
// gemmery bench: times kernels on problems; the kernels of a problem run in turn.
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <gemmery/error.hpp>
#include <gemmery/family.hpp>
#include <gemmery/measure.hpp>

#include "cli/bench_record.hpp"
#include "cli/device_choice.hpp"
#include "cli/problem_table.hpp"
#include "cli/problem_words.hpp"
#include "cli/progress.hpp"
#include "cli/quantities.hpp"
#include "cli/records.hpp"
#include "cli/report.hpp"
#include "cli/selection.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace gemmery::cli {
namespace {

struct BenchProblem {
  std::string id;  // the id of its row in the file, else its position on the command line
  ProblemLine line;
};

std::vector<BenchProblem> read_named_problems(const Options& options) {
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

// What a report shows beyond what a row of CSV has.
void add_report_fields(const BenchRows& rows, std::size_t index, const ChosenDevice& device,
                       Record& record) {
  record["bytes"] = rows.problem.line.problem.bytes();
  record["clock_ghz"] = device.info.clock_ghz;
  record["samples_us"] = rows.measurements[index].samples_us;
  add_machine(record);
}

std::vector<Record> records_of(const BenchRows& rows, const ChosenDevice& device, Format format) {
  std::vector<Record> records;
  for (std::size_t index = 0; index < rows.kernels.size(); ++index) {
    const Kernel& kernel = rows.kernels[index];
    Record record = {{"id", rows.problem.id}, {"problem", to_string(rows.problem.line)}};
    add_device(record, device);
    record["kernel_name"] = kernel.name();
    record["provider"] = kernel.family().provider();
    add_measurement(record, rows.measurements[index]);
    record["data"] = "normal";
    if (format != Format::csv) add_report_fields(rows, index, device, record);
    records.push_back(std::move(record));
  }
  return records;
}

std::string quartiles(const Measurement& measurement) {
  return fmt::format("{} .. {}", time_text(measurement.quartile_low_us),
                     time_text(measurement.quartile_high_us));
}

// A problem and its kernels below it.
void print_rows(const BenchRows& rows, Output& output) {
  Table table{">median", ">quartiles", ">n", ">rate", ">roofline", "kernel"};
  for (std::size_t index = 0; index < rows.kernels.size(); ++index) {
    const Measurement& measurement = rows.measurements[index];
    table.add_row({time_text(measurement.median_us), quartiles(measurement),
                   fmt::format("{}", measurement.samples), rate_text(measurement.flops_per_second),
                   share_text(measurement.roofline_share), rows.kernels[index].name()});
  }
  output.write_prose(fmt::format("{}  {}", rows.problem.id, to_string(rows.problem.line)));
  table.print(output, columns_to_fit(STDOUT_FILENO));
  output.flush();  // a long run shows its results so far
}

void write_rows(const std::vector<Record>& rows, Output& output) {
  for (const Record& row : rows) output.write_record(row);
  output.flush();  // a long run shows its results so far
}

ExitCode time_problems(const Options& options, Output& output) {
  const std::vector<BenchProblem> problems = read_named_problems(options);
  const ChosenDevice device = choose_present_device(options);
  Progress progress(problems.size());
  std::vector<Record> all;
  for (const BenchProblem& problem : problems) {
    progress.step(to_string(problem.line));
    const BenchRows rows = time_kernels(options, problem, device);
    if (output.is_text())
      print_rows(rows, output);
    else
      write_rows(records_of(rows, device, output.format()), output);
    if (!options.report.file.empty())
      std::ranges::copy(records_of(rows, device, Format::json), std::back_inserter(all));
  }
  if (!options.report.file.empty()) write_page(options.report.file, report_page(read_records(all)));
  return ExitCode::success;
}

// --- comparison ---------------------------------------------------------------------------------

Record comparison_record(const ComparedRow& row) {
  return {{"problem", row.after->problem},
          {"kernel_name", row.after->kernel},
          {"before_us", row.before->median_us},
          {"after_us", row.after->median_us},
          {"ratio", row.ratio()},
          {"least_ratio", row.least_ratio()},
          {"greatest_ratio", row.greatest_ratio()}};
}

ExitCode compare(const Options& options, Output& output) {
  const BenchRecord before = read_record_file(options.report.compared[0]);
  const BenchRecord after = read_record_file(options.report.compared[1]);
  if (!options.report.file.empty()) write_page(options.report.file, comparison_page(before, after));
  Table table{">before", ">after", ">ratio", ">from .. to", "~problem and kernel"};
  for (const ComparedRow& row : compare_records(before, after)) {
    if (!output.is_text()) {
      output.write_record(comparison_record(row));
      continue;
    }
    table.add_row({time_text(row.before->median_us), time_text(row.after->median_us),
                   fmt::format("{:.3f}", row.ratio()),
                   fmt::format("{:.3f} .. {:.3f}", row.least_ratio(), row.greatest_ratio()),
                   row.after->problem + ": " + row.after->kernel});
  }
  if (output.is_text()) table.print(output, columns_to_fit(STDOUT_FILENO));
  return ExitCode::success;
}

// --- a record -----------------------------------------------------------------------------------

ExitCode show_record(const Options& options, Output& output) {
  const BenchRecord record = read_record_file(options.report.from);
  if (!options.report.file.empty()) write_page(options.report.file, report_page(record));
  Table table{">median", ">rate", "~problem and kernel"};
  for (const BenchRow& row : record.rows) {
    if (!output.is_text()) {
      output.write_record({{"problem", row.problem},
                           {"kernel_name", row.kernel},
                           {"median_us", row.median_us},
                           {"flops_per_second", row.flops_per_second}});
      continue;
    }
    table.add_row({time_text(row.median_us), rate_text(row.flops_per_second),
                   row.problem + ": " + row.kernel});
  }
  if (output.is_text()) table.print(output, columns_to_fit(STDOUT_FILENO));
  return ExitCode::success;
}

void refuse_problems(const Options& options, const char* option, const char* expected) {
  if (options.words.empty()) return;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = option,
               .expected = expected,
               .got = "a problem"});
}

}  // namespace

ExitCode bench(const Options& options, Output& output) {
  if (!options.report.from.empty()) {
    refuse_problems(options, "--from", "a file of records and no problem");
    return show_record(options, output);
  }
  if (options.report.compared.empty()) return time_problems(options, output);
  refuse_problems(options, "--compare", "two files of records and no problem");
  return compare(options, output);
}

}  // namespace gemmery::cli
