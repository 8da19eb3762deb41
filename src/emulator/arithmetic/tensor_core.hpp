// SPDX-License-Identifier: Apache-2.0
// What a tensor core adds up, bit for bit: products exact, addends aligned to the largest and cut
// off, the sum truncated; as measured (docs/emulator.md cites the recordings).
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
  std::uint32_t block_k = 0;  // products that are aligned and added together; the sum then is the C
                              // of the next block (0: all k at once)
  bool saturates = false;     // .satfinite of integers
  bool negates_a = false, negates_b = false;  // wgmma's imm-scale -1
  const void* a_at = nullptr;
  const void* b_at = nullptr;
  const void* c_at = nullptr;  // nullptr: zero (scale-d 0)
  void* d_at = nullptr;
};
void multiply(const MatrixProduct& product);

}  // namespace gemmery::emulator
