// SPDX-License-Identifier: Apache-2.0
// gemmery tune: finds the fastest kernels of problems and stores them; lists and forgets what is
// stored.
#include <chrono>
#include <cmath>

#include <fmt/format.h>
#include <gemmery/error.hpp>
#include <gemmery/tune.hpp>

#include "cli/device_choice.hpp"
#include "cli/problem_table.hpp"
#include "cli/problem_words.hpp"
#include "cli/progress.hpp"
#include "cli/quantities.hpp"
#include "cli/selection.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace gemmery::cli {
namespace {

std::vector<ProblemLine> read_problems(const Options& options) {
  std::vector<ProblemLine> problems;
  for (const std::string& line : problem_lines(options.words))
    problems.push_back(parse_problem(line));
  if (options.file.empty()) return problems;
  for (const NamedProblem& row : read_problem_table(options.file, options.dtypes))
    problems.push_back(parse_problem(row.line));
  return problems;
}

Error no_problems(const char* expected, const char* example) {
  return Error({.kind = ErrorKind::invalid_argument,
                .operand = "problem",
                .expected = expected,
                .got = "none",
                .hint = std::string("for example: ") + example});
}

// --- tuning -------------------------------------------------------------------------------------

Record tuning_record(const TuningEntry& entry) {
  return {{"problem", entry.problem},
          {"device_name", entry.conditions.device},
          {"driver", entry.conditions.driver},
          {"compiler", entry.conditions.compiler},
          {"gemmery_version", entry.conditions.gemmery},
          {"kernel_name", entry.kernel},
          {"median_us", entry.median_us},
          {"rounds", entry.rounds},
          {"tuned_at", entry.tuned_at}};
}

// JSON has no infinity.
Record number_or_null(double value) {
  return std::isfinite(value) ? Record(value) : Record(nullptr);
}

void write_result(const TuneResult& result, Output& output) {
  Record record = tuning_record(result.entry);
  record["outcome"] = name(result.outcome);
  record["candidates"] = Record::array();
  for (const TunedCandidate& candidate : result.entry.candidates) {
    record["candidates"].push_back({{"kernel_name", candidate.kernel},
                                    {"predicted_us", number_or_null(candidate.predicted_us)},
                                    {"time_us", candidate.time_us},
                                    {"outcome", candidate.outcome}});
  }
  output.write_record(record);
}

std::string verdict(const TuneResult& result) {
  switch (result.outcome) {
    case TuneOutcome::stored:
      return fmt::format("  stored: {}, {}, after {} rounds in turn", result.entry.kernel,
                         time_text(result.entry.median_us), result.entry.rounds);
    case TuneOutcome::stored_before:
      return fmt::format("  stored before, at {}: {}, {}; --force measures again",
                         result.entry.tuned_at, result.entry.kernel,
                         time_text(result.entry.median_us));
    case TuneOutcome::undecided:
      return "  not stored: the budget was spent before the finalists could be compared; raise "
             "--budget";
    case TuneOutcome::none_passed:
      return "  not stored: no candidate ran and passed verification";
  }
  return {};
}

std::string time_or_none(double microseconds) {
  return microseconds > 0 && std::isfinite(microseconds) ? time_text(microseconds) : "-";
}

void print_result(const TuneResult& result, Output& output) {
  output.write_prose(result.entry.problem);
  output.write_prose(verdict(result));
  if (result.entry.candidates.empty()) return;
  Table table{">predicted", ">time", "outcome", "kernel"};
  for (const TunedCandidate& candidate : result.entry.candidates)
    table.add_row({time_or_none(candidate.predicted_us), time_or_none(candidate.time_us),
                   candidate.outcome, candidate.kernel});
  table.print(output, columns_to_fit(STDOUT_FILENO));
}

// The budget of the command, shared by the problems that are left.
class Budget {
 public:
  explicit Budget(double seconds) : seconds_(seconds) {}

  double share_of(std::size_t problems_left) const {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    const double left = std::max(seconds_ - spent.count(), least_share * seconds_);
    return left / static_cast<double>(problems_left);
  }

 private:
  // When others have used more than their part.
  static constexpr double least_share = 0.05;

  double seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

bool is_success(TuneOutcome outcome) {
  return outcome == TuneOutcome::stored || outcome == TuneOutcome::stored_before;
}

ExitCode tune_problems(const Options& options, Output& output) {
  const std::vector<ProblemLine> problems = read_problems(options);
  if (problems.empty())
    throw no_problems("at least one, or --file", "gemmery tune gemm 1024x1024x1024 a=f32");
  const ChosenDevice device = choose_present_device(options);
  const Budget budget(options.tuning.budget_s);
  Progress progress(problems.size());
  bool are_all_stored = true;
  for (std::size_t index = 0; index < problems.size(); ++index) {
    const ProblemLine& line = problems[index];
    progress.step(to_string(line));
    TuneOptions how{.device = *device.device,
                    .budget_s = budget.share_of(problems.size() - index),
                    .candidates = options.tuning.candidates,
                    .measures_again = options.tuning.measures_again,
                    .filter = filter_of(options),
                    .seed = options.seed};
    how.progress = [&](const TuneProgress& now) {
      progress.within_step(now.share,
                           fmt::format("{} {}: {}", now.stage, now.kernel, to_string(line)));
    };
    const TuneResult result = tune(line, how);
    are_all_stored = are_all_stored && is_success(result.outcome);
    if (output.is_text()) {
      print_result(result, output);
    } else {
      write_result(result, output);
    }
    output.flush();  // what is printed is stored
  }
  return are_all_stored ? ExitCode::success : ExitCode::not_served;
}

// --- what is stored -----------------------------------------------------------------------------

bool is_asked(const TuningEntry& entry, const std::vector<ProblemLine>& problems) {
  return problems.empty() || std::ranges::any_of(problems, [&](const ProblemLine& line) {
           return to_string(line.problem) == entry.problem;
         });
}

void print_stored(const StoredTuning& entry, Output& output) {
  output.write_prose(entry.problem);
  output.write_prose(fmt::format("  {}, {}", time_text(entry.median_us), entry.kernel));
  output.write_prose(fmt::format("  {} here; {}, {}, {}, gemmery {}; stored at {}",
                                 entry.holds_here ? "holds" : "does not hold",
                                 entry.conditions.device, entry.conditions.driver,
                                 entry.conditions.compiler, entry.conditions.gemmery,
                                 entry.tuned_at));
}

ExitCode list_stored(const Options& options, Output& output) {
  const std::vector<ProblemLine> problems = read_problems(options);
  if (output.is_text()) output.write_line(tuning_file());
  for (const StoredTuning& entry : list_tunings()) {
    if (!is_asked(entry, problems)) continue;
    if (output.is_text()) {
      print_stored(entry, output);
      continue;
    }
    Record record = tuning_record(entry);
    record["holds_here"] = entry.holds_here;
    output.write_record(record);
  }
  return ExitCode::success;
}

ExitCode forget_stored(const Options& options, Output& output) {
  std::vector<GemmProblem> problems;
  for (const ProblemLine& line : read_problems(options)) problems.push_back(line.problem);
  if (problems.empty() && !options.tuning.takes_all)
    throw no_problems("at least one, or --all", "gemmery tune --forget gemm 1024x1024x1024 a=f32");
  const std::size_t removed =
      options.tuning.takes_all ? forget_all_tunings() : forget_tunings(problems);
  if (output.is_text()) {
    output.write_line(fmt::format("removed {} {}", removed, removed == 1 ? "result" : "results"));
  } else {
    output.write_record({{"removed", removed}});
  }
  return ExitCode::success;
}

}  // namespace

ExitCode tune_kernels(const Options& options, Output& output) {
  switch (options.tuning.action) {
    case TuningAction::list:
      return list_stored(options, output);
    case TuningAction::forget:
      return forget_stored(options, output);
    case TuningAction::tune:
      break;
  }
  return tune_problems(options, output);
}

}  // namespace gemmery::cli
