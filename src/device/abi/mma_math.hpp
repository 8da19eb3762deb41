// SPDX-License-Identifier: Apache-2.0
// How tensor cores form products and accumulate them, besides a kernel's operand types.
#pragma once

namespace gemmery::abi {

/// `tf32` to `f16`, `bf16x6` and `bf16x9` are for float32 operands, `saturate` for integers
/// (accumulators clamp at every instruction), `promoted` for 8-bit floats (the products of each
/// block of k are added to float32 accumulators by FADD); `native` for all other kernels.
enum class MmaMath : unsigned char {
  native,
  tf32,
  tf32x3,
  bf16x3,
  bf16,
  saturate,
  f16x3,
  f16,
  promoted,
  bf16x6,
  bf16x9
};

}  // namespace gemmery::abi
