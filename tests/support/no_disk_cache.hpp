// SPDX-License-Identifier: Apache-2.0
// A test program that includes this compiles what it builds, and leaves the user's cache alone.
#pragma once

#include <cstdlib>

namespace gemmery::tests {

inline const bool has_no_disk_cache = setenv("GEMMERY_CACHE_MAX_BYTES", "0", 1) == 0;

}  // namespace gemmery::tests
