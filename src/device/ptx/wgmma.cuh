// SPDX-License-Identifier: Apache-2.0
// wgmma of sm_90a: the product of two tiles in shared memory, added to registers of a warpgroup.
// These registers are declared in PTX and named in its text; they are no C++ variables. With
// variables the compiler took a quarter of a kernel's compile time to carry 128 of them through
// four statements of a loop (docs/decisions/0017-sums-live-in-ptx.md).
//
// A kernel uses one form of wgmma. Its source defines the text of it, GEMMERY_WGMMA, before it
// includes this file: that spares the compiler hundreds of functions of which a kernel needs one.
// In the text, sum%3_0 and on are the accumulators of block %3; %0 and %1 are the descriptors of A
// and B; the predicate `keeps` adds to the accumulators; for operands of 16 bits, %4 and %5 say if
// A and B are not K-major. If A is in registers, the text is GEMMERY_WGMMA_BY_REGISTERS: %0 to %3
// are these registers, %4 is the descriptor of B, the accumulators are sum%6_0 and on, and %7 says
// if B is not K-major.
#pragma once

#include <device/abi/dtype.hpp>
#include <device/abi/host_device.hpp>

#ifndef GEMMERY_WGMMA
#define GEMMERY_WGMMA \
  "the source of a kernel defines GEMMERY_WGMMA"  // no instruction: ptxas says so
#endif

#ifndef GEMMERY_WGMMA_BY_REGISTERS
#define GEMMERY_WGMMA_BY_REGISTERS "the source of a kernel defines GEMMERY_WGMMA_BY_REGISTERS"
#endif

namespace gemmery::device::ptx {

/// Orders earlier accesses to the registers of accumulators, and of A, before the wgmmas that
/// follow.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ inline void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most `pending` groups of this warp are in flight.
template <int pending>
__device__ inline void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/// The registers of a warpgroup's accumulators. `block` counts its blocks of 64 rows, each the
/// accumulator of one wgmma: sum<block>_0 and on, a float or two halves each. A name is valid from
/// its declaration to the end of the kernel: declare once, in the kernel's outermost block.
template <int block, int count>
__device__ __forceinline__ void declare_sums() {
  asm volatile(".reg .b32 sum%0_<%1>;" ::"n"(block), "n"(count));
}

/// Reads a thread's accumulators of 16 or 32 columns, from the first-th register on: pairs of
/// float16 (four, for 16 columns), floats or integers. The wgmmas that add to them must have been
/// waited for. This is the only way to read these registers; as asm volatile it stays after the
/// wait.
template <int block, int first, int count>
__device__ __forceinline__ void read_sums(unsigned* values) {
  static_assert(count == 4);
  asm volatile(
      "mov.b32 %0, sum%4_%5;\n"
      "mov.b32 %1, sum%4_%6;\n"
      "mov.b32 %2, sum%4_%7;\n"
      "mov.b32 %3, sum%4_%8;"
      : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3])
      : "n"(block), "n"(first), "n"(first + 1), "n"(first + 2), "n"(first + 3));
}
#define GEMMERY_READ_SUMS(type, constraint)                                                     \
  template <int block, int first, int count>                                                    \
  __device__ __forceinline__ void read_sums(type* values) {                                     \
    if constexpr (count == 16) {                                                                \
      asm volatile(                                                                             \
          "mov.b32 %0, sum%16_%17;\n"                                                           \
          "mov.b32 %1, sum%16_%18;\n"                                                           \
          "mov.b32 %2, sum%16_%19;\n"                                                           \
          "mov.b32 %3, sum%16_%20;\n"                                                           \
          "mov.b32 %4, sum%16_%21;\n"                                                           \
          "mov.b32 %5, sum%16_%22;\n"                                                           \
          "mov.b32 %6, sum%16_%23;\n"                                                           \
          "mov.b32 %7, sum%16_%24;\n"                                                           \
          "mov.b32 %8, sum%16_%25;\n"                                                           \
          "mov.b32 %9, sum%16_%26;\n"                                                           \
          "mov.b32 %10, sum%16_%27;\n"                                                          \
          "mov.b32 %11, sum%16_%28;\n"                                                          \
          "mov.b32 %12, sum%16_%29;\n"                                                          \
          "mov.b32 %13, sum%16_%30;\n"                                                          \
          "mov.b32 %14, sum%16_%31;\n"                                                          \
          "mov.b32 %15, sum%16_%32;"                                                            \
          : constraint(values[0]), constraint(values[1]), constraint(values[2]),                \
            constraint(values[3]), constraint(values[4]), constraint(values[5]),                \
            constraint(values[6]), constraint(values[7]), constraint(values[8]),                \
            constraint(values[9]), constraint(values[10]), constraint(values[11]),              \
            constraint(values[12]), constraint(values[13]), constraint(values[14]),             \
            constraint(values[15])                                                              \
          : "n"(block), "n"(first), "n"(first + 1), "n"(first + 2), "n"(first + 3),             \
            "n"(first + 4), "n"(first + 5), "n"(first + 6), "n"(first + 7), "n"(first + 8),     \
            "n"(first + 9), "n"(first + 10), "n"(first + 11), "n"(first + 12), "n"(first + 13), \
            "n"(first + 14), "n"(first + 15));                                                  \
    } else {                                                                                    \
      static_assert(count == 8);                                                                \
      asm volatile(                                                                             \
          "mov.b32 %0, sum%8_%9;\n"                                                             \
          "mov.b32 %1, sum%8_%10;\n"                                                            \
          "mov.b32 %2, sum%8_%11;\n"                                                            \
          "mov.b32 %3, sum%8_%12;\n"                                                            \
          "mov.b32 %4, sum%8_%13;\n"                                                            \
          "mov.b32 %5, sum%8_%14;\n"                                                            \
          "mov.b32 %6, sum%8_%15;\n"                                                            \
          "mov.b32 %7, sum%8_%16;"                                                              \
          : constraint(values[0]), constraint(values[1]), constraint(values[2]),                \
            constraint(values[3]), constraint(values[4]), constraint(values[5]),                \
            constraint(values[6]), constraint(values[7])                                        \
          : "n"(block), "n"(first), "n"(first + 1), "n"(first + 2), "n"(first + 3),             \
            "n"(first + 4), "n"(first + 5), "n"(first + 6), "n"(first + 7));                    \
    }                                                                                           \
  }
GEMMERY_READ_SUMS(float, "=f")
GEMMERY_READ_SUMS(int, "=r")
#undef GEMMERY_READ_SUMS

/// Sets the accumulators that `are_cleared` selects to 0, out of four from the first-th register
/// on. No wgmma may be adding to them.
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

#define GEMMERY_EIGHT_NUMBERS(first)                                                  \
  "n"(first), "n"((first) + 1), "n"((first) + 2), "n"((first) + 3), "n"((first) + 4), \
      "n"((first) + 5), "n"((first) + 6), "n"((first) + 7)
#define GEMMERY_EIGHT(step, a, b, c, d, e, f, g, h) \
  step(a) step(b) step(c) step(d) step(e) step(f) step(g) step(h)
#define GEMMERY_COPY_SUM(at) "mov.b32 sum%0_%" #at ", sum%1_%" #at ";\n"
#define GEMMERY_ADD_SUM(at) "add.rn.f32 sum%0_%" #at ", sum%0_%" #at ", sum%1_%" #at ";\n"
#define GEMMERY_UPDATE_SUMS(name, step)                                                        \
  template <int to, int from, int first, int count>                                            \
  __device__ __forceinline__ void name() {                                                     \
    if constexpr (count == 16) {                                                               \
      asm volatile(GEMMERY_EIGHT(step, 2, 3, 4, 5, 6, 7, 8, 9)                                 \
                       GEMMERY_EIGHT(step, 10, 11, 12, 13, 14, 15, 16, 17)::"n"(to),           \
                   "n"(from), GEMMERY_EIGHT_NUMBERS(first), GEMMERY_EIGHT_NUMBERS(first + 8)); \
    } else {                                                                                   \
      static_assert(count == 8);                                                               \
      asm volatile(GEMMERY_EIGHT(step, 2, 3, 4, 5, 6, 7, 8, 9)::"n"(to), "n"(from),            \
                   GEMMERY_EIGHT_NUMBERS(first));                                              \
    }                                                                                          \
  }
/// Copies or adds accumulators of float32 from the first-th register on, from one block to another.
/// No wgmma may be adding to either.
GEMMERY_UPDATE_SUMS(copy_sums, GEMMERY_COPY_SUM)
GEMMERY_UPDATE_SUMS(add_sums, GEMMERY_ADD_SUM)
#undef GEMMERY_UPDATE_SUMS
#undef GEMMERY_ADD_SUM
#undef GEMMERY_COPY_SUM
#undef GEMMERY_EIGHT
#undef GEMMERY_EIGHT_NUMBERS

/// accumulators of `block` (+)= a b for 64 rows and 32 bytes of k, with a and b by their
/// descriptors. `is_a_turned`: m is adjacent instead of k (`is_b_turned`: n). Previous accumulators
/// are kept only if `keeps_d` is not 0. No "memory" clobber: wgmma_fence and wgmma_wait_group bound
/// what the compiler may move.
template <int block, bool is_a_turned, bool is_b_turned>
__device__ __forceinline__ void wgmma(abi::UInt64 a, abi::UInt64 b, unsigned keeps_d) {
  asm volatile("{\n.reg .pred keeps;\nsetp.ne.b32 keeps, %2, 0;\n" GEMMERY_WGMMA "\n}" ::"l"(a),
               "l"(b), "r"(keeps_d), "n"(block), "n"(is_a_turned), "n"(is_b_turned));
}

/// The same with A in registers, which must keep their values until the wgmma has completed.
template <int block, bool is_b_turned>
__device__ __forceinline__ void wgmma(const unsigned (&a)[4], abi::UInt64 b, unsigned keeps_d) {
  asm volatile("{\n.reg .pred keeps;\nsetp.ne.b32 keeps, %5, 0;\n" GEMMERY_WGMMA_BY_REGISTERS
               "\n}" ::"r"(a[0]),
               "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keeps_d), "n"(block), "n"(is_b_turned));
}

}  // namespace gemmery::device::ptx
