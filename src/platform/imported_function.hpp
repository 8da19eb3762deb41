// SPDX-License-Identifier: Apache-2.0
// Redirects a shared library's calls of a function that it imports.
#pragma once

namespace gemmery::platform {

// The library that contains `address` calls `replacement` from now on wherever it calls the
// imported function `name` through the loader's tables. Other callers of that function are not
// affected, and neither are addresses of it that the library took before. The library that contains
// `replacement` stays loaded. False if the library does not import such a function, or its tables
// cannot be written.
bool redirect_import(const void* address, const char* name, const void* replacement);

}  // namespace gemmery::platform
