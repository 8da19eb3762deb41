// SPDX-License-Identifier: Apache-2.0
// Checks results of epilogues against intervals: from possible accumulators, through every
// operation with its declared error, to every element of every result and every reduction.
#pragma once

#include <gemmery/arguments.hpp>

#include "providers/host/oracle.hpp"

namespace gemmery::host {

// For arguments with a program other than the default one, on the CPU, whose results a kernel has
// stored. Tensors that are read must be unchanged: not ones that a result was stored to.
Comparison compare_program_with_oracle(const GemmArguments& arguments,
                                       const DeclaredMath& declared);

// For larger problems: random rows, element by element. Reductions over rows are skipped; `skipped`
// counts these results.
struct RowSample {
  Comparison comparison;
  int rows = 0;
  int skipped = 0;
};
RowSample check_rows_of_program(const GemmArguments& arguments, const DeclaredMath& declared,
                                int rows, std::uint64_t seed);

}  // namespace gemmery::host
