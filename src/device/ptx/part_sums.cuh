// SPDX-License-Identifier: Apache-2.0
// Moves a thread's wgmma accumulators (ptx/wgmma.cuh) to global memory and back, by the names of
// their registers: some registers of a block of 64 rows, from the first-th on, at an offset from an
// address. No value passes through a variable of C++: with variables a kernel took twice as long to
// compile. No wgmma may be adding to the accumulators.
#pragma once

#include <device/abi/dtype.hpp>

namespace gemmery::device::ptx {

/// Operands of the statements below: %0 is the address, %1 the block, %2 to %17 sixteen registers,
/// %18 to %21 the offsets of their vectors. One statement moves sixteen registers, not four: with
/// 128 registers that saves a tenth of a kernel's compile time (docs/performance.md).
#define GEMMERY_SIXTEEN_SUMS                                                               \
  "n"(block), "n"(first), "n"(first + 1), "n"(first + 2), "n"(first + 3), "n"(first + 4),  \
      "n"(first + 5), "n"(first + 6), "n"(first + 7), "n"(first + 8), "n"(first + 9),      \
      "n"(first + 10), "n"(first + 11), "n"(first + 12), "n"(first + 13), "n"(first + 14), \
      "n"(first + 15)
#define GEMMERY_VECTOR_OFFSETS(offset, step) \
  "n"(offset), "n"((offset) + (step)), "n"((offset) + 2 * (step)), "n"((offset) + 3 * (step))
#define GEMMERY_VECTOR(a, b, c, d) "{sum%1_%" #a ", sum%1_%" #b ", sum%1_%" #c ", sum%1_%" #d "}"
#define GEMMERY_FOUR_VECTORS(before, between, after)            \
  before "%18" between GEMMERY_VECTOR(2, 3, 4, 5) after before  \
      "%19" between GEMMERY_VECTOR(6, 7, 8, 9) after before     \
      "%20" between GEMMERY_VECTOR(10, 11, 12, 13) after before \
      "%21" between GEMMERY_VECTOR(14, 15, 16, 17) after

/// Stores four registers, or sixteen, whose vectors are `step` bytes apart.
template <int count, int block, int first, int offset, int step>
__device__ __forceinline__ void store_sums(void* address) {
  if constexpr (count == 16) {
    asm volatile(GEMMERY_FOUR_VECTORS("st.global.v4.b32 [%0+", "], ", ";\n")::"l"(address),
                 GEMMERY_SIXTEEN_SUMS, GEMMERY_VECTOR_OFFSETS(offset, step)
                 : "memory");
  } else {
    static_assert(count == 4);
    asm volatile("st.global.v4.b32 [%0+%6], " GEMMERY_VECTOR(2, 3, 4, 5) ";" ::"l"(address),
                 "n"(block), "n"(first), "n"(first + 1), "n"(first + 2), "n"(first + 3), "n"(offset)
                 : "memory");
  }
}

// For float32, int32 (the addition wraps), or pairs of float16.

#define GEMMERY_ADD_ONE(add, sum, other) add " sum%1_%" #sum ", sum%1_%" #sum ", other" #other ";\n"
#define GEMMERY_ADD_FOUR(add, a, b, c, d, w, x, y, z) \
  GEMMERY_ADD_ONE(add, a, w)                          \
  GEMMERY_ADD_ONE(add, b, x) GEMMERY_ADD_ONE(add, c, y) GEMMERY_ADD_ONE(add, d, z)
#define GEMMERY_ADD_SIXTEEN(add)                                                         \
  "{\n.reg .b32 other<16>;\n"                                                            \
  "ld.global.v4.b32 {other0, other1, other2, other3}, [%0+%18];\n"                       \
  "ld.global.v4.b32 {other4, other5, other6, other7}, [%0+%19];\n"                       \
  "ld.global.v4.b32 {other8, other9, other10, other11}, [%0+%20];\n"                     \
  "ld.global.v4.b32 {other12, other13, other14, other15}, [%0+%21];\n" GEMMERY_ADD_FOUR( \
      add, 2, 3, 4, 5, 0, 1, 2, 3) GEMMERY_ADD_FOUR(add, 6, 7, 8, 9, 4, 5, 6, 7)         \
      GEMMERY_ADD_FOUR(add, 10, 11, 12, 13, 8, 9, 10, 11)                                \
          GEMMERY_ADD_FOUR(add, 14, 15, 16, 17, 12, 13, 14, 15) "}"
#define GEMMERY_ADD_TO_SUMS(add)                                                            \
  if constexpr (count == 16) {                                                              \
    asm volatile(GEMMERY_ADD_SIXTEEN(add)::"l"(address), GEMMERY_SIXTEEN_SUMS,              \
                 GEMMERY_VECTOR_OFFSETS(offset, step)                                       \
                 : "memory");                                                               \
  } else {                                                                                  \
    static_assert(count == 4);                                                              \
    asm volatile(                                                                           \
        "{\n.reg .b32 other<4>;\n"                                                          \
        "ld.global.v4.b32 {other0, other1, other2, other3}, [%0+%6];\n" GEMMERY_ADD_FOUR(   \
            add, 2, 3, 4, 5, 0, 1, 2, 3) "}" ::"l"(address),                                \
        "n"(block), "n"(first), "n"(first + 1), "n"(first + 2), "n"(first + 3), "n"(offset) \
        : "memory");                                                                        \
  }

/// Adds the accumulators stored there.
template <abi::DType accumulator, int count, int block, int first, int offset, int step>
__device__ __forceinline__ void add_to_sums(const void* address) {
  if constexpr (accumulator == abi::DType::float16) {
    GEMMERY_ADD_TO_SUMS("add.rn.f16x2")
  } else if constexpr (accumulator == abi::DType::int32) {
    GEMMERY_ADD_TO_SUMS("add.s32")
  } else {
    GEMMERY_ADD_TO_SUMS("add.rn.f32")
  }
}

#undef GEMMERY_ADD_TO_SUMS
#undef GEMMERY_ADD_SIXTEEN
#undef GEMMERY_ADD_FOUR
#undef GEMMERY_ADD_ONE
#undef GEMMERY_FOUR_VECTORS
#undef GEMMERY_VECTOR
#undef GEMMERY_VECTOR_OFFSETS

/// Sets the accumulators to C++ values that were added up outside of wgmmas.
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

/// Sets four or sixteen accumulators to 0.
#define GEMMERY_CLEAR(number) "mov.b32 sum%1_%" #number ", %0;\n"
template <int count, int block, int first>
__device__ __forceinline__ void zero_sums() {
  if constexpr (count == 16) {
    asm volatile(GEMMERY_CLEAR(2) GEMMERY_CLEAR(3) GEMMERY_CLEAR(4) GEMMERY_CLEAR(5)
                     GEMMERY_CLEAR(6) GEMMERY_CLEAR(7) GEMMERY_CLEAR(8) GEMMERY_CLEAR(9)
                         GEMMERY_CLEAR(10) GEMMERY_CLEAR(11) GEMMERY_CLEAR(12) GEMMERY_CLEAR(13)
                             GEMMERY_CLEAR(14) GEMMERY_CLEAR(15) GEMMERY_CLEAR(16)
                                 GEMMERY_CLEAR(17)::"n"(0),
                 GEMMERY_SIXTEEN_SUMS);
  } else {
    static_assert(count == 4);
    asm volatile(GEMMERY_CLEAR(2) GEMMERY_CLEAR(3) GEMMERY_CLEAR(4) GEMMERY_CLEAR(5)::"n"(0),
                 "n"(block), "n"(first), "n"(first + 1), "n"(first + 2), "n"(first + 3));
  }
}
#undef GEMMERY_CLEAR
#undef GEMMERY_SIXTEEN_SUMS

}  // namespace gemmery::device::ptx
