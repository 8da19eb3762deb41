// SPDX-License-Identifier: Apache-2.0
// What a tensor core of sm_90 adds up, bit for bit, as recorded (tests/data/emulator/README.md).
//
// Floating point: all products of an instruction and C are addends of one sum. Each is exact, is
// cut off (towards zero) below the F-th binary place of the largest addend's exponent, and the sum
// of what is left is exact. The exponent of a product is the sum of its factors' exponents (so its
// mantissa lies in [1, 4)), that of a subnormal is the smallest normal one; zeros don't count.
//   16 bits, tf32: F = 25; the sum is cut off to f32, or rounded to nearest even to f16.
//   8 bits (wgmma): F = 13; the sum is cut off to 13 binary places, or rounded to f16.
//   8 bits (mma.sync): no such unit; see MatrixProduct::unpacks_to_f16.
// NaN is 0x7fffffff (f16: 0x7fff). f64: fused multiply-adds, k ascending. Integers: exact, wrapped
// or (.satfinite) clamped once.
#pragma once

#include <cstdint>

namespace gemmery::emulator {

enum class MatrixElement : std::uint8_t { f16, bf16, tf32, e4m3, e5m2, s8, u8, s4, u4, b1, f64 };
enum class Accumulator : std::uint8_t { f32, f16, s32, f64 };

// One matrix product D = A B + C of an instruction, in plain arrays: A is m x k and B is n x k
// (each row along k contiguous), elements as they lie in memory (4-bit and 1-bit ones packed); C
// and D are m x n, f32/s32/f64 as such, f16 as 16-bit patterns in std::uint32_t.
struct MatrixProduct {
  MatrixElement a = MatrixElement::f16, b = MatrixElement::f16;
  Accumulator accumulator = Accumulator::f32;
  std::uint32_t m = 0, n = 0, k = 0;
  bool saturates = false;  // .satfinite of integers
  bool is_xor = false;     // .xor.popc of b1, else .and.popc
  // mma.sync of 8-bit floats, which ptxas makes of two products of f16 with half of k each (k % 4
  // in {0, 1} first), the second adding to the first's result, and a rounded addition of C.
  bool unpacks_to_f16 = false;
  bool negates_a = false, negates_b = false;  // wgmma's imm-scale -1
  const void* a_at = nullptr;
  const void* b_at = nullptr;
  const void* c_at = nullptr;  // nullptr: zero (scale-d 0)
  void* d_at = nullptr;
};
void multiply(const MatrixProduct& product);

}  // namespace gemmery::emulator
