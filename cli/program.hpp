// SPDX-License-Identifier: Apache-2.0
// The program `gemmery` as a function. docs/cli.md is its manual.
#pragma once

namespace gemmery::cli {

// Obeys the command line, whose first word is the program's name; returns the exit code. Ignores
// SIGPIPE from then on.
int run_program(int argc, char** argv);

}  // namespace gemmery::cli
