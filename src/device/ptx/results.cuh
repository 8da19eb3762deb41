// SPDX-License-Identifier: Apache-2.0
// Results of a group of columns, from wgmma's registers: alpha * accumulators, + beta * c, rounded
// and packed, in one statement. As C++ values, accumulators and results took a tenth of the time
// before ptxas: statements for all registers stand in each loop until it is unrolled
// (docs/performance.md).
//
// The source of a kernel defines the text, GEMMERY_RESULTS, and lists of its operands:
// GEMMERY_RESULT_OUTPUTS, the words `results`, and GEMMERY_RESULT_PLACES, for each 8 columns the
// numbers of their registers from `first` on and, with a C, the bound that `left` must be above and
// the offset in bytes, from `column` on. Between these stand the block, alpha, and, with a C, beta,
// both sources, columns left, and bits that stand in.
#pragma once

#include <device/abi/host_device.hpp>
#include <device/ptx/scaled_sums.cuh>

#ifndef GEMMERY_RESULTS
#define GEMMERY_RESULTS "the source of a kernel defines GEMMERY_RESULTS"  // ptxas says so
#define GEMMERY_RESULT_OUTPUTS "=&r"(results[0])
#define GEMMERY_RESULT_PLACES "n"(first)
#endif

namespace gemmery::device::ptx {

#define GEMMERY_STATE_RESULTS(type, constraint)                                           \
  template <int block, int first>                                                         \
  __device__ __forceinline__ void state_results(unsigned* results, type alpha) {          \
    asm volatile(GEMMERY_RESULTS:GEMMERY_RESULT_OUTPUTS                                   \
                 : "n"(block), constraint(alpha), GEMMERY_RESULT_PLACES);                 \
  }                                                                                       \
  template <int block, int first, int column, int bytes>                                  \
  __device__ __forceinline__ void state_results(unsigned* results, type alpha, type beta, \
                                                const AddendPairs& c) {                   \
    asm volatile(GEMMERY_RESULTS:GEMMERY_RESULT_OUTPUTS                                   \
                 : "n"(block), constraint(alpha), constraint(beta), "l"(c.source[0]),     \
                   "l"(c.source[1]), "r"(c.left[0]), "r"(c.left[1]), "r"(c.last[0]),      \
                   "r"(c.last[1]), GEMMERY_RESULT_PLACES                                  \
                 : "memory");                                                             \
  }
/// Computes the results of columns from registers of wgmma, from the first-th of a block on. The
/// wgmmas that add to them must have been waited for. With a C: `column` counts from the thread's
/// first one, an element of C has `bytes`, and `c` describes the first pair.
GEMMERY_STATE_RESULTS(float, "f")
GEMMERY_STATE_RESULTS(double, "d")
#undef GEMMERY_STATE_RESULTS

}  // namespace gemmery::device::ptx
