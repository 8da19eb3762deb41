// SPDX-License-Identifier: Apache-2.0
// Reading special registers.
#pragma once

#include "emulator/instruction/decode.hpp"

namespace gemmery::emulator {

// Decodes `mov` from %tid.x and the like; false if the source is not a special register.
bool decode_special_move(DecodeContext& context, const Instruction& instruction,
                         Operation& operation);

}  // namespace gemmery::emulator
