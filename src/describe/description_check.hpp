// SPDX-License-Identifier: Apache-2.0
// Whether the fields of a description go together, without any compiler.
#pragma once

#include <gemmery/describe.hpp>

namespace gemmery::describe {

// Throws Error naming the first field that does not. Shapes of tiles are checked where the kernel
// is made.
void check_description(const GemmDescription& description);

// Of one operand, where none of the others matters.
void check_alignment(std::string_view operand, const TensorDescription& tensor);

}  // namespace gemmery::describe
