// SPDX-License-Identifier: Apache-2.0
// Random epilogues: programs drawn from the grammar, over all operations, casts, kinds of operands,
// further results and reductions, bound to random operands of a problem.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include <gemmery/problem.hpp>

namespace gemmery::tests {

// The limits of random programs, for the kernel family under test.
struct ProgramLimits {
  int depth = 6;  // levels of nested operations
  int most_tensors = 5;
  int most_numbers = 3;
  int most_results = 3;  // in addition to D
  bool with_reductions = true;
  bool with_blocks = false;           // reductions of blocks within the program
  bool with_batch_reductions = true;  // over batches, if there are several
  // For a grouped product: the extent that differs; with 'k' each group has a matrix of out.
  // Reductions are then over a group, or over its rows or columns.
  char groups = 0;
};

// Adds a random epilogue and its operands to a problem line without one ("gemm 8x8x8 a=f16
// out=f32"). The same random numbers give the same line on every platform.
std::string add_random_program(std::mt19937_64& random, const std::string& line,
                               const ProgramLimits& limits = {});

}  // namespace gemmery::tests
