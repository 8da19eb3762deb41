// SPDX-License-Identifier: Apache-2.0
// Arithmetic on two 16-bit numbers in a register, and logic on 32 bits, one instruction per
// function.
#pragma once

namespace gemmery::device::ptx {

/// Any function of three bits, bit by bit: `table` is its value for the inputs 0xf0, 0xcc and 0xaa.
template <unsigned table>
__device__ inline unsigned lop3(unsigned a, unsigned b, unsigned c) {
  unsigned result;
  asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(result) : "r"(a), "r"(b), "r"(c), "n"(table));
  return result;
}

__device__ inline unsigned fma_rn_f16x2(unsigned a, unsigned b, unsigned c) {
  unsigned result;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}

__device__ inline unsigned mul_rn_f16x2(unsigned a, unsigned b) {
  unsigned result;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}

__device__ inline unsigned add_rn_f16x2(unsigned a, unsigned b) {
  unsigned result;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}

/// bfloat16 has additions and multiplications of their own from sm_90 on only.
__device__ inline unsigned fma_rn_bf16x2(unsigned a, unsigned b, unsigned c) {
  unsigned result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
/// Two codes of e4m3, those of the low half of a register or of its high half, exactly.
template <int half>
__device__ inline unsigned cvt_rn_f16x2_e4m3x2(unsigned codes) {
  unsigned result;
  if constexpr (half == 0)
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.rn.f16x2.e4m3x2 %0, low;\n}"
        : "=r"(result)
        : "r"(codes));
  else
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.rn.f16x2.e4m3x2 %0, high;\n}"
        : "=r"(result)
        : "r"(codes));
  return result;
}
#endif

}  // namespace gemmery::device::ptx
