// SPDX-License-Identifier: Apache-2.0
// Decoders of the integer forms of opcodes that floats have, too; arithmetic.cpp chooses.
#pragma once

#include "emulator/instruction/form.hpp"

namespace gemmery::emulator {

void decode_integer_add(Form& form, ScalarType type);  // add and sub; the opcode says which
void decode_integer_multiply(Form& form, ScalarType type);
void decode_integer_multiply_add(Form& form, ScalarType type);
void decode_integer_divide(Form& form, ScalarType type);   // div, rem
void decode_integer_sign(Form& form, ScalarType type);     // abs, neg
void decode_integer_extreme(Form& form, ScalarType type);  // min, max

// add sub mad with .cc, and addc subc madc.
void decode_carrying(Form& form, ScalarType type);

// Rows of the opcodes that only integers and untyped bits have.
DecodeRows integer_rows();
DecodeRows bit_rows();
DecodeRows carry_rows();

}  // namespace gemmery::emulator
