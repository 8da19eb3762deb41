// SPDX-License-Identifier: Apache-2.0
// The fragments of A that wgmmas of 32 bytes of k take from registers.
#pragma once

namespace gemmery::device {

/// A thread's registers for each block of 64 rows: the 4 bytes of k from 4 * (t % 4) on, of row t /
/// 4 of its warp and of the row 8 below, then of both rows the bytes 16 further (PTX ISA).
template <int blocks>
struct OperandFragments {
  unsigned block[blocks][4];
};

}  // namespace gemmery::device
