// SPDX-License-Identifier: Apache-2.0
// How the program ends: exit codes, and what it says of errors. Documented in docs/cli.md.
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

// One line on standard error, the words of a library or compiler below it.
void tell_error(const Error& error);

}  // namespace gemmery::cli
