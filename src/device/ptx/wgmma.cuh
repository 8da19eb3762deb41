// SPDX-License-Identifier: Apache-2.0
// wgmma of sm_90a: the product of two tiles in shared memory, added to registers of a warpgroup,
// one instruction per function.
#pragma once

#include <device/abi/dtype.hpp>
#include <device/abi/host_device.hpp>

namespace gemmery::device::ptx {

/// Orders what was done to the accumulators' registers before the wgmmas that follow.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ inline void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most `pending` groups of this warp are under way.
template <int pending>
__device__ inline void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// Operand lists: registers by their numbers in the text, and the accumulators that they stand for,
// built up four by four. `letter` is the constraint's: f of floats, r of packed halves.

#define GEMMERY_NUMBERS_4 "%0, %1, %2, %3"
#define GEMMERY_NUMBERS_8 \
  GEMMERY_NUMBERS_4       \
  ", "                    \
  "%4, %5, %6, %7"
#define GEMMERY_NUMBERS_12 \
  GEMMERY_NUMBERS_8        \
  ", "                     \
  "%8, %9, %10, %11"
#define GEMMERY_NUMBERS_16 \
  GEMMERY_NUMBERS_12       \
  ", "                     \
  "%12, %13, %14, %15"
#define GEMMERY_NUMBERS_20 \
  GEMMERY_NUMBERS_16       \
  ", "                     \
  "%16, %17, %18, %19"
#define GEMMERY_NUMBERS_24 \
  GEMMERY_NUMBERS_20       \
  ", "                     \
  "%20, %21, %22, %23"
#define GEMMERY_NUMBERS_28 \
  GEMMERY_NUMBERS_24       \
  ", "                     \
  "%24, %25, %26, %27"
#define GEMMERY_NUMBERS_32 \
  GEMMERY_NUMBERS_28       \
  ", "                     \
  "%28, %29, %30, %31"
#define GEMMERY_NUMBERS_36 \
  GEMMERY_NUMBERS_32       \
  ", "                     \
  "%32, %33, %34, %35"
#define GEMMERY_NUMBERS_40 \
  GEMMERY_NUMBERS_36       \
  ", "                     \
  "%36, %37, %38, %39"
#define GEMMERY_NUMBERS_44 \
  GEMMERY_NUMBERS_40       \
  ", "                     \
  "%40, %41, %42, %43"
#define GEMMERY_NUMBERS_48 \
  GEMMERY_NUMBERS_44       \
  ", "                     \
  "%44, %45, %46, %47"
#define GEMMERY_NUMBERS_52 \
  GEMMERY_NUMBERS_48       \
  ", "                     \
  "%48, %49, %50, %51"
#define GEMMERY_NUMBERS_56 \
  GEMMERY_NUMBERS_52       \
  ", "                     \
  "%52, %53, %54, %55"
#define GEMMERY_NUMBERS_60 \
  GEMMERY_NUMBERS_56       \
  ", "                     \
  "%56, %57, %58, %59"
#define GEMMERY_NUMBERS_64 \
  GEMMERY_NUMBERS_60       \
  ", "                     \
  "%60, %61, %62, %63"
#define GEMMERY_NUMBERS_72 \
  GEMMERY_NUMBERS_64       \
  ", "                     \
  "%64, %65, %66, %67, %68, %69, %70, %71"
#define GEMMERY_NUMBERS_80 \
  GEMMERY_NUMBERS_72       \
  ", "                     \
  "%72, %73, %74, %75, %76, %77, %78, %79"
#define GEMMERY_NUMBERS_88 \
  GEMMERY_NUMBERS_80       \
  ", "                     \
  "%80, %81, %82, %83, %84, %85, %86, %87"
#define GEMMERY_NUMBERS_96 \
  GEMMERY_NUMBERS_88       \
  ", "                     \
  "%88, %89, %90, %91, %92, %93, %94, %95"
#define GEMMERY_NUMBERS_104 \
  GEMMERY_NUMBERS_96        \
  ", "                      \
  "%96, %97, %98, %99, %100, %101, %102, %103"
#define GEMMERY_NUMBERS_112 \
  GEMMERY_NUMBERS_104       \
  ", "                      \
  "%104, %105, %106, %107, %108, %109, %110, %111"
#define GEMMERY_NUMBERS_120 \
  GEMMERY_NUMBERS_112       \
  ", "                      \
  "%112, %113, %114, %115, %116, %117, %118, %119"
#define GEMMERY_NUMBERS_128 \
  GEMMERY_NUMBERS_120       \
  ", "                      \
  "%120, %121, %122, %123, %124, %125, %126, %127"
#define GEMMERY_FOUR(letter, d, first) \
  "+" letter(d[first]), "+" letter(d[first + 1]), "+" letter(d[first + 2]), "+" letter(d[first + 3])
#define GEMMERY_SUMS_4(letter, d) GEMMERY_FOUR(letter, d, 0)
#define GEMMERY_SUMS_8(letter, d) GEMMERY_SUMS_4(letter, d), GEMMERY_FOUR(letter, d, 4)
#define GEMMERY_SUMS_12(letter, d) GEMMERY_SUMS_8(letter, d), GEMMERY_FOUR(letter, d, 8)
#define GEMMERY_SUMS_16(letter, d) GEMMERY_SUMS_12(letter, d), GEMMERY_FOUR(letter, d, 12)
#define GEMMERY_SUMS_20(letter, d) GEMMERY_SUMS_16(letter, d), GEMMERY_FOUR(letter, d, 16)
#define GEMMERY_SUMS_24(letter, d) GEMMERY_SUMS_20(letter, d), GEMMERY_FOUR(letter, d, 20)
#define GEMMERY_SUMS_28(letter, d) GEMMERY_SUMS_24(letter, d), GEMMERY_FOUR(letter, d, 24)
#define GEMMERY_SUMS_32(letter, d) GEMMERY_SUMS_28(letter, d), GEMMERY_FOUR(letter, d, 28)
#define GEMMERY_SUMS_36(letter, d) GEMMERY_SUMS_32(letter, d), GEMMERY_FOUR(letter, d, 32)
#define GEMMERY_SUMS_40(letter, d) GEMMERY_SUMS_36(letter, d), GEMMERY_FOUR(letter, d, 36)
#define GEMMERY_SUMS_44(letter, d) GEMMERY_SUMS_40(letter, d), GEMMERY_FOUR(letter, d, 40)
#define GEMMERY_SUMS_48(letter, d) GEMMERY_SUMS_44(letter, d), GEMMERY_FOUR(letter, d, 44)
#define GEMMERY_SUMS_52(letter, d) GEMMERY_SUMS_48(letter, d), GEMMERY_FOUR(letter, d, 48)
#define GEMMERY_SUMS_56(letter, d) GEMMERY_SUMS_52(letter, d), GEMMERY_FOUR(letter, d, 52)
#define GEMMERY_SUMS_60(letter, d) GEMMERY_SUMS_56(letter, d), GEMMERY_FOUR(letter, d, 56)
#define GEMMERY_SUMS_64(letter, d) GEMMERY_SUMS_60(letter, d), GEMMERY_FOUR(letter, d, 60)
#define GEMMERY_SUMS_72(letter, d) \
  GEMMERY_SUMS_64(letter, d), GEMMERY_FOUR(letter, d, 64), GEMMERY_FOUR(letter, d, 68)
#define GEMMERY_SUMS_80(letter, d) \
  GEMMERY_SUMS_72(letter, d), GEMMERY_FOUR(letter, d, 72), GEMMERY_FOUR(letter, d, 76)
#define GEMMERY_SUMS_88(letter, d) \
  GEMMERY_SUMS_80(letter, d), GEMMERY_FOUR(letter, d, 80), GEMMERY_FOUR(letter, d, 84)
#define GEMMERY_SUMS_96(letter, d) \
  GEMMERY_SUMS_88(letter, d), GEMMERY_FOUR(letter, d, 88), GEMMERY_FOUR(letter, d, 92)
#define GEMMERY_SUMS_104(letter, d) \
  GEMMERY_SUMS_96(letter, d), GEMMERY_FOUR(letter, d, 96), GEMMERY_FOUR(letter, d, 100)
#define GEMMERY_SUMS_112(letter, d) \
  GEMMERY_SUMS_104(letter, d), GEMMERY_FOUR(letter, d, 104), GEMMERY_FOUR(letter, d, 108)
#define GEMMERY_SUMS_120(letter, d) \
  GEMMERY_SUMS_112(letter, d), GEMMERY_FOUR(letter, d, 112), GEMMERY_FOUR(letter, d, 116)
#define GEMMERY_SUMS_128(letter, d) \
  GEMMERY_SUMS_120(letter, d), GEMMERY_FOUR(letter, d, 120), GEMMERY_FOUR(letter, d, 124)

#define GEMMERY_WGMMA_TEXT(n, sums, type, count, a, b, keeps, a_turned, b_turned)              \
  "{\n.reg .pred keeps;\nsetp.ne.b32 keeps, %" #keeps                                          \
  ", 0;\n"                                                                                     \
  "wgmma.mma_async.sync.aligned.m64n" #n "k16." sums "." type "." type                         \
  " {" GEMMERY_NUMBERS_##count "}, %" #a ", %" #b ", keeps, 1, 1, %" #a_turned ", %" #b_turned \
                               ";\n}"

#define GEMMERY_WGMMA_ASM(letter, n, sums, type, count, a_number, b_number, keeps, a_turned,  \
                          b_turned)                                                           \
  asm volatile(                                                                               \
      GEMMERY_WGMMA_TEXT(n, sums, type, count, a_number, b_number, keeps, a_turned, b_turned) \
      : GEMMERY_SUMS_##count(letter, d)                                                       \
      : "l"(a), "l"(b), "r"(keeps_d), "n"(is_a_turned), "n"(is_b_turned))

#define GEMMERY_WGMMA_F32(n, count, a_number, b_number, keeps, a_turned, b_turned)              \
  template <abi::DType operand, bool is_a_turned, bool is_b_turned>                             \
  __device__ __forceinline__ void wgmma_m64_k16(float(&d)[count], abi::UInt64 a, abi::UInt64 b, \
                                                unsigned keeps_d) {                             \
    if constexpr (operand == abi::DType::bfloat16) {                                            \
      GEMMERY_WGMMA_ASM("f", n, "f32", "bf16", count, a_number, b_number, keeps, a_turned,      \
                        b_turned);                                                              \
    } else {                                                                                    \
      static_assert(operand == abi::DType::float16);                                            \
      GEMMERY_WGMMA_ASM("f", n, "f32", "f16", count, a_number, b_number, keeps, a_turned,       \
                        b_turned);                                                              \
    }                                                                                           \
  }

#define GEMMERY_WGMMA_F16(n, count, a_number, b_number, keeps, a_turned, b_turned)                 \
  template <abi::DType operand, bool is_a_turned, bool is_b_turned>                                \
  __device__ __forceinline__ void wgmma_m64_k16(unsigned(&d)[count], abi::UInt64 a, abi::UInt64 b, \
                                                unsigned keeps_d) {                                \
    static_assert(operand == abi::DType::float16);                                                 \
    GEMMERY_WGMMA_ASM("r", n, "f16", "f16", count, a_number, b_number, keeps, a_turned, b_turned); \
  }

/// d (+)= a b for 64 rows, 2 * count columns and 16 k, a and b by their descriptors; `is_a_turned`
/// where m is adjacent, not k (likewise n of b). d counts only where `keeps_d` is not 0. No
/// "memory": wgmma_fence and wgmma_wait_group bound what the compiler may move.
GEMMERY_WGMMA_F32(16, 8, 8, 9, 10, 11, 12)
GEMMERY_WGMMA_F32(32, 16, 16, 17, 18, 19, 20)
GEMMERY_WGMMA_F32(48, 24, 24, 25, 26, 27, 28)
GEMMERY_WGMMA_F32(64, 32, 32, 33, 34, 35, 36)
GEMMERY_WGMMA_F32(80, 40, 40, 41, 42, 43, 44)
GEMMERY_WGMMA_F32(96, 48, 48, 49, 50, 51, 52)
GEMMERY_WGMMA_F32(112, 56, 56, 57, 58, 59, 60)
GEMMERY_WGMMA_F32(128, 64, 64, 65, 66, 67, 68)
GEMMERY_WGMMA_F32(144, 72, 72, 73, 74, 75, 76)
GEMMERY_WGMMA_F32(160, 80, 80, 81, 82, 83, 84)
GEMMERY_WGMMA_F32(176, 88, 88, 89, 90, 91, 92)
GEMMERY_WGMMA_F32(192, 96, 96, 97, 98, 99, 100)
GEMMERY_WGMMA_F32(208, 104, 104, 105, 106, 107, 108)
GEMMERY_WGMMA_F32(224, 112, 112, 113, 114, 115, 116)
GEMMERY_WGMMA_F32(240, 120, 120, 121, 122, 123, 124)
GEMMERY_WGMMA_F32(256, 128, 128, 129, 130, 131, 132)

/// The same for float16 sums, two to a register: 4 * count columns.
GEMMERY_WGMMA_F16(16, 4, 4, 5, 6, 7, 8)
GEMMERY_WGMMA_F16(32, 8, 8, 9, 10, 11, 12)
GEMMERY_WGMMA_F16(48, 12, 12, 13, 14, 15, 16)
GEMMERY_WGMMA_F16(64, 16, 16, 17, 18, 19, 20)
GEMMERY_WGMMA_F16(80, 20, 20, 21, 22, 23, 24)
GEMMERY_WGMMA_F16(96, 24, 24, 25, 26, 27, 28)
GEMMERY_WGMMA_F16(112, 28, 28, 29, 30, 31, 32)
GEMMERY_WGMMA_F16(128, 32, 32, 33, 34, 35, 36)
GEMMERY_WGMMA_F16(144, 36, 36, 37, 38, 39, 40)
GEMMERY_WGMMA_F16(160, 40, 40, 41, 42, 43, 44)
GEMMERY_WGMMA_F16(176, 44, 44, 45, 46, 47, 48)
GEMMERY_WGMMA_F16(192, 48, 48, 49, 50, 51, 52)
GEMMERY_WGMMA_F16(208, 52, 52, 53, 54, 55, 56)
GEMMERY_WGMMA_F16(224, 56, 56, 57, 58, 59, 60)
GEMMERY_WGMMA_F16(240, 60, 60, 61, 62, 63, 64)
GEMMERY_WGMMA_F16(256, 64, 64, 65, 66, 67, 68)

#undef GEMMERY_WGMMA_F16
#undef GEMMERY_WGMMA_F32
#undef GEMMERY_WGMMA_ASM
#undef GEMMERY_WGMMA_TEXT
#undef GEMMERY_FOUR
#undef GEMMERY_NUMBERS_4
#undef GEMMERY_SUMS_4
#undef GEMMERY_NUMBERS_8
#undef GEMMERY_SUMS_8
#undef GEMMERY_NUMBERS_12
#undef GEMMERY_SUMS_12
#undef GEMMERY_NUMBERS_16
#undef GEMMERY_SUMS_16
#undef GEMMERY_NUMBERS_20
#undef GEMMERY_SUMS_20
#undef GEMMERY_NUMBERS_24
#undef GEMMERY_SUMS_24
#undef GEMMERY_NUMBERS_28
#undef GEMMERY_SUMS_28
#undef GEMMERY_NUMBERS_32
#undef GEMMERY_SUMS_32
#undef GEMMERY_NUMBERS_36
#undef GEMMERY_SUMS_36
#undef GEMMERY_NUMBERS_40
#undef GEMMERY_SUMS_40
#undef GEMMERY_NUMBERS_44
#undef GEMMERY_SUMS_44
#undef GEMMERY_NUMBERS_48
#undef GEMMERY_SUMS_48
#undef GEMMERY_NUMBERS_52
#undef GEMMERY_SUMS_52
#undef GEMMERY_NUMBERS_56
#undef GEMMERY_SUMS_56
#undef GEMMERY_NUMBERS_60
#undef GEMMERY_SUMS_60
#undef GEMMERY_NUMBERS_64
#undef GEMMERY_SUMS_64
#undef GEMMERY_NUMBERS_72
#undef GEMMERY_SUMS_72
#undef GEMMERY_NUMBERS_80
#undef GEMMERY_SUMS_80
#undef GEMMERY_NUMBERS_88
#undef GEMMERY_SUMS_88
#undef GEMMERY_NUMBERS_96
#undef GEMMERY_SUMS_96
#undef GEMMERY_NUMBERS_104
#undef GEMMERY_SUMS_104
#undef GEMMERY_NUMBERS_112
#undef GEMMERY_SUMS_112
#undef GEMMERY_NUMBERS_120
#undef GEMMERY_SUMS_120
#undef GEMMERY_NUMBERS_128
#undef GEMMERY_SUMS_128

}  // namespace gemmery::device::ptx
