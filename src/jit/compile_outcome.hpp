// SPDX-License-Identifier: Apache-2.0
// What both compilers hold their results to, and how they say that something went wrong.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "jit/compiler.hpp"

namespace gemmery::jit {

// How long one compilation may take: GEMMERY_COMPILE_TIMEOUT.
std::chrono::seconds compile_time_limit();

// Throws Error (compile) with the entry, the target, the source's own first line, the compiler's
// log, and the path of a file that the source was written to (in a folder that only this user can
// read; the first few failures of a process).
[[noreturn]] void throw_compile_error(const CompileRequest& request, std::string expected,
                                      std::string_view problem, const std::string& log);

// For a compilation that took too long or that nobody wants any more.
[[noreturn]] void throw_late(const CompileRequest& request, const std::string& log);
[[noreturn]] void throw_cancelled(const CompileRequest& request);

// Throws Error (compile) where the log warns.
void refuse_warnings(const CompileRequest& request, const std::string& log);

// The entry is there; of a cubin its usage is read from the log.
void check_entry(const CompileRequest& request, CompiledCode& code);

// `text` without every place of a folder's path, so that it is the same wherever it was made.
std::string without_folder(std::string text, const std::string& folder);

}  // namespace gemmery::jit
