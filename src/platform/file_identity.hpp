// SPDX-License-Identifier: Apache-2.0
// The identity of a program or shared library: it differs between any two builds. Nothing is
// loaded.
#pragma once

#include <string>

namespace gemmery::platform {

// "build-id 65be0db3…" as the linker wrote it, else "xxh3 …" over all bytes; empty if the file
// cannot be read.
std::string file_identity(const std::string& path);

}  // namespace gemmery::platform
