// SPDX-License-Identifier: Apache-2.0
// What the library tells whoever started the program: lines of JSON in the file that
// GEMMERY_EMULATION_RECORD names, or else text on standard error.
#pragma once

#include <string_view>

#include "emulator/handles.hpp"

namespace gemmery::drop_in {

// Takes the faults of all launches from now on.
void record_findings();

// A call that was refused.
void record_refusal(std::string_view words) noexcept;

}  // namespace gemmery::drop_in
