// SPDX-License-Identifier: Apache-2.0
// Checks addresses in arrays of pointers that the host can read.
#pragma once

#include <gemmery/arguments.hpp>

namespace gemmery::operation {

// Checks arguments on the CPU before a run. Throws Error (invalid_argument) naming the operand and
// the matrix: a null pointer, an address that breaks the promised alignment, two matrices of out
// (or of another result) at one address. Other overlaps are not detected.
void check_pointed_memory(const GemmArguments& arguments);

}  // namespace gemmery::operation
