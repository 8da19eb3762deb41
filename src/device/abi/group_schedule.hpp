// SPDX-License-Identifier: Apache-2.0
// The tile schedulers of grouped kernels, and the rows or columns that are found by indices.
#pragma once

namespace gemmery::abi {

/// none: a kernel for one GEMM. device: a block for every tile that groups of any sizes may have;
/// it finds its group in the sizes. persistent: as many blocks as are resident; each continues the
/// scan at its last tile. host: a block for every tile in a table that the host has made. list: the
/// same for a list of problems.
enum class GroupSchedule : unsigned char { none, device, persistent, host, list };

/// The use of indices: none, rows of A and out, or columns of B and out.
enum class IndexedExtent : unsigned char { none, rows, columns };

}  // namespace gemmery::abi
