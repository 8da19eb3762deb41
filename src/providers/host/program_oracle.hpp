// SPDX-License-Identifier: Apache-2.0
// Results of programs held against intervals: what the sums may be, through every operation with
// the error that it declares, to every element of every result and every reduction.
#pragma once

#include <gemmery/arguments.hpp>

#include "providers/host/oracle.hpp"

namespace gemmery::host {

// Of arguments with a program other than the default one, on the CPU, whose results a kernel has
// stored. A tensor that is read must be as it was before: not one that a result was stored to.
Comparison compare_program_with_oracle(const GemmArguments& arguments,
                                       const DeclaredMath& declared);

// For larger problems: rows chosen at random, element by element. Reductions over rows are not
// among them; `skipped` is how many results that leaves out.
struct RowSample {
  Comparison comparison;
  int rows = 0;
  int skipped = 0;
};
RowSample check_rows_of_program(const GemmArguments& arguments, const DeclaredMath& declared,
                                int rows, std::uint64_t seed);

}  // namespace gemmery::host
