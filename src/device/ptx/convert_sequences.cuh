// SPDX-License-Identifier: Apache-2.0
// Conversions that take several instructions, one statement for each: NVVM's time follows the
// number of statements, and epilogues convert each of up to 256 accumulators
// (docs/performance.md).
#pragma once

namespace gemmery::device::ptx {

/// A wgmma or mma accumulator as a double, exactly, by an addition, which is faster than a
/// conversion: the low bits of 2^52 + 2^31 + value, minus these.
__device__ inline double widen_s32(int value) {
  double result;
  asm("{\n.reg .b32 low;\n.reg .f64 shifted;\n"
      "xor.b32 low, %1, 0x80000000;\n"
      "mov.b64 shifted, {low, 0x43300000};\n"
      "add.rn.f64 %0, shifted, 0dC330000080000000;\n}"
      : "=d"(result)
      : "r"(value));
  return result;
}

/// Rounds to the nearest integer, ties to even; saturates; NaN gives 0, unlike cvt alone.
__device__ inline int round_to_s32(double value) {
  int result;
  asm("{\n.reg .pred is_number;\n"
      "setp.num.f64 is_number, %1, %1;\n"
      "cvt.rni.s32.f64 %0, %1;\n"
      "selp.b32 %0, %0, 0, is_number;\n}"
      : "=r"(result)
      : "d"(value));
  return result;
}
__device__ inline unsigned round_to_u32(double value) {
  unsigned result;
  asm("{\n.reg .pred is_number;\n"
      "setp.num.f64 is_number, %1, %1;\n"
      "cvt.rni.u32.f64 %0, %1;\n"
      "selp.b32 %0, %0, 0, is_number;\n}"
      : "=r"(result)
      : "d"(value));
  return result;
}

/// A float that rounds to the same narrower result as the value: it is rounded toward zero, and its
/// last bit is set if anything was truncated.
__device__ inline float round_to_odd(double value) {
  float result;
  asm("{\n.reg .pred is_exact;\n.reg .f64 back;\n.reg .b32 bits;\n"
      "cvt.rz.f32.f64 %0, %1;\n"
      "cvt.f64.f32 back, %0;\n"
      "setp.eq.f64 is_exact, back, %1;\n"
      "mov.b32 bits, %0;\n"
      "@!is_exact or.b32 bits, bits, 1;\n"
      "mov.b32 %0, bits;\n}"
      : "=f"(result)
      : "d"(value));
  return result;
}

/// Two integers saturated to 8 bits, the second in the upper byte of 16 bits.
__device__ inline unsigned pack_s8(int first, int second) {
  unsigned result;
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, 0;" : "=r"(result) : "r"(second), "r"(first));
  return result;
}
__device__ inline unsigned pack_u8(int first, int second) {
  unsigned result;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(result) : "r"(second), "r"(first));
  return result;
}

#define GEMMERY_ROUND_PAIR(type)                                     \
  asm("{\n.reg .pred is_number;\n.reg .b32 low, high;\n"             \
      "setp.num.f64 is_number, %1, %1;\ncvt.rni.s32.f64 low, %1;\n"  \
      "selp.b32 low, low, 0, is_number;\n"                           \
      "setp.num.f64 is_number, %2, %2;\ncvt.rni.s32.f64 high, %2;\n" \
      "selp.b32 high, high, 0, is_number;\n"                         \
      "cvt.pack.sat." type ".s32.b32 %0, high, low, 0;\n}"           \
      : "=r"(result)                                                 \
      : "d"(first), "d"(second))

/// Two doubles rounded like round_to_s32 and packed.
__device__ inline unsigned round_pack_s8(double first, double second) {
  unsigned result;
  GEMMERY_ROUND_PAIR("s8");
  return result;
}
__device__ inline unsigned round_pack_u8(double first, double second) {
  unsigned result;
  GEMMERY_ROUND_PAIR("u8");
  return result;
}
#undef GEMMERY_ROUND_PAIR

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
// The instructions for 8-bit floats exist from sm_89 on. They saturate; codes beyond the largest
// one follow it: e4m3 has its NaN there, e5m2 its infinity.

#define GEMMERY_FP8_PAIR(type, exceeds, limit)                       \
  asm("{\n.reg .b16 pair;\n.reg .f32 size;\n.reg .pred is_beyond;\n" \
      "cvt.rn.satfinite." type                                       \
      "x2.f32 pair, %2, %1;\n"                                       \
      "cvt.u32.u16 %0, pair;\n"                                      \
      "abs.f32 size, %1;\n"                                          \
      "setp." exceeds ".f32 is_beyond, size, " limit                 \
      ";\n"                                                          \
      "@is_beyond add.u32 %0, %0, 1;\n"                              \
      "abs.f32 size, %2;\n"                                          \
      "setp." exceeds ".f32 is_beyond, size, " limit                 \
      ";\n"                                                          \
      "@is_beyond add.u32 %0, %0, 0x100;\n}"                         \
      : "=r"(result)                                                 \
      : "f"(first), "f"(second))

/// Two floats rounded to e4m3, ties to even, the second in the upper byte of 16 bits. What rounds
/// beyond 448 becomes NaN, infinities too.
__device__ inline unsigned pack_e4m3(float first, float second) {
  unsigned result;
  GEMMERY_FP8_PAIR("e4m3", "gt", "0f43E80000");  // 464, a tie of 448, which is even, and 480
  return result;
}
/// The same with e5m2. What rounds beyond 57344 becomes infinity.
__device__ inline unsigned pack_e5m2(float first, float second) {
  unsigned result;
  GEMMERY_FP8_PAIR("e5m2", "ge", "0f47700000");  // 61440, a tie of 57344, which is odd, and 65536
  return result;
}
#undef GEMMERY_FP8_PAIR

/// An e4m3 code, exactly.
__device__ inline float unpack_e4m3(unsigned bits) {
  float result;
  asm("{\n.reg .b16 pair, low, high;\n.reg .b32 halves;\n"
      "cvt.u16.u32 pair, %1;\n"
      "cvt.rn.f16x2.e4m3x2 halves, pair;\n"
      "mov.b32 {low, high}, halves;\n"
      "cvt.f32.f16 %0, low;\n}"
      : "=f"(result)
      : "r"(bits));
  return result;
}
#endif

}  // namespace gemmery::device::ptx
