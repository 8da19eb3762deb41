// SPDX-License-Identifier: Apache-2.0
// The plain fast path: blocked, packed, register-tiled, threaded; our own code for every CPU.
#pragma once

#include <gemmery/arguments.hpp>

#include "providers/host/tile_kernels.hpp"

namespace gemmery::host {

// A product with fewer operations is too little work for several threads: batches and groups of
// such are divided product by product.
inline constexpr double least_shared_flops = 4e6;

// Sums of `native` products: in float64 if an operand is float64, exact modulo 2^32 for int8 and
// uint8, in float32 for everything else. Memory is on the CPU. With alpha = 0, A and B are not
// read. `threads` 0 means all.
void run_plain(const GemmArguments& arguments, const TileKernels& kernels = tile_kernels(),
               int threads = 0);

}  // namespace gemmery::host
