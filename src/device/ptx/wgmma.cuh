// SPDX-License-Identifier: Apache-2.0
// wgmma of sm_90a: the product of two tiles in shared memory, added to registers of a warpgroup,
// one instruction per function. These registers are PTX's own, by their names in the text, and no
// variables of C++, whose compiler took a quarter of a kernel's compile time to carry 128 of them
// through four statements of a loop (docs/decisions/0017-sums-live-in-ptx.md).
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

/// The registers of a warpgroup's sums. `block` counts its blocks of 64 rows, each the accumulator
/// of one wgmma: sum<block>_0 and on, a float or two halves. A name holds from its declaration to
/// the end of the kernel: declare once, in the kernel's first block of code.
template <int block, int count>
__device__ __forceinline__ void declare_sums() {
  asm volatile(".reg .b32 sum%0_<%1>;" ::"n"(block), "n"(count));
}

/// A thread's sums of 16 columns, from the first-th register on: four pairs of float16, eight
/// floats. What a wgmma under way adds to may not be read: it is waited for first. No other way
/// leads out of these registers, and as asm volatile this one stays behind the wait.
template <int block, int first>
__device__ __forceinline__ void read_sums(unsigned* values) {
  asm volatile(
      "mov.b32 %0, sum%4_%5;\n"
      "mov.b32 %1, sum%4_%6;\n"
      "mov.b32 %2, sum%4_%7;\n"
      "mov.b32 %3, sum%4_%8;"
      : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3])
      : "n"(block), "n"(first), "n"(first + 1), "n"(first + 2), "n"(first + 3));
}
template <int block, int first>
__device__ __forceinline__ void read_sums(float* values) {
  asm volatile(
      "mov.b32 %0, sum%8_%9;\n"
      "mov.b32 %1, sum%8_%10;\n"
      "mov.b32 %2, sum%8_%11;\n"
      "mov.b32 %3, sum%8_%12;\n"
      "mov.b32 %4, sum%8_%13;\n"
      "mov.b32 %5, sum%8_%14;\n"
      "mov.b32 %6, sum%8_%15;\n"
      "mov.b32 %7, sum%8_%16;"
      : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3]), "=f"(values[4]),
        "=f"(values[5]), "=f"(values[6]), "=f"(values[7])
      : "n"(block), "n"(first), "n"(first + 1), "n"(first + 2), "n"(first + 3), "n"(first + 4),
        "n"(first + 5), "n"(first + 6), "n"(first + 7));
}

/// Sets to 0 those of four sums, from the first-th register on, that `are_cleared` names. Not while
/// a wgmma adds to them.
template <int block, int first>
__device__ __forceinline__ void clear_sums(const bool (&are_cleared)[4]) {
  asm volatile(
      "{\n.reg .pred p<4>;\n"
      "setp.ne.b32 p0, %0, 0;\nsetp.ne.b32 p1, %1, 0;\n"
      "setp.ne.b32 p2, %2, 0;\nsetp.ne.b32 p3, %3, 0;\n"
      "@p0 mov.b32 sum%4_%5, 0;\n@p1 mov.b32 sum%4_%6, 0;\n"
      "@p2 mov.b32 sum%4_%7, 0;\n@p3 mov.b32 sum%4_%8, 0;\n}" ::"r"(unsigned{are_cleared[0]}),
      "r"(unsigned{are_cleared[1]}), "r"(unsigned{are_cleared[2]}), "r"(unsigned{are_cleared[3]}),
      "n"(block), "n"(first), "n"(first + 1), "n"(first + 2), "n"(first + 3));
}

// The first so many sums of a block, as wgmma lists them.

#define GEMMERY_SUMS_4 "sum%5_0, sum%5_1, sum%5_2, sum%5_3"
#define GEMMERY_SUMS_8 GEMMERY_SUMS_4 ", sum%5_4, sum%5_5, sum%5_6, sum%5_7"
#define GEMMERY_SUMS_12 GEMMERY_SUMS_8 ", sum%5_8, sum%5_9, sum%5_10, sum%5_11"
#define GEMMERY_SUMS_16 GEMMERY_SUMS_12 ", sum%5_12, sum%5_13, sum%5_14, sum%5_15"
#define GEMMERY_SUMS_20 GEMMERY_SUMS_16 ", sum%5_16, sum%5_17, sum%5_18, sum%5_19"
#define GEMMERY_SUMS_24 GEMMERY_SUMS_20 ", sum%5_20, sum%5_21, sum%5_22, sum%5_23"
#define GEMMERY_SUMS_28 GEMMERY_SUMS_24 ", sum%5_24, sum%5_25, sum%5_26, sum%5_27"
#define GEMMERY_SUMS_32 GEMMERY_SUMS_28 ", sum%5_28, sum%5_29, sum%5_30, sum%5_31"
#define GEMMERY_SUMS_36 GEMMERY_SUMS_32 ", sum%5_32, sum%5_33, sum%5_34, sum%5_35"
#define GEMMERY_SUMS_40 GEMMERY_SUMS_36 ", sum%5_36, sum%5_37, sum%5_38, sum%5_39"
#define GEMMERY_SUMS_44 GEMMERY_SUMS_40 ", sum%5_40, sum%5_41, sum%5_42, sum%5_43"
#define GEMMERY_SUMS_48 GEMMERY_SUMS_44 ", sum%5_44, sum%5_45, sum%5_46, sum%5_47"
#define GEMMERY_SUMS_52 GEMMERY_SUMS_48 ", sum%5_48, sum%5_49, sum%5_50, sum%5_51"
#define GEMMERY_SUMS_56 GEMMERY_SUMS_52 ", sum%5_52, sum%5_53, sum%5_54, sum%5_55"
#define GEMMERY_SUMS_60 GEMMERY_SUMS_56 ", sum%5_56, sum%5_57, sum%5_58, sum%5_59"
#define GEMMERY_SUMS_64 GEMMERY_SUMS_60 ", sum%5_60, sum%5_61, sum%5_62, sum%5_63"
#define GEMMERY_SUMS_72                                                      \
  GEMMERY_SUMS_64                                                            \
  ", sum%5_64, sum%5_65, sum%5_66, sum%5_67, sum%5_68, sum%5_69, sum%5_70, " \
  "sum%5_71"
#define GEMMERY_SUMS_80                                                      \
  GEMMERY_SUMS_72                                                            \
  ", sum%5_72, sum%5_73, sum%5_74, sum%5_75, sum%5_76, sum%5_77, sum%5_78, " \
  "sum%5_79"
#define GEMMERY_SUMS_88                                                      \
  GEMMERY_SUMS_80                                                            \
  ", sum%5_80, sum%5_81, sum%5_82, sum%5_83, sum%5_84, sum%5_85, sum%5_86, " \
  "sum%5_87"
#define GEMMERY_SUMS_96                                                      \
  GEMMERY_SUMS_88                                                            \
  ", sum%5_88, sum%5_89, sum%5_90, sum%5_91, sum%5_92, sum%5_93, sum%5_94, " \
  "sum%5_95"
#define GEMMERY_SUMS_104 \
  GEMMERY_SUMS_96        \
  ", sum%5_96, sum%5_97, sum%5_98, sum%5_99, sum%5_100, sum%5_101, sum%5_102, sum%5_103"
#define GEMMERY_SUMS_112 \
  GEMMERY_SUMS_104       \
  ", sum%5_104, sum%5_105, sum%5_106, sum%5_107, sum%5_108, sum%5_109, sum%5_110, sum%5_111"
#define GEMMERY_SUMS_120 \
  GEMMERY_SUMS_112       \
  ", sum%5_112, sum%5_113, sum%5_114, sum%5_115, sum%5_116, sum%5_117, sum%5_118, sum%5_119"
#define GEMMERY_SUMS_128 \
  GEMMERY_SUMS_120       \
  ", sum%5_120, sum%5_121, sum%5_122, sum%5_123, sum%5_124, sum%5_125, sum%5_126, sum%5_127"

#define GEMMERY_WGMMA_ASM(n, count, sums, operands)                                \
  asm volatile(                                                                    \
      "{\n.reg .pred keeps;\nsetp.ne.b32 keeps, %2, 0;\n"                          \
      "wgmma.mma_async.sync.aligned.m64n" #n "k16." sums "." operands "." operands \
      " {" GEMMERY_SUMS_##count "}, %0, %1, keeps, 1, 1, %3, %4;\n}" ::"l"(a),     \
      "l"(b), "r"(keeps_d), "n"(is_a_turned), "n"(is_b_turned), "n"(block))

#define GEMMERY_WGMMA_F32(n, count)                                                          \
  template <int block, abi::DType operand, bool is_a_turned, bool is_b_turned>               \
  __device__ __forceinline__ void wgmma_m64_k16(Sums<abi::DType::float32, n>, abi::UInt64 a, \
                                                abi::UInt64 b, unsigned keeps_d) {           \
    if constexpr (operand == abi::DType::bfloat16) {                                         \
      GEMMERY_WGMMA_ASM(n, count, "f32", "bf16");                                            \
    } else {                                                                                 \
      static_assert(operand == abi::DType::float16);                                         \
      GEMMERY_WGMMA_ASM(n, count, "f32", "f16");                                             \
    }                                                                                        \
  }

#define GEMMERY_WGMMA_F16(n, count)                                                          \
  template <int block, abi::DType operand, bool is_a_turned, bool is_b_turned>               \
  __device__ __forceinline__ void wgmma_m64_k16(Sums<abi::DType::float16, n>, abi::UInt64 a, \
                                                abi::UInt64 b, unsigned keeps_d) {           \
    static_assert(operand == abi::DType::float16);                                           \
    GEMMERY_WGMMA_ASM(n, count, "f16", "f16");                                               \
  }

/// Names the shape of a block's sums: 64 rows and `columns`.
template <abi::DType accumulator, int columns>
struct Sums {};

/// sums of `block` (+)= a b for 64 rows and 16 k, a and b by their descriptors; `is_a_turned`
/// where m is adjacent, not k (likewise n of b). What was in the sums counts only where `keeps_d`
/// is not 0. No "memory": wgmma_fence and wgmma_wait_group bound what the compiler may move.
GEMMERY_WGMMA_F32(16, 8)
GEMMERY_WGMMA_F32(32, 16)
GEMMERY_WGMMA_F32(48, 24)
GEMMERY_WGMMA_F32(64, 32)
GEMMERY_WGMMA_F32(80, 40)
GEMMERY_WGMMA_F32(96, 48)
GEMMERY_WGMMA_F32(112, 56)
GEMMERY_WGMMA_F32(128, 64)
GEMMERY_WGMMA_F32(144, 72)
GEMMERY_WGMMA_F32(160, 80)
GEMMERY_WGMMA_F32(176, 88)
GEMMERY_WGMMA_F32(192, 96)
GEMMERY_WGMMA_F32(208, 104)
GEMMERY_WGMMA_F32(224, 112)
GEMMERY_WGMMA_F32(240, 120)
GEMMERY_WGMMA_F32(256, 128)

/// The same for float16 sums, two to a register.
GEMMERY_WGMMA_F16(16, 4)
GEMMERY_WGMMA_F16(32, 8)
GEMMERY_WGMMA_F16(48, 12)
GEMMERY_WGMMA_F16(64, 16)
GEMMERY_WGMMA_F16(80, 20)
GEMMERY_WGMMA_F16(96, 24)
GEMMERY_WGMMA_F16(112, 28)
GEMMERY_WGMMA_F16(128, 32)
GEMMERY_WGMMA_F16(144, 36)
GEMMERY_WGMMA_F16(160, 40)
GEMMERY_WGMMA_F16(176, 44)
GEMMERY_WGMMA_F16(192, 48)
GEMMERY_WGMMA_F16(208, 52)
GEMMERY_WGMMA_F16(224, 56)
GEMMERY_WGMMA_F16(240, 60)
GEMMERY_WGMMA_F16(256, 64)

#undef GEMMERY_WGMMA_F16
#undef GEMMERY_WGMMA_F32
#undef GEMMERY_WGMMA_ASM
#undef GEMMERY_SUMS_4
#undef GEMMERY_SUMS_8
#undef GEMMERY_SUMS_12
#undef GEMMERY_SUMS_16
#undef GEMMERY_SUMS_20
#undef GEMMERY_SUMS_24
#undef GEMMERY_SUMS_28
#undef GEMMERY_SUMS_32
#undef GEMMERY_SUMS_36
#undef GEMMERY_SUMS_40
#undef GEMMERY_SUMS_44
#undef GEMMERY_SUMS_48
#undef GEMMERY_SUMS_52
#undef GEMMERY_SUMS_56
#undef GEMMERY_SUMS_60
#undef GEMMERY_SUMS_64
#undef GEMMERY_SUMS_72
#undef GEMMERY_SUMS_80
#undef GEMMERY_SUMS_88
#undef GEMMERY_SUMS_96
#undef GEMMERY_SUMS_104
#undef GEMMERY_SUMS_112
#undef GEMMERY_SUMS_120
#undef GEMMERY_SUMS_128

}  // namespace gemmery::device::ptx
