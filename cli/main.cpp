// SPDX-License-Identifier: Apache-2.0
// gemmery: the command line. docs/cli.md is its manual.
#include "cli/program.hpp"

int main(int argc, char** argv) { return gemmery::cli::run_program(argc, argv); }
