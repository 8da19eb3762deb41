// SPDX-License-Identifier: Apache-2.0
// The version of the library that the program runs with.

#pragma once

#include <gemmery/export.hpp>

namespace gemmery {

/// "MAJOR.MINOR.PATCH" of the loaded library, which may be newer than the headers that a program
/// was compiled with.
GEMMERY_API const char* version() noexcept;

}  // namespace gemmery
