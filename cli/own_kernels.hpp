// SPDX-License-Identifier: Apache-2.0
// The user's own kernels on the command line.
#pragma once

#include <string>
#include <vector>

namespace gemmery::cli {

// Opens each shared library and calls its gemmery_register_kernels(). They stay open. Throws Error:
// unavailable, with the loader's message, for a library that cannot be opened, invalid_argument for
// one without that function. Exceptions of the function are passed on.
void load_own_kernels(const std::vector<std::string>& files);

}  // namespace gemmery::cli
