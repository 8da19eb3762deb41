// SPDX-License-Identifier: Apache-2.0
// Checks that both compilers apply to their results, and their error messages.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "jit/compiler.hpp"

namespace gemmery::jit {

// The time limit of one compilation: GEMMERY_COMPILE_TIMEOUT.
std::chrono::seconds compile_time_limit();

// Throws Error (compile) with the entry, the target, the source's first line, the compiler's log,
// and the path of a file with the source (in a folder that only this user can read; for the first
// few failures of a process).
[[noreturn]] void throw_compile_error(const CompileRequest& request, std::string expected,
                                      std::string_view problem, const std::string& log);

// For a compilation that timed out or was cancelled.
[[noreturn]] void throw_late(const CompileRequest& request, const std::string& log);
[[noreturn]] void throw_cancelled(const CompileRequest& request);

// Throws Error (compile) if the log contains a warning.
void refuse_warnings(const CompileRequest& request, const std::string& log);

// Checks that the entry exists; reads a cubin's usage from the log.
void check_entry(const CompileRequest& request, CompiledCode& code);

// `text` without occurrences of a folder's path, so that it does not depend on the place.
std::string without_folder(std::string text, const std::string& folder);

}  // namespace gemmery::jit
