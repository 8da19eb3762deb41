// SPDX-License-Identifier: Apache-2.0
// Addresses in arrays of pointers, where the host can read them.
#pragma once

#include <gemmery/arguments.hpp>

namespace gemmery::operation {

// Of arguments on the CPU, before they run. Throws Error (invalid_argument) naming the operand and
// the matrix: a null pointer, an address that breaks the promised alignment, two matrices of out
// (or of another result) at one address. Other overlaps are not looked for.
void check_pointed_memory(const GemmArguments& arguments);

}  // namespace gemmery::operation
