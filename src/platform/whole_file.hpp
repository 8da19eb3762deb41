// SPDX-License-Identifier: Apache-2.0
// Files that users name, read and written as a whole.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gemmery::platform {

// The bytes of a regular file. Throws Error (io) for what is not there, is no file, cannot be read,
// or is larger than `most_bytes`.
std::vector<std::byte> read_whole_file(const std::string& path, std::size_t most_bytes);

// Written aside in the same folder, then renamed: whoever looks sees the file as it was, or all of
// the new one. Throws Error (io); what was there stays then.
void write_whole_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace gemmery::platform
