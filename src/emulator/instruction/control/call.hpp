// SPDX-License-Identifier: Apache-2.0
// Calls of functions of the module, and of the two that the driver offers: vprintf, __assertfail.
#pragma once

#include "emulator/instruction/decode.hpp"

namespace gemmery::emulator {

void decode_call(DecodeContext& context, const Instruction& instruction, Operation& operation);
// `ret` of a function that is not an entry.
void make_return(DecodeContext& context, Operation& operation);

// How a `call` finds its arguments and where its results go; in local memory.
struct CallBlocks {
  std::vector<FunctionPlace::Block> arguments;
  std::vector<FunctionPlace::Block> results;
};
// Functions that have no body in the module; false: not one that is known. (system_call.cpp)
bool decode_system_call(DecodeContext& context, const Instruction& instruction,
                        const CallBlocks& blocks, Operation& operation);

}  // namespace gemmery::emulator
