// SPDX-License-Identifier: Apache-2.0
// Exit codes and error messages. Documented in docs/cli.md.
#pragma once

#include <cstdint>

#include <gemmery/error.hpp>

namespace gemmery::cli {

enum class ExitCode : std::uint8_t {
  success = 0,
  not_served = 1,
  bad_input = 2,
  unavailable = 3,
  failed = 4
};

ExitCode exit_code_of(ErrorKind kind) noexcept;

// Prints one line on standard error, followed by the output of a library or compiler if there is
// any.
void tell_error(const Error& error);

}  // namespace gemmery::cli
