// SPDX-License-Identifier: Apache-2.0
// alpha * accumulators + beta * c for the pairs of adjacent columns that a thread has in two rows:
// predicated loads of C, decoding and arithmetic in one statement. As values of C++ they took a
// third of the instructions of a kernel with a C, and an eighth of its compile time
// (docs/performance.md).
#pragma once

#include <device/abi/dtype.hpp>
#include <device/abi/host_device.hpp>

namespace gemmery::device::ptx {

/// Where a thread reads C.
struct AddendPairs {
  const char* source[2];  // of each row: the first of two adjacent elements
  int left[2];            // columns of C from the thread's first one on; 0 for a row beyond it
  int bound;              // the pair is read if `left` is above it
  unsigned last[2];       // the bits that stand in for a pair that is not read; its second is 0
};

// Operands of the statements below: %0 to %3 the accumulators, %4 alpha, %5 beta, %6 and %7 the
// sources, %8 and %9 the columns left, %10 the bound, %11 and %12 the bits that stand in. A text
// `load` fills pair0 and pair1; `decode` c0 to c3, two from each.
#define GEMMERY_SCALE_AND_ADD(type, declare, before, load, decode)                          \
  "{\n.reg .pred reads0, reads1;\n.reg ." type " c<4>;\n" declare                           \
  "setp.gt.s32 reads0, %8, %10;\nsetp.gt.s32 reads1, %9, %10;\n" load decode "mul.rn." type \
  " c0, c0, %5;\nmul.rn." type                                                              \
  " c1, c1, %5;\n"                                                                          \
  "mul.rn." type " c2, c2, %5;\nmul.rn." type " c3, c3, %5;\n" before "fma.rn." type        \
  " %0, %0, %4, c0;\nfma.rn." type                                                          \
  " %1, %1, %4, c1;\n"                                                                      \
  "fma.rn." type " %2, %2, %4, c2;\nfma.rn." type " %3, %3, %4, c3;\n}"
#define GEMMERY_ADDEND_OPERANDS(constraint)                                                \
  constraint(alpha), constraint(beta), "l"(c.source[0]), "l"(c.source[1]), "r"(c.left[0]), \
      "r"(c.left[1]), "r"(c.bound), "r"(c.last[0]), "r"(c.last[1])
#define GEMMERY_ADD_SCALED(declare, load, decode)                                               \
  asm volatile(GEMMERY_SCALE_AND_ADD("f32", declare, "", load, decode)                          \
               : "+f"(values[0][0]), "+f"(values[0][1]), "+f"(values[1][0]), "+f"(values[1][1]) \
               : GEMMERY_ADDEND_OPERANDS("f")                                                   \
               : "memory")

// Pairs of 32-bit elements, of 16-bit ones in a word, and of bytes in half a word.
#define GEMMERY_DECLARE_WORDS ".reg .b32 first0, second0, first1, second1;\n"
#define GEMMERY_LOAD_WORDS                              \
  "mov.b32 first0, %11;\nmov.b32 second0, 0;\n"         \
  "@reads0 ld.global.v2.b32 {first0, second0}, [%6];\n" \
  "mov.b32 first1, %12;\nmov.b32 second1, 0;\n"         \
  "@reads1 ld.global.v2.b32 {first1, second1}, [%7];\n"
#define GEMMERY_DECLARE_HALVES \
  ".reg .b32 pair0, pair1;\n.reg .b16 first0, second0, first1, second1;\n"
#define GEMMERY_LOAD_HALVES                                   \
  "mov.b32 pair0, %11;\n@reads0 ld.global.b32 pair0, [%6];\n" \
  "mov.b32 pair1, %12;\n@reads1 ld.global.b32 pair1, [%7];\n"
#define GEMMERY_DECLARE_BYTES \
  ".reg .b16 pair0, pair1, first0, second0, first1, second1;\n.reg .b32 word0, word1;\n"
#define GEMMERY_LOAD_BYTES                                        \
  "cvt.u16.u32 pair0, %11;\n@reads0 ld.global.b16 pair0, [%6];\n" \
  "cvt.u16.u32 pair1, %12;\n@reads1 ld.global.b16 pair1, [%7];\n"
// Converts the first and second elements of both pairs.
#define GEMMERY_CONVERT(convert)                                                      \
  convert " c0, first0;\n" convert " c1, second0;\n" convert " c2, first1;\n" convert \
          " c3, second1;\n"

/// values = alpha * values + beta * c.
template <abi::DType c_type>
__device__ __forceinline__ void add_scaled(float (&values)[2][2], float alpha, float beta,
                                           const AddendPairs& c) {
  using abi::DType;
  if constexpr (c_type == DType::float32) {
    GEMMERY_ADD_SCALED(GEMMERY_DECLARE_WORDS, GEMMERY_LOAD_WORDS, GEMMERY_CONVERT("mov.b32"));
  } else if constexpr (c_type == DType::float16) {
    GEMMERY_ADD_SCALED(
        GEMMERY_DECLARE_HALVES, GEMMERY_LOAD_HALVES,
        "mov.b32 {first0, second0}, pair0;\nmov.b32 {first1, second1}, pair1;\n" GEMMERY_CONVERT(
            "cvt.f32.f16"));
  } else if constexpr (c_type == DType::bfloat16) {
    GEMMERY_ADD_SCALED(
        ".reg .b32 pair0, pair1, first0, second0, first1, second1;\n", GEMMERY_LOAD_HALVES,
        "shl.b32 first0, pair0, 16;\nand.b32 second0, pair0, 0xffff0000;\n"
        "shl.b32 first1, pair1, 16;\nand.b32 second1, pair1, 0xffff0000;\n" GEMMERY_CONVERT(
            "mov.b32"));
  } else if constexpr (c_type == DType::float8_e4m3fn) {
    GEMMERY_ADD_SCALED(
        GEMMERY_DECLARE_BYTES, GEMMERY_LOAD_BYTES,
        "cvt.rn.f16x2.e4m3x2 word0, pair0;\ncvt.rn.f16x2.e4m3x2 word1, pair1;\n"
        "mov.b32 {first0, second0}, word0;\nmov.b32 {first1, second1}, word1;\n" GEMMERY_CONVERT(
            "cvt.f32.f16"));
  } else {
    static_assert(c_type == DType::float8_e5m2);  // the upper byte of a float16
    GEMMERY_ADD_SCALED(
        GEMMERY_DECLARE_BYTES, GEMMERY_LOAD_BYTES,
        "shl.b16 first0, pair0, 8;\nand.b16 second0, pair0, 0xff00;\n"
        "shl.b16 first1, pair1, 8;\nand.b16 second1, pair1, 0xff00;\n" GEMMERY_CONVERT(
            "cvt.f32.f16"));
  }
}

// Widens integers as widen_s32 does: %13 to %16 to %0 to %3.
#define GEMMERY_WIDEN(to, from)                                                                    \
  "xor.b32 low, " from ", 0x80000000;\nmov.b64 " to ", {low, 0x43300000};\nadd.rn.f64 " to ", " to \
  ", 0dC330000080000000;\n"
#define GEMMERY_ADD_SCALED_INTEGERS(declare, load, decode)                                   \
  asm volatile(                                                                              \
      GEMMERY_SCALE_AND_ADD("f64", ".reg .b32 low;\n" declare,                               \
                            GEMMERY_WIDEN("%0", "%13") GEMMERY_WIDEN("%1", "%14")            \
                                GEMMERY_WIDEN("%2", "%15") GEMMERY_WIDEN("%3", "%16"),       \
                            load, decode)                                                    \
      : "=&d"(values[0][0]), "=&d"(values[0][1]), "=&d"(values[1][0]), "=&d"(values[1][1])   \
      : GEMMERY_ADDEND_OPERANDS("d"), "r"(sums[0]), "r"(sums[1]), "r"(sums[2]), "r"(sums[3]) \
      : "memory")

/// The same for integers, in the compute type of their epilogues: values = alpha * sums + beta * c.
/// `sums`: the four accumulators, row by row.
template <abi::DType c_type>
__device__ __forceinline__ void add_scaled(double (&values)[2][2], const int* sums, double alpha,
                                           double beta, const AddendPairs& c) {
  using abi::DType;
  if constexpr (c_type == DType::int32) {
    GEMMERY_ADD_SCALED_INTEGERS(GEMMERY_DECLARE_WORDS, GEMMERY_LOAD_WORDS,
                                GEMMERY_CONVERT("cvt.rn.f64.s32"));
  } else if constexpr (c_type == DType::float32) {
    GEMMERY_ADD_SCALED_INTEGERS(GEMMERY_DECLARE_WORDS, GEMMERY_LOAD_WORDS,
                                GEMMERY_CONVERT("cvt.f64.f32"));
  } else if constexpr (c_type == DType::int8) {
    GEMMERY_ADD_SCALED_INTEGERS(
        GEMMERY_DECLARE_BYTES, GEMMERY_LOAD_BYTES,
        "cvt.s16.s8 first0, pair0;\nshr.s16 second0, pair0, 8;\n"
        "cvt.s16.s8 first1, pair1;\nshr.s16 second1, pair1, 8;\n" GEMMERY_CONVERT(
            "cvt.rn.f64.s16"));
  } else {
    static_assert(c_type == DType::uint8);
    GEMMERY_ADD_SCALED_INTEGERS(
        GEMMERY_DECLARE_BYTES, GEMMERY_LOAD_BYTES,
        "and.b16 first0, pair0, 0xff;\nshr.u16 second0, pair0, 8;\n"
        "and.b16 first1, pair1, 0xff;\nshr.u16 second1, pair1, 8;\n" GEMMERY_CONVERT(
            "cvt.rn.f64.u16"));
  }
}

#undef GEMMERY_ADD_SCALED_INTEGERS
#undef GEMMERY_WIDEN
#undef GEMMERY_CONVERT
#undef GEMMERY_LOAD_BYTES
#undef GEMMERY_DECLARE_BYTES
#undef GEMMERY_LOAD_HALVES
#undef GEMMERY_DECLARE_HALVES
#undef GEMMERY_LOAD_WORDS
#undef GEMMERY_DECLARE_WORDS
#undef GEMMERY_ADD_SCALED
#undef GEMMERY_ADDEND_OPERANDS
#undef GEMMERY_SCALE_AND_ADD

}  // namespace gemmery::device::ptx
