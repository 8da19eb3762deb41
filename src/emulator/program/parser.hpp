// SPDX-License-Identifier: Apache-2.0
// PTX text to Program.
#pragma once

#include <string_view>

#include "emulator/program/program.hpp"

namespace gemmery::emulator {

// Throws Error (invalid_argument; operand "PTX line N", got the text) for what is not PTX: unknown
// directives, undeclared names, malformed numbers. Knows the syntax, not the instructions: any
// opcode is taken. Any bytes are safe to give: bounded depth, bounded register counts, no recursion
// on input length.
//
// `call (r0), f, (p0, p1), prototype;` gives operands {list of results, symbol f, list of
// arguments}, the lists empty where absent; braces `{ … }` inside a function open a scope whose
// register and variable names hide outer ones (as inline assembly uses them); labels are local to
// their scope likewise and unique in Function::labels.
Program parse_ptx(std::string_view text);

}  // namespace gemmery::emulator
