// SPDX-License-Identifier: Apache-2.0
// The text form of operand programs: that of epilogues, with other names for the accumulator and D.
#pragma once

#include <gemmery/operand_program.hpp>
#include <gemmery/operand_program_text.hpp>

#include <string>
#include <string_view>

namespace gemmery::epilogue {

// "program_a", "program_b"
std::string_view program_name(ProductOperand operand) noexcept;

// Throws Error (invalid_argument) for a program with reductions or with results besides D; `name`
// is the operand of the error.
void check_operand_program(const Program& program, std::string_view name);

// The words of an epilogue as those of a program of this operand: a for accum, A for D.
std::string in_operand_words(std::string_view text, ProductOperand operand);

}  // namespace gemmery::epilogue
