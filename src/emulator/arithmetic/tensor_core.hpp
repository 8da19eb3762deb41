// SPDX-License-Identifier: Apache-2.0
// The sums of tensor cores of sm_90, bit for bit as recorded (tests/data/emulator/README.md).
//
// Floating point: all products of an instruction and C are addends of one sum. Each addend is
// exact, then truncated (towards zero) below the F-th binary place of the largest addend's
// exponent; the sum of the truncated addends is exact. The exponent of a product is the sum of its
// factors' exponents (so its mantissa is in [1, 4)); a subnormal counts with the smallest normal
// exponent, or of -133 if all are smaller; zeros are ignored. A sum that is truncated to zero is
// +0.
//   16 bits, tf32: F = 25; the sum is truncated to f32, or rounded to nearest even to f16.
//   8 bits (wgmma): F = 13; the sum is truncated to 13 binary places, or rounded to f16.
//   8 bits (mma.sync): no such unit; see MatrixProduct::unpacks_to_f16.
// NaN is 0x7fffffff (f16: 0x7fff). f64: fused multiply-adds with ascending k. Integers: exact, then
// wrapped or (.satfinite) clamped once.
#pragma once

#include <cstdint>

namespace gemmery::emulator {

enum class MatrixElement : std::uint8_t { f16, bf16, tf32, e4m3, e5m2, s8, u8, s4, u4, b1, f64 };
enum class Accumulator : std::uint8_t { f32, f16, s32, f64 };

// One matrix product D = A B + C of an instruction, in plain arrays. A is m x k and B is n x k
// (each row contiguous along k), with elements as in memory (4-bit and 1-bit ones packed). C and D
// are m x n: f32, s32 and f64 as they are, f16 as a 16-bit pattern in a std::uint32_t.
struct MatrixProduct {
  MatrixElement a = MatrixElement::f16, b = MatrixElement::f16;
  Accumulator accumulator = Accumulator::f32;
  std::uint32_t m = 0, n = 0, k = 0;
  bool saturates = false;  // .satfinite of integers
  bool is_xor = false;     // .xor.popc of b1, else .and.popc
  // mma.sync of 8-bit floats, which ptxas compiles to two products of f16 over half of k each
  // (first the k with k % 4 in {0, 1}), the second accumulating onto the first, and a rounded
  // addition of C.
  bool unpacks_to_f16 = false;
  bool negates_a = false, negates_b = false;  // wgmma's imm-scale -1
  const void* a_at = nullptr;
  const void* b_at = nullptr;
  const void* c_at = nullptr;  // nullptr: zero (scale-d 0)
  void* d_at = nullptr;
};
void multiply(const MatrixProduct& product);

}  // namespace gemmery::emulator
