// SPDX-License-Identifier: Apache-2.0
// The third kind of no: a broken invariant is our bug, says so and ends the process.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>

namespace gemmery {

// Aborts with the place and the words. For what no input can cause.
[[noreturn]] inline void abort_on_bug(
    const char* what, std::source_location where = std::source_location::current()) noexcept {
  std::fprintf(stderr, "%s:%u: %s; this is a bug in gemmery\n", where.file_name(), where.line(), what);
  std::abort();
}

inline void require(bool holds, const char* what,
                    std::source_location where = std::source_location::current()) noexcept {
  if (!holds) abort_on_bug(what, where);
}

}  // namespace gemmery
