// SPDX-License-Identifier: Apache-2.0
// Reads and writes whole files that users name.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gemmery::platform {

// The bytes of a regular file. Throws Error (io) if it does not exist, is not a regular file,
// cannot be read, or is larger than `most_bytes`.
std::vector<std::byte> read_whole_file(const std::string& path, std::size_t most_bytes);

// Writes to a temporary file in the same folder, then renames it: a reader sees the old file or the
// complete new one. Throws Error (io) and leaves the old file in place then.
void write_whole_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace gemmery::platform
