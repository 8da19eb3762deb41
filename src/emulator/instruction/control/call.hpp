// SPDX-License-Identifier: Apache-2.0
// Calls of functions of the module, and of those that the driver provides (vprintf, malloc, …).
#pragma once

#include "emulator/instruction/decode.hpp"

namespace gemmery::emulator {

void decode_call(DecodeContext& context, const Instruction& instruction, Operation& operation);
// `ret` of a function that is not an entry.
void make_return(DecodeContext& context, Operation& operation);

// Where a `call` finds its arguments and stores its results, both in local memory.
struct CallBlocks {
  std::vector<FunctionPlace::Block> arguments;
  std::vector<FunctionPlace::Block> results;
};
// Decodes a call of a function without a body in the module; false if the function is unknown.
// (system_call.cpp)
bool decode_system_call(DecodeContext& context, const Instruction& instruction,
                        const CallBlocks& blocks, Operation& operation);

}  // namespace gemmery::emulator
