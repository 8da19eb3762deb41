// SPDX-License-Identifier: Apache-2.0
// Which functions an entry may call.
#pragma once

#include <vector>

#include "emulator/program/program.hpp"

namespace gemmery::emulator {

// All of them, the entry first. Throws Error (unsupported) for recursion and for calls through a
// register.
std::vector<const Function*> reachable_functions(const Program& program, const Function& entry);

// The function that a `call` names; nullptr if it has no body (vprintf).
const Function* called_function(const Program& program, const Instruction& call);

// Throws Error (unsupported) with the PTX line, the instruction and the reason.
[[noreturn]] void refuse_instruction(const Instruction& instruction, std::string_view why);

}  // namespace gemmery::emulator
