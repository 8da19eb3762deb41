// SPDX-License-Identifier: Apache-2.0
// Runs the verb of a command line, and turns errors into exit codes.
#include "cli/program.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <string>

#include <gemmery/version.hpp>

#include "cli/help.hpp"
#include "cli/own_kernels.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace gemmery::cli {
namespace {

// The width of wrapped text: the terminal's, within limits that keep it readable.
std::size_t text_columns(int file) {
  return std::clamp<std::size_t>(terminal_columns(file).value_or(80), 40, 100);
}

ExitCode print_help(const std::string& verb, Output& output) {
  const std::size_t columns = text_columns(STDOUT_FILENO);
  output.write(verb.empty() ? help_overview(columns)
                            : help_of_verb(verb, option_names(verb), columns));
  return ExitCode::success;
}

// Without a verb: prints the list of verbs on standard error.
ExitCode tell_first_page() {
  tell(first_page(text_columns(STDERR_FILENO)));
  return ExitCode::bad_input;
}

ExitCode run_verb(const std::string& verb, const Options& options, Output& output) {
  if (verb == "list") return list(options, output);
  if (verb == "explain") return explain_problem(options, output);
  if (verb == "run") return run_problem(options, output);
  if (verb == "verify") return verify_problem(options, output);
  if (verb == "bench") return bench(options, output);
  if (verb == "tune") return tune_kernels(options, output);
  if (verb == "compile") return compile_problems(options, output);
  if (verb == "inspect") return inspect_code(options, output);
  if (verb == "emulate") {
    return options.emulate.program.empty() ? emulate_kernel(options, output)
                                           : emulate_program(options, output);
  }
  if (verb == "new") return write_new_kernel(options, output);
  if (verb == "cache") return tidy_cache(options, output);
  if (verb == "completion") return print_completion(options, output);
  return report_doctor(options, output);
}

ExitCode obey(const CommandLine& line, Output& output) {
  if (line.wants_help) return print_help(line.verb, output);
  if (line.wants_man_page) {
    output.write(as_man_page());
    return ExitCode::success;
  }
  if (line.wants_version) {
    output.write_line(std::string("gemmery ") + version());
    return ExitCode::success;
  }
  if (line.verb.empty()) return tell_first_page();
  if (line.options.is_quiet) be_quiet();
  load_own_kernels(line.options.libraries);
  return run_verb(line.verb, line.options, output);
}

ExitCode run_line(int argc, char** argv) {
  const CommandLine line = parse_command_line(argc, argv);
  Output output(line.options.format);
  const ExitCode code = obey(line, output);
  output.flush();
  return code;
}

ExitCode run_guarded(int argc, char** argv) {
  try {
    return run_line(argc, argv);
  } catch (const OutputClosed&) {
    return ExitCode::success;
  } catch (const Error& error) {
    tell_error(error);
    return exit_code_of(error.kind());
  } catch (const std::exception& error) {
    tell(std::string("gemmery: this is a bug in gemmery: ") + error.what());
    return ExitCode::failed;
  }
}

}  // namespace

int run_program(int argc, char** argv) {
  // If the reader closes the pipe early, a write fails with EPIPE and the program ends quietly.
  std::signal(SIGPIPE, SIG_IGN);
  return static_cast<int>(run_guarded(argc, argv));
}

}  // namespace gemmery::cli
