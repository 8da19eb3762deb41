// SPDX-License-Identifier: Apache-2.0
// The verbs of the program. Each writes its results to the output and passes on exceptions of the
// library.
#pragma once

#include "cli/command_line.hpp"
#include "cli/failure.hpp"
#include "cli/output.hpp"

namespace gemmery::cli {

ExitCode list(const Options& options, Output& output);
ExitCode explain_problem(const Options& options, Output& output);
ExitCode run_problem(const Options& options, Output& output);
ExitCode verify_problem(const Options& options, Output& output);
ExitCode tune_kernels(const Options& options, Output& output);
ExitCode bench(const Options& options, Output& output);
ExitCode compile_problems(const Options& options, Output& output);
ExitCode inspect_code(const Options& options, Output& output);
ExitCode emulate_kernel(const Options& options, Output& output);
ExitCode emulate_program(const Options& options, Output& output);
ExitCode write_new_kernel(const Options& options, Output& output);
ExitCode tidy_cache(const Options& options, Output& output);
ExitCode print_completion(const Options& options, Output& output);
ExitCode report_doctor(const Options& options, Output& output);

}  // namespace gemmery::cli
