// SPDX-License-Identifier: Apache-2.0
// Integer instructions on packed bytes, one per function.
#pragma once

namespace gemmery::device::ptx {

/// accumulator + the four products of the bytes of a and b, modulo 2^32; each operand's bytes
/// signed or not.
template <bool a_is_signed, bool b_is_signed>
__device__ inline int dp4a(unsigned a, unsigned b, int accumulator) {
  int result;
  if constexpr (a_is_signed && b_is_signed) {
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(accumulator));
  } else if constexpr (a_is_signed) {
    asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(accumulator));
  } else if constexpr (b_is_signed) {
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(accumulator));
  } else {
    asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(accumulator));
  }
  return result;
}

/// Four bytes picked from the eight of {high, low} by the selector's nibbles.
__device__ inline unsigned prmt(unsigned low, unsigned high, unsigned selector) {
  unsigned result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(selector));
  return result;
}

}  // namespace gemmery::device::ptx
