// SPDX-License-Identifier: Apache-2.0
// What tells one build of a program or shared library from every other, without loading it.
#pragma once

#include <string>

namespace gemmery::platform {

// "build-id 65be0db3…" as its linker wrote it, else "xxh3 …" over all its bytes; empty where the
// file cannot be read.
std::string file_identity(const std::string& path);

}  // namespace gemmery::platform
