// SPDX-License-Identifier: Apache-2.0
// Comparisons and choices: setp set selp slct.
#pragma once

#include "emulator/instruction/decode.hpp"

namespace gemmery::emulator {

DecodeRows compare_rows();

}  // namespace gemmery::emulator
