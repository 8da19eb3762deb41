// SPDX-License-Identifier: Apache-2.0
// Parses PTX text to a Program.
#pragma once

#include <string_view>

#include "emulator/program/program.hpp"

namespace gemmery::emulator {

// Throws Error (invalid_argument; operand "PTX line N", got the text) for text that is not PTX:
// unknown directives, undeclared names, malformed numbers. The parser knows the syntax, not the
// instructions, so it accepts any opcode. Any input is safe: depth and register counts are bounded,
// and recursion does not depend on the input's length.
//
// `call (r0), f, (p0, p1), prototype;` gives operands {list of results, symbol f, list of
// arguments}; absent lists are empty. Braces `{ … }` inside a function open a scope whose register
// and variable names hide outer ones (inline assembly uses them). Labels are local to their scope,
// too, and unique in Function::labels.
Program parse_ptx(std::string_view text);

}  // namespace gemmery::emulator
