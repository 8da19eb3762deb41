// SPDX-License-Identifier: Apache-2.0
// The forms of code that a compiler produces and a driver loads.
#pragma once

#include <cstdint>

namespace gemmery {

// cubin: machine code for one architecture. ptx: PTX text, from which machine code is compiled.
enum class CodeForm : std::uint8_t { cubin, ptx };
inline constexpr int code_form_count = 2;

}  // namespace gemmery
