// SPDX-License-Identifier: Apache-2.0
// Broken invariants: a bug of this library. The message says so and the process ends.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace gemmery {

// Aborts with the place and the message. Only for what no input can cause. (Clang 14 lacks
// std::source_location, but has the built-ins it is made of.)
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
