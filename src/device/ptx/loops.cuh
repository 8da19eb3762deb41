// SPDX-License-Identifier: Apache-2.0
// Loops off the main path, each in one statement. As loops of C++ every pass of the compiler visits
// them. ptxas must be told not to unroll these, which takes it longer than the other passes save.
#pragma once

#include <device/abi/host_device.hpp>

namespace gemmery::device::ptx {

/// Sets the bytes from `first_byte` to below `bytes` to 0 in steps of `step`, 16 at a time, in each
/// of `count` regions of shared memory that begin `distance` bytes apart, the first one at
/// `shared`.
template <unsigned count, unsigned distance, unsigned step>
__device__ __forceinline__ void clear_shared(unsigned shared, unsigned first_byte, unsigned bytes) {
  asm volatile(
      "{\n.reg .pred is_over;\n.reg .b32 region, byte, at, end;\n"
      "mov.b32 region, %0;\n"
      "add.u32 end, region, %3;\n"
      "REGION:\n.pragma \"nounroll\";\n"
      "mov.b32 byte, %1;\n"
      "CHUNK:\n.pragma \"nounroll\";\n"
      "setp.ge.u32 is_over, byte, %2;\n"
      "@is_over bra NEXT;\n"
      "add.u32 at, region, byte;\n"
      "st.shared.v4.b32 [at], {0, 0, 0, 0};\n"
      "add.u32 byte, byte, %5;\n"
      "bra CHUNK;\n"
      "NEXT:\n"
      "add.u32 region, region, %4;\n"
      "setp.ne.u32 is_over, region, end;\n"
      "@is_over bra REGION;\n}" ::"r"(shared),
      "r"(first_byte), "r"(bytes), "n"(count * distance), "n"(distance), "n"(step)
      : "memory");
}

/// Prefetches a line of every `step`-th row into L2: those from `row` to below `rows`, of which the
/// first is that of `line` and the next ones are `step_bytes` further each.
template <unsigned step>
__device__ __forceinline__ void prefetch_lines(const char* line, abi::Int64 step_bytes,
                                               unsigned row, unsigned rows) {
  asm volatile(
      "{\n.reg .pred is_left;\n.reg .b32 row;\n.reg .b64 line;\n"
      "mov.b32 row, %2;\n"
      "mov.b64 line, %0;\n"
      "LINE:\n.pragma \"nounroll\";\n"
      "setp.lt.u32 is_left, row, %3;\n"
      "@is_left prefetch.global.L2 [line];\n"
      "add.s64 line, line, %1;\n"
      "add.u32 row, row, %4;\n"
      "@is_left bra LINE;\n}" ::"l"(line),
      "l"(step_bytes), "r"(row), "r"(rows), "n"(step));
}

/// Copies elements of a staging tile in shared memory to global memory: those of the first `rows`
/// of its 16 rows and of the first `columns_left` of its `columns`; either may be 0 or negative.
/// Rows of the staging tile follow each other, with their chunks of 16 bytes swizzled as TMA does;
/// those at `to` are `row_bytes` apart. The lanes of a warp call it.
template <int element_bytes, unsigned columns>
__device__ __forceinline__ void store_elements(unsigned shared, char* to, abi::Int64 row_bytes,
                                               int rows, int columns_left, unsigned lane) {
  constexpr unsigned pitch = columns * element_bytes;
  static_assert(pitch == 32 || pitch == 64 || pitch == 128, "TMA's swizzles");
  static_assert(element_bytes == 1 || element_bytes == 2 || element_bytes == 4);
  constexpr unsigned log2_turn = pitch == 128 ? 0 : pitch == 64 ? 1 : 2;  // rows swizzled alike
  constexpr unsigned log2_columns = 7 - log2_turn - element_bytes / 2;
  static_assert(1U << log2_columns == columns);
#define GEMMERY_STORE_ELEMENTS(type)                                                         \
  asm volatile(                                                                              \
      "{\n.reg .pred is_stored, is_left;\n.reg .b32 element, row, column, at, turn, bits;\n" \
      ".reg .b64 to, offset;\n"                                                              \
      "mov.b32 element, %5;\n"                                                               \
      "ELEMENT:\n.pragma \"nounroll\";\n"                                                    \
      "shr.u32 row, element, %6;\n"                                                          \
      "and.b32 column, element, %7;\n"                                                       \
      "setp.lt.s32 is_stored, row, %3;\n"                                                    \
      "setp.lt.and.s32 is_stored, column, %4, is_stored;\n"                                  \
      "shr.u32 turn, row, %8;\n"                                                             \
      "and.b32 turn, turn, %9;\n"                                                            \
      "shl.b32 turn, turn, 4;\n"                                                             \
      "shl.b32 at, element, %12;\n"                                                          \
      "xor.b32 at, at, turn;\n"                                                              \
      "add.u32 at, at, %0;\n"                                                                \
      "@is_stored ld.shared." type                                                           \
      " bits, [at];\n"                                                                       \
      "cvt.u64.u32 offset, row;\n"                                                           \
      "mad.lo.s64 to, offset, %2, %1;\n"                                                     \
      "mul.wide.u32 offset, column, %10;\n"                                                  \
      "add.s64 to, to, offset;\n"                                                            \
      "@is_stored st.global." type                                                           \
      " [to], bits;\n"                                                                       \
      "add.u32 element, element, 32;\n"                                                      \
      "setp.lt.u32 is_left, element, %11;\n"                                                 \
      "@is_left bra ELEMENT;\n}" ::"r"(shared),                                              \
      "l"(to), "l"(row_bytes), "r"(rows), "r"(columns_left), "r"(lane), "n"(log2_columns),   \
      "n"(columns - 1), "n"(log2_turn), "n"(pitch / 16 - 1), "n"(element_bytes),             \
      "n"(16 * columns), "n"(element_bytes / 2)                                              \
      : "memory")
  if constexpr (element_bytes == 1)
    GEMMERY_STORE_ELEMENTS("u8");
  else if constexpr (element_bytes == 2)
    GEMMERY_STORE_ELEMENTS("u16");
  else
    GEMMERY_STORE_ELEMENTS("u32");
#undef GEMMERY_STORE_ELEMENTS
}

}  // namespace gemmery::device::ptx
