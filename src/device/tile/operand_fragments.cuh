// SPDX-License-Identifier: Apache-2.0
// What wgmmas of 32 bytes of k take of an A in registers.
#pragma once

namespace gemmery::device {

/// A thread's registers for each block of 64 rows: of row t / 4 of its warp and of that 8 below,
/// the 4 bytes of k from 4 * (t % 4) on, then of both rows those 16 bytes further (PTX ISA).
template <int blocks>
struct OperandFragments {
  unsigned block[blocks][4];
};

}  // namespace gemmery::device
