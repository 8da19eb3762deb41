// SPDX-License-Identifier: Apache-2.0
// gemmery compile: compiles the best kernels of problems into one file.
#include <unistd.h>

#include <algorithm>
#include <stop_token>
#include <utility>

#include <fmt/format.h>
#include <gemmery/artifact.hpp>
#include <gemmery/error.hpp>
#include <gemmery/family.hpp>

#include "cli/code_summary.hpp"
#include "cli/device_choice.hpp"
#include "cli/interrupt_scope.hpp"
#include "cli/problem_words.hpp"
#include "cli/progress.hpp"
#include "cli/quantities.hpp"
#include "cli/selection.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace gemmery::cli {
namespace {

[[noreturn]] void refuse_usage(std::string operand, std::string expected, std::string got) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = std::move(operand),
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = "see gemmery compile --help"});
}

// --- what is to be compiled ---------------------------------------------------------------------

// A kernel for a target, and the problems for which it was chosen.
struct Choice {
  CompileJob job;
  std::vector<std::string> problems;
};

void add_choice(std::vector<Choice>& choices, const CompileJob& job, const std::string& problem) {
  const auto known = std::ranges::find_if(choices, [&](const Choice& choice) {
    return choice.job.kernel == job.kernel && choice.job.target == job.target;
  });
  if (known == choices.end()) {
    choices.push_back({job, {problem}});
  } else if (std::ranges::find(known->problems, problem) == known->problems.end()) {
    known->problems.push_back(problem);
  }
}

void choose_for(const Options& options, const std::vector<ProblemLine>& lines,
                std::vector<Choice>& choices) {
  const ChosenDevice device = choose_gpu(options);
  for (const ProblemLine& line : lines) {
    for (const Kernel& kernel : select_kernels(options, line.problem, device, options.top)) {
      add_choice(choices, {kernel, kernel.family().target_for(kernel, device.info)},
                 to_string(line));
    }
  }
}

std::vector<Choice> choose(const Options& options) {
  std::vector<ProblemLine> lines;
  for (const std::string& line : problem_lines(options.words)) lines.push_back(parse_problem(line));
  if (lines.empty()) refuse_usage("problem", "at least one, or --inspect FILE", "none");
  std::vector<Choice> choices;
  if (options.targets.empty()) choose_for(options, lines, choices);
  for (const std::string& target : options.targets) {
    Options of_target = options;
    of_target.target = target;
    choose_for(of_target, lines, choices);
  }
  return choices;
}

// --- compiling ----------------------------------------------------------------------------------

std::vector<CompileResult> compile_choices(const std::vector<Choice>& choices,
                                           const Options& options, std::stop_token stop) {
  std::vector<CompileJob> jobs;
  for (const Choice& choice : choices) jobs.push_back(choice.job);
  Progress progress(jobs.size());
  const auto tell_progress = [&](const CompileResult& result, std::size_t, std::size_t) {
    progress.step(result.job.kernel.name());
  };
  return compile_all(jobs, {.jobs = options.jobs,
                            .with_ptx = options.with_ptx,
                            .progress = tell_progress,
                            .stop = std::move(stop)});
}

// Returns the kernels that compiled; reports the others on standard error.
std::vector<StoredArtifact> keep_compiled(const std::vector<Choice>& choices,
                                          const std::vector<CompileResult>& results) {
  std::vector<StoredArtifact> kept;
  for (std::size_t index = 0; index < results.size(); ++index) {
    const CompileResult& result = results[index];
    if (result.artifact) {
      kept.push_back({*result.artifact, choices[index].problems});
    } else {
      tell_error(*result.error);
    }
  }
  return kept;
}

void print_compiled(const std::vector<StoredArtifact>& compiled, Output& output) {
  Table table{"target", ">compile", ">registers", ">spilled", "kernel"};
  for (const StoredArtifact& one : compiled) {
    const CodeResources resources = one.artifact.resources().value_or(CodeResources{});
    table.add_row({to_string(one.artifact.targets().front()),
                   fmt::format("{:.0f} ms", one.artifact.compile_ms()),
                   fmt::format("{}", resources.registers),
                   fmt::format("{} B", resources.spill_store_bytes + resources.spill_load_bytes),
                   one.artifact.kernel().name()});
  }
  table.print(output, columns_to_fit(STDOUT_FILENO));
}

void write_compiled(const std::vector<StoredArtifact>& compiled, Output& output) {
  for (const StoredArtifact& one : compiled) {
    const CodeResources resources = one.artifact.resources().value_or(CodeResources{});
    output.write_record(
        {{"kernel_name", one.artifact.kernel().name()},
         {"target", to_string(one.artifact.targets().front())},
         {"problems", one.problems},
         {"compile_ms", one.artifact.compile_ms()},
         {"registers", resources.registers},
         {"static_shared_bytes", resources.static_shared_bytes},
         {"spill_bytes", resources.spill_store_bytes + resources.spill_load_bytes}});
  }
}

ExitCode compile_into_file(const Options& options, Output& output) {
  if (options.output.empty()) refuse_usage("--output", "the file to write", "none");
  const std::vector<Choice> choices = choose(options);
  InterruptScope interrupts;
  const std::vector<CompileResult> results = compile_choices(choices, options, interrupts.token());
  interrupts.end_if_asked("no file was written");
  const std::vector<StoredArtifact> compiled = keep_compiled(choices, results);
  if (!compiled.empty()) save_artifacts(options.output, compiled, {.with_ptx = options.with_ptx});
  if (output.is_text()) {
    print_compiled(compiled, output);
  } else {
    write_compiled(compiled, output);
  }
  tell_note(fmt::format("{} of {} kernel{} compiled{}", compiled.size(), results.size(),
                        results.size() == 1 ? "" : "s",
                        compiled.empty() ? "; no file was written" : " into " + options.output));
  interrupts.end_if_asked("all was done");
  return compiled.size() == results.size() ? ExitCode::success : ExitCode::failed;
}

}  // namespace

ExitCode compile_problems(const Options& options, Output& output) {
  if (options.inspect.empty()) return compile_into_file(options, output);
  if (!options.words.empty()) refuse_usage("--inspect", "no problem beside it", "one");
  return print_file(options.inspect, output);
}

}  // namespace gemmery::cli
