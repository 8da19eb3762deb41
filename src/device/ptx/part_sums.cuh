// SPDX-License-Identifier: Apache-2.0
// A thread's sums of wgmma (ptx/wgmma.cuh) to global memory and back, by the names of their
// registers: four of them, from the first-th of a block of 64 rows on, at so many bytes behind an
// address. No value passes through a variable of C++: with them a kernel took twice as long to
// compile. Not while a wgmma adds to the sums.
#pragma once

#include <device/abi/dtype.hpp>

namespace gemmery::device::ptx {

template <int block, int first, int offset>
__device__ __forceinline__ void store_sums(void* address) {
  asm volatile("st.global.v4.b32 [%0+%6], {sum%1_%2, sum%1_%3, sum%1_%4, sum%1_%5};" ::"l"(address),
               "n"(block), "n"(first), "n"(first + 1), "n"(first + 2), "n"(first + 3), "n"(offset)
               : "memory");
}

// Of float32, of int32 (the sum wraps), or of pairs of float16.

#define GEMMERY_ADD_TO_SUMS(add)                                                             \
  asm volatile(                                                                              \
      "{\n.reg .b32 other<4>;\n"                                                             \
      "ld.global.v4.b32 {other0, other1, other2, other3}, [%0+%6];\n" add                    \
      " sum%1_%2, sum%1_%2, other0;\n" add " sum%1_%3, sum%1_%3, other1;\n" add              \
      " sum%1_%4, sum%1_%4, other2;\n" add " sum%1_%5, sum%1_%5, other3;\n}" ::"l"(address), \
      "n"(block), "n"(first), "n"(first + 1), "n"(first + 2), "n"(first + 3), "n"(offset)    \
      : "memory")

/// Adds what is there.
template <abi::DType accumulator, int block, int first, int offset>
__device__ __forceinline__ void add_to_sums(const void* address) {
  if constexpr (accumulator == abi::DType::float16)
    GEMMERY_ADD_TO_SUMS("add.rn.f16x2");
  else if constexpr (accumulator == abi::DType::int32)
    GEMMERY_ADD_TO_SUMS("add.s32");
  else
    GEMMERY_ADD_TO_SUMS("add.rn.f32");
}

#undef GEMMERY_ADD_TO_SUMS

/// Puts values of C++ there, which were added up outside of wgmmas.
template <int block, int first>
__device__ __forceinline__ void write_sums(const float* values) {
  asm volatile(
      "mov.b32 sum%4_%5, %0;\n"
      "mov.b32 sum%4_%6, %1;\n"
      "mov.b32 sum%4_%7, %2;\n"
      "mov.b32 sum%4_%8, %3;" ::"f"(values[0]),
      "f"(values[1]), "f"(values[2]), "f"(values[3]), "n"(block), "n"(first), "n"(first + 1),
      "n"(first + 2), "n"(first + 3));
}

/// Sets them to 0.
template <int block, int first>
__device__ __forceinline__ void zero_sums() {
  asm volatile(
      "mov.b32 sum%0_%1, 0;\n"
      "mov.b32 sum%0_%2, 0;\n"
      "mov.b32 sum%0_%3, 0;\n"
      "mov.b32 sum%0_%4, 0;" ::"n"(block),
      "n"(first), "n"(first + 1), "n"(first + 2), "n"(first + 3));
}

}  // namespace gemmery::device::ptx
