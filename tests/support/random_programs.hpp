// SPDX-License-Identifier: Apache-2.0
// Random epilogues: programs drawn from the grammar, over all operations, casts, kinds of operands,
// further results and reductions, bound to random operands of a problem.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include <gemmery/problem.hpp>

namespace gemmery::tests {

// What is drawn. Limits are those of a kernel family under test.
struct ProgramLimits {
  int depth = 6;  // operations within each other
  int most_tensors = 5;
  int most_numbers = 3;
  int most_results = 3;  // beside D
  bool with_reductions = true;
  bool with_batch_reductions = true;  // over batches, where there are several
  // Of a grouped product in place of a batch: the extent that differs, 'k' where each group has a
  // matrix of out. Reductions are then of a group, or of rows or columns of one.
  char groups = 0;
};

// The line of a problem without an epilogue ("gemm 8x8x8 a=f16 out=f32") with a random one and its
// operands: text that `parse_problem` reads. The same random numbers give the same line everywhere.
std::string add_random_program(std::mt19937_64& random, const std::string& line,
                               const ProgramLimits& limits = {});

}  // namespace gemmery::tests
