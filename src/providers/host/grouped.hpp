// SPDX-License-Identifier: Apache-2.0
// Grouped products on the CPU: the sizes are read when work runs, and each group is a product of
// its own.
#pragma once

#include <gemmery/arguments.hpp>

namespace gemmery::host {

// Computes a product on at most so many threads; 0: all.
struct Multiply {
  void (*call)(const void* context, const GemmArguments& arguments, int threads);
  const void* context;
};

// True if groups may be computed side by side, each by one thread.
enum class Concurrency : bool { one_by_one, side_by_side };

// Throws Error (invalid_argument) for sizes that do not fit, before anything is written.
void run_groups(const GemmArguments& arguments, Multiply multiply, Concurrency concurrency,
                int threads);

// The problem of a group that is as large as all of them together: for questions about types,
// layouts and strides.
GemmProblem one_group(GemmProblem problem);

}  // namespace gemmery::host
