// SPDX-License-Identifier: Apache-2.0
// PTX around the text under test.
#pragma once

#include <string>

namespace gemmery::emulator {

inline std::string module_of(const std::string& directives) {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n" + directives;
}

// The body begins on line 5.
inline std::string entry_of(const std::string& body) {
  return module_of(".visible .entry kernel(.param .u64 kernel_param_0) {\n" + body + "\n}\n");
}

}  // namespace gemmery::emulator
