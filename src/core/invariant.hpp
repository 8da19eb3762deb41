// SPDX-License-Identifier: Apache-2.0
// The third kind of no: a broken invariant is our bug, says so and ends the process.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace gemmery {

// Aborts with the place and the words. For what no input can cause. (The built-ins are what
// std::source_location stands on; clang 14 has them, and not the header.)
[[noreturn]] inline void abort_on_bug(const char* what, const char* file = __builtin_FILE(),
                                      int line = __builtin_LINE()) noexcept {
  std::fprintf(stderr, "%s:%d: %s; this is a bug in gemmery\n", file, line, what);
  std::abort();
}

inline void require(bool holds, const char* what, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) noexcept {
  if (!holds) abort_on_bug(what, file, line);
}

}  // namespace gemmery
