// SPDX-License-Identifier: Apache-2.0
// A test program that includes this does not use the user's cache of compiled code.
#pragma once

#include <cstdlib>

namespace gemmery::tests {

inline const bool has_no_disk_cache = setenv("GEMMERY_CACHE_MAX_BYTES", "0", 1) == 0;

}  // namespace gemmery::tests
