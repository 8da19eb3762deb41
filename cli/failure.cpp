// SPDX-License-Identifier: Apache-2.0
// Prints errors on standard error and chooses the exit code.
#include "cli/failure.hpp"

#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>

#include "cli/output.hpp"
#include "cli/terminal.hpp"

namespace gemmery::cli {
namespace {

// "gemmery: ..." in one line, wrapped on a terminal, with the name in red.
void tell_failure(std::string text) {
  constexpr std::string_view name = "gemmery:";
  std::ranges::replace(text, '\n', ' ');
  std::string words = fitted_prose(std::string(name) + " " + text, STDERR_FILENO);
  tell(words.replace(0, name.size(), painted(name, Colour::red, STDERR_FILENO)));
}

}  // namespace

ExitCode exit_code_of(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::invalid_argument:
      return ExitCode::bad_input;
    case ErrorKind::unsupported:
      return ExitCode::not_served;
    case ErrorKind::unavailable:
      return ExitCode::unavailable;
    case ErrorKind::compile:
    case ErrorKind::launch:
    case ErrorKind::out_of_memory:
    case ErrorKind::io:
      return ExitCode::failed;
  }
  return ExitCode::failed;
}

void tell_error(const Error& error) {
  const bool has_log = error.cause().find('\n') != std::string::npos;
  if (!has_log) return tell_failure(error.what());
  const Error without_log({.kind = error.kind(),
                           .operand = error.operand(),
                           .expected = error.expected(),
                           .got = error.got(),
                           .hint = error.hint()});
  tell_failure(without_log.what());
  std::string_view log = error.cause();
  log.remove_prefix(std::min(log.find_first_not_of('\n'), log.size()));
  if (error.kind() == ErrorKind::compile) return tell(log);  // as the compiler wrote it
  std::istringstream lines{std::string(log)};
  for (std::string line; std::getline(lines, line);) tell_prose(line);
}

}  // namespace gemmery::cli
