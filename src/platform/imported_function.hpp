// SPDX-License-Identifier: Apache-2.0
// What a shared library calls where it calls a function of another one.
#pragma once

namespace gemmery::platform {

// From now on the library that holds `address` calls `replacement` wherever it calls the imported
// function `name` by the loader's tables; nobody else who calls that function does. An address of
// the function that the library has taken before stays what it was. The library that holds
// `replacement` is kept in the process from now on. False where the library imports no such
// function, or its tables cannot be written.
bool redirect_import(const void* address, const char* name, const void* replacement);

}  // namespace gemmery::platform
