// SPDX-License-Identifier: Apache-2.0
// Which functions an entry may call.
#pragma once

#include <vector>

#include "emulator/program/program.hpp"

namespace gemmery::emulator {

// The entry first. Throws Error (unsupported) for recursion and for calls through a register.
std::vector<const Function*> reachable_functions(const Program& program, const Function& entry);

// The function that a `call` names; nullptr where it has no body (vprintf).
const Function* called_function(const Program& program, const Instruction& call);

// Throws Error (unsupported): PTX line, the instruction, why.
[[noreturn]] void refuse_instruction(const Instruction& instruction, std::string_view why);

}  // namespace gemmery::emulator
