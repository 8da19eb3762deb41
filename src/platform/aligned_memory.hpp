// SPDX-License-Identifier: Apache-2.0
// Memory for operands that kernels of the CPU read and write.
#pragma once

#include <cstddef>

namespace gemmery::platform {

// Uninitialised memory aligned to at least 64 bytes, for std::free; nullptr if there is none.
// Allocations of 4 MiB and more are in large pages, if the system grants them: address translation
// of small ones takes a few percent of a product that reads operands in the order of tiles.
void* allocate_aligned(std::size_t bytes);

}  // namespace gemmery::platform
