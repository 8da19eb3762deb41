// SPDX-License-Identifier: Apache-2.0
// Texts of operand programs, read without the tensors and numbers that they name.
#pragma once

#include <string_view>

#include <gemmery/export.hpp>
#include <gemmery/operand_program.hpp>

namespace gemmery {

// The operand that a text assigns or takes as a parameter. Throws Error (invalid_argument) for a
// text with neither or with both.
GEMMERY_API ProductOperand operand_of_program(std::string_view text);

// The program of this operand: its accum is the element, its D the value. Throws Error as
// OperandProgram.
GEMMERY_API epilogue::Program read_operand_program(std::string_view text, ProductOperand operand);

}  // namespace gemmery
