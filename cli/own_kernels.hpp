// SPDX-License-Identifier: Apache-2.0
// Kernels of the user's own on the command line.
#pragma once

#include <string>
#include <vector>

namespace gemmery::cli {

// Opens each shared library and calls its gemmery_register_kernels(). They stay open. Throws Error
// (unavailable) with the loader's words for what cannot be opened, invalid_argument for a library
// without that function; what the function throws is thrown on.
void load_own_kernels(const std::vector<std::string>& files);

}  // namespace gemmery::cli
