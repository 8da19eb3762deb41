// SPDX-License-Identifier: Apache-2.0
// Which index of an operand is adjacent in memory.
#pragma once

namespace gemmery::abi {

/// The index along which an operand is contiguous in memory: k, or the other one (m of A, n of B).
enum class Major : unsigned char { k, extent };

}  // namespace gemmery::abi
