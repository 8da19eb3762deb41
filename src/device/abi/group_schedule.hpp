// SPDX-License-Identifier: Apache-2.0
// How the blocks of a kernel of grouped products come to their tiles, as a design states it.
#pragma once

namespace gemmery::abi {

/// none: the kernel is of one GEMM. device: a block for every tile that groups of any sizes may
/// have, which finds its group in the sizes. persistent: as many blocks as are resident at once,
/// each of which goes on where it found its last tile. host: a block for every tile of a table that
/// the host has made.
enum class GroupSchedule : unsigned char { none, device, persistent, host };

}  // namespace gemmery::abi
