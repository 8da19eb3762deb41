// SPDX-License-Identifier: Apache-2.0
// gemmery inspect: the source, the PTX, the machine code or the resources of kernels, from an
// artifact file or compiled for a problem.
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <gemmery/artifact.hpp>
#include <gemmery/error.hpp>
#include <gemmery/family.hpp>

#include "cli/code_summary.hpp"
#include "cli/device_choice.hpp"
#include "cli/interrupt_scope.hpp"
#include "cli/problem_words.hpp"
#include "cli/selection.hpp"
#include "cli/verbs.hpp"

namespace gemmery::cli {
namespace {

// --- what is looked at --------------------------------------------------------------------------

// Whether the words are one word that names a file. A problem line begins with an operation, so it
// is never taken for a file.
bool is_file(const Options& options) {
  return options.words.size() == 1 && std::filesystem::is_regular_file(options.words.front());
}

// Refuses options that choose kernels for a problem if a file was given.
void refuse_choices_beside_file(const Options& options) {
  const bool chooses = !options.device.empty() || !options.target.empty() || options.top != 1 ||
                       !options.providers.empty() || !options.kernels.empty() ||
                       !options.designs.empty();
  if (!chooses) return;
  throw Error(
      {.kind = ErrorKind::invalid_argument,
       .operand = options.words.front(),
       .expected = "no --device, --target, --provider, --kernel, --design or --top with a file",
       .got = "one of them",
       .hint = "all kernels of a file are shown"});
}

// A word that names a file that is not there: no problem line has a '/' or '.' in its first word.
void refuse_missing_file(const Options& options) {
  const std::string word = options.words.size() == 1 ? options.words.front() : std::string();
  if (word.substr(0, word.find(' ')).find_first_of("/.") == std::string::npos) return;
  throw Error(
      {.kind = ErrorKind::io,
       .operand = word,
       .expected = "a problem or a file that gemmery compile wrote",
       .got = std::filesystem::exists(word) ? "something that is no file" : "no such file"});
}

std::vector<Artifact> compile_kernels(const Options& options) {
  refuse_missing_file(options);
  const std::vector<std::string> lines = problem_lines(options.words);
  if (lines.empty()) {
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "what to inspect",
                 .expected = "a problem or an artifact file",
                 .got = "none",
                 .hint = "for example: gemmery inspect gemm 4096x4096x4096 a=bf16 --device h200"});
  }
  std::vector<GemmProblem> problems;
  for (const std::string& line : lines) problems.push_back(parse_problem(line).problem);
  const ChosenDevice device = choose_gpu(options);
  std::vector<CompileJob> jobs;
  for (const GemmProblem& problem : problems) {
    for (const Kernel& kernel : select_kernels(options, problem, device, options.top))
      jobs.push_back({kernel, kernel.family().target_for(kernel, device.info)});
  }
  InterruptScope interrupts;
  std::vector<Artifact> artifacts;
  for (CompileResult& result : compile_all(jobs, {.stop = interrupts.token()})) {
    if (result.error) throw *std::move(result.error);
    artifacts.push_back(*std::move(result.artifact));
  }
  return artifacts;
}

std::vector<KernelCode> codes_of(const Options& options) {
  if (is_file(options)) return code_in_file(options.words.front());
  std::vector<KernelCode> codes;
  for (const Artifact& artifact : compile_kernels(options)) {
    for (KernelCode& code : code_of(artifact, options.inspection.form == CodeView::ptx))
      codes.push_back(std::move(code));
  }
  return codes;
}

// --- what is shown ------------------------------------------------------------------------------

[[noreturn]] void refuse_missing(const KernelCode& code, std::string_view form,
                                 std::string_view hint) {
  throw Error({.kind = ErrorKind::unavailable,
               .operand = code.kernel_name,
               .expected = fmt::format("{} for {}", form, to_string(code.target)),
               .got = "none in the file",
               .hint = std::string(hint)});
}

std::string text_of(const KernelCode& code, const InspectOptions& options) {
  switch (options.form) {
    case CodeView::source:
      return options.inlines_headers ? with_headers(code.source) : code.source;
    case CodeView::ptx:
      if (code.ptx.empty()) refuse_missing(code, "PTX", "gemmery compile --ptx keeps it");
      return code.ptx;
    default:
      if (code.cubin.empty()) refuse_missing(code, "a cubin", "compile the kernel again");
      return disassemble(code.cubin);
  }
}

constexpr std::string_view name(CodeView form) {
  constexpr std::string_view names[] = {"resources", "source", "ptx", "sass"};
  return names[static_cast<int>(form)];
}

// Separates several kernels by comments that name them. All three languages have comments.
void show_codes(std::span<const KernelCode> codes, const InspectOptions& options, Output& output) {
  for (const KernelCode& code : codes) {
    const std::string text = text_of(code, options);
    if (output.is_text()) {
      if (codes.size() > 1)
        output.write_line(fmt::format("// {} for {}", code.kernel_name, to_string(code.target)));
      output.write(text.ends_with('\n') ? text : text + '\n');
    } else {
      output.write_record({{"kernel_name", code.kernel_name},
                           {"target", to_string(code.target)},
                           {std::string(name(options.form)), text}});
    }
  }
}

}  // namespace

ExitCode inspect_code(const Options& options, Output& output) {
  if (is_file(options)) refuse_choices_beside_file(options);
  if (options.inspection.form != CodeView::resources) {
    show_codes(codes_of(options), options.inspection, output);
    return ExitCode::success;
  }
  if (is_file(options)) return print_file(options.words.front(), output);
  for (const Artifact& artifact : compile_kernels(options)) {
    for (const ArtifactSummary& summary : summarize(artifact)) print_summary(summary, output);
  }
  return ExitCode::success;
}

}  // namespace gemmery::cli
