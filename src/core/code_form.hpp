// SPDX-License-Identifier: Apache-2.0
// The forms in which a compiler gives code and a driver takes it.
#pragma once

#include <cstdint>

namespace gemmery {

// Machine code of one architecture, or the text that machine code is made from.
enum class CodeForm : std::uint8_t { cubin, ptx };
inline constexpr int code_form_count = 2;

}  // namespace gemmery
