// SPDX-License-Identifier: Apache-2.0
// LZ4 and Zstandard, by the libraries of the system, which are opened at their first use.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace gemmery::drop_in {

enum class Compression { none, lz4, zstd };

// The content, which has exactly `bytes` bytes. Throws Error: unavailable if the library is not on
// this machine, invalid_argument for data that are damaged.
std::string decompress(Compression compression, std::span<const std::byte> data, std::size_t bytes);

}  // namespace gemmery::drop_in
