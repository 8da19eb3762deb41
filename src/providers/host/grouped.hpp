// SPDX-License-Identifier: Apache-2.0
// Grouped products on the CPU: the sizes are read when work runs, and each group is one product.
#pragma once

#include <gemmery/arguments.hpp>

namespace gemmery::host {

// Computes a product on at most so many threads; 0: all.
struct Multiply {
  void (*call)(const void* context, const GemmArguments& arguments, int threads);
  const void* context;
};

// Says whether groups may be computed concurrently, each by one thread.
enum class Concurrency : bool { one_by_one, side_by_side };

// Throws Error (invalid_argument) for invalid sizes, before anything is written.
void run_groups(const GemmArguments& arguments, Multiply multiply, Concurrency concurrency,
                int threads);

// The problem as one GEMM with the extents of all groups together, for questions about types,
// layouts and strides.
GemmProblem one_group(GemmProblem problem);

}  // namespace gemmery::host
