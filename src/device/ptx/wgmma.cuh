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
// eight by eight.

#define GEMMERY_NUMBERS_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define GEMMERY_NUMBERS_16 \
  GEMMERY_NUMBERS_8        \
  ", "                     \
  "%8, %9, %10, %11, %12, %13, %14, %15"
#define GEMMERY_NUMBERS_24 \
  GEMMERY_NUMBERS_16       \
  ", "                     \
  "%16, %17, %18, %19, %20, %21, %22, %23"
#define GEMMERY_NUMBERS_32 \
  GEMMERY_NUMBERS_24       \
  ", "                     \
  "%24, %25, %26, %27, %28, %29, %30, %31"
#define GEMMERY_NUMBERS_40 \
  GEMMERY_NUMBERS_32       \
  ", "                     \
  "%32, %33, %34, %35, %36, %37, %38, %39"
#define GEMMERY_NUMBERS_48 \
  GEMMERY_NUMBERS_40       \
  ", "                     \
  "%40, %41, %42, %43, %44, %45, %46, %47"
#define GEMMERY_NUMBERS_56 \
  GEMMERY_NUMBERS_48       \
  ", "                     \
  "%48, %49, %50, %51, %52, %53, %54, %55"
#define GEMMERY_NUMBERS_64 \
  GEMMERY_NUMBERS_56       \
  ", "                     \
  "%56, %57, %58, %59, %60, %61, %62, %63"
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
#define GEMMERY_EIGHT(d, first)                                                                   \
  "+f"(d[first]), "+f"(d[first + 1]), "+f"(d[first + 2]), "+f"(d[first + 3]), "+f"(d[first + 4]), \
      "+f"(d[first + 5]), "+f"(d[first + 6]), "+f"(d[first + 7])
#define GEMMERY_SUMS_8(d) GEMMERY_EIGHT(d, 0)
#define GEMMERY_SUMS_16(d) GEMMERY_SUMS_8(d), GEMMERY_EIGHT(d, 8)
#define GEMMERY_SUMS_24(d) GEMMERY_SUMS_16(d), GEMMERY_EIGHT(d, 16)
#define GEMMERY_SUMS_32(d) GEMMERY_SUMS_24(d), GEMMERY_EIGHT(d, 24)
#define GEMMERY_SUMS_40(d) GEMMERY_SUMS_32(d), GEMMERY_EIGHT(d, 32)
#define GEMMERY_SUMS_48(d) GEMMERY_SUMS_40(d), GEMMERY_EIGHT(d, 40)
#define GEMMERY_SUMS_56(d) GEMMERY_SUMS_48(d), GEMMERY_EIGHT(d, 48)
#define GEMMERY_SUMS_64(d) GEMMERY_SUMS_56(d), GEMMERY_EIGHT(d, 56)
#define GEMMERY_SUMS_72(d) GEMMERY_SUMS_64(d), GEMMERY_EIGHT(d, 64)
#define GEMMERY_SUMS_80(d) GEMMERY_SUMS_72(d), GEMMERY_EIGHT(d, 72)
#define GEMMERY_SUMS_88(d) GEMMERY_SUMS_80(d), GEMMERY_EIGHT(d, 80)
#define GEMMERY_SUMS_96(d) GEMMERY_SUMS_88(d), GEMMERY_EIGHT(d, 88)
#define GEMMERY_SUMS_104(d) GEMMERY_SUMS_96(d), GEMMERY_EIGHT(d, 96)
#define GEMMERY_SUMS_112(d) GEMMERY_SUMS_104(d), GEMMERY_EIGHT(d, 104)
#define GEMMERY_SUMS_120(d) GEMMERY_SUMS_112(d), GEMMERY_EIGHT(d, 112)
#define GEMMERY_SUMS_128(d) GEMMERY_SUMS_120(d), GEMMERY_EIGHT(d, 120)

#define GEMMERY_WGMMA_TEXT(n, type, count, a, b, keeps, a_turned, b_turned)                    \
  "{\n.reg .pred keeps;\nsetp.ne.b32 keeps, %" #keeps                                          \
  ", 0;\n"                                                                                     \
  "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " {" GEMMERY_NUMBERS_##count \
      "}, %" #a ", %" #b ", keeps, 1, 1, %" #a_turned ", %" #b_turned ";\n}"

#define GEMMERY_WGMMA(n, count, a_number, b_number, keeps, a_turned, b_turned)                  \
  template <abi::DType operand, bool is_a_turned, bool is_b_turned>                             \
  __device__ __forceinline__ void wgmma_m64_k16(float(&d)[count], abi::UInt64 a, abi::UInt64 b, \
                                                unsigned keeps_d) {                             \
    if constexpr (operand == abi::DType::bfloat16) {                                            \
      asm volatile(                                                                             \
          GEMMERY_WGMMA_TEXT(n, "bf16", count, a_number, b_number, keeps, a_turned, b_turned)   \
          : GEMMERY_SUMS_##count(d)                                                             \
          : "l"(a), "l"(b), "r"(keeps_d), "n"(is_a_turned), "n"(is_b_turned));                  \
    } else {                                                                                    \
      static_assert(operand == abi::DType::float16);                                            \
      asm volatile(                                                                             \
          GEMMERY_WGMMA_TEXT(n, "f16", count, a_number, b_number, keeps, a_turned, b_turned)    \
          : GEMMERY_SUMS_##count(d)                                                             \
          : "l"(a), "l"(b), "r"(keeps_d), "n"(is_a_turned), "n"(is_b_turned));                  \
    }                                                                                           \
  }

/// d (+)= a b for 64 rows, 2 * count columns and 16 k, a and b by their descriptors; `is_a_turned`
/// where m is adjacent, not k (likewise n of b). d counts only where `keeps_d` is not 0. No
/// "memory": wgmma_fence and wgmma_wait_group bound what the compiler may move.
GEMMERY_WGMMA(16, 8, 8, 9, 10, 11, 12)
GEMMERY_WGMMA(32, 16, 16, 17, 18, 19, 20)
GEMMERY_WGMMA(48, 24, 24, 25, 26, 27, 28)
GEMMERY_WGMMA(64, 32, 32, 33, 34, 35, 36)
GEMMERY_WGMMA(80, 40, 40, 41, 42, 43, 44)
GEMMERY_WGMMA(96, 48, 48, 49, 50, 51, 52)
GEMMERY_WGMMA(112, 56, 56, 57, 58, 59, 60)
GEMMERY_WGMMA(128, 64, 64, 65, 66, 67, 68)
GEMMERY_WGMMA(144, 72, 72, 73, 74, 75, 76)
GEMMERY_WGMMA(160, 80, 80, 81, 82, 83, 84)
GEMMERY_WGMMA(176, 88, 88, 89, 90, 91, 92)
GEMMERY_WGMMA(192, 96, 96, 97, 98, 99, 100)
GEMMERY_WGMMA(208, 104, 104, 105, 106, 107, 108)
GEMMERY_WGMMA(224, 112, 112, 113, 114, 115, 116)
GEMMERY_WGMMA(240, 120, 120, 121, 122, 123, 124)
GEMMERY_WGMMA(256, 128, 128, 129, 130, 131, 132)

#undef GEMMERY_WGMMA
#undef GEMMERY_WGMMA_TEXT
#undef GEMMERY_EIGHT
#undef GEMMERY_NUMBERS_8
#undef GEMMERY_SUMS_8
#undef GEMMERY_NUMBERS_16
#undef GEMMERY_SUMS_16
#undef GEMMERY_NUMBERS_24
#undef GEMMERY_SUMS_24
#undef GEMMERY_NUMBERS_32
#undef GEMMERY_SUMS_32
#undef GEMMERY_NUMBERS_40
#undef GEMMERY_SUMS_40
#undef GEMMERY_NUMBERS_48
#undef GEMMERY_SUMS_48
#undef GEMMERY_NUMBERS_56
#undef GEMMERY_SUMS_56
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
