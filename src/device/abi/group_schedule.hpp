// SPDX-License-Identifier: Apache-2.0
// The tile schedulers of grouped kernels, and what they find by indices, as a design states them.
#pragma once

namespace gemmery::abi {

/// none: a kernel for one GEMM. device: a block for every tile that groups of any sizes may have;
/// it finds its group in the sizes. persistent: as many blocks as are resident at once; each
/// continues the scan where it found its last tile. host: a block for every tile of a table that
/// the host has made. list: the same of problems whose extents all differ.
enum class GroupSchedule : unsigned char { none, device, persistent, host, list };

/// What is found by indices: rows of A and out, or columns of B and out.
enum class IndexedExtent : unsigned char { none, rows, columns };

}  // namespace gemmery::abi
