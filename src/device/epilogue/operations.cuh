// SPDX-License-Identifier: Apache-2.0
// The operations of ops.def as device functions, which emitted epilogues call by name.
#pragma once

#include <device/epilogue/math.cuh>

namespace gemmery::device::op {

#define GEMMERY_OPERATION_real_1(name, formula) \
  template <class T>                            \
  __device__ __forceinline__ T name(T x) {      \
    return formula;                             \
  }
#define GEMMERY_OPERATION_real_2(name, formula) \
  template <class T>                            \
  __device__ __forceinline__ T name(T x, T y) { \
    return formula;                             \
  }
#define GEMMERY_OPERATION_real_3(name, formula)      \
  template <class T>                                 \
  __device__ __forceinline__ T name(T x, T y, T z) { \
    return formula;                                  \
  }
#define GEMMERY_OPERATION_compare_2(name, formula) \
  template <class T>                               \
  __device__ __forceinline__ bool name(T x, T y) { \
    return formula;                                \
  }
#define GEMMERY_OPERATION_logical_1(name, formula) \
  __device__ __forceinline__ bool name(bool x) { return formula; }
#define GEMMERY_OPERATION_logical_2(name, formula) \
  __device__ __forceinline__ bool name(bool x, bool y) { return formula; }
#define GEMMERY_OPERATION_choose_3(name, formula)       \
  template <class T>                                    \
  __device__ __forceinline__ T name(bool x, T y, T z) { \
    return formula;                                     \
  }
#define GEMMERY_OP(name, arity, kind, formula, ...) \
  GEMMERY_OPERATION_##kind##_##arity(name, (formula))
#include <gemmery/ops.def>
#undef GEMMERY_OPERATION_real_1
#undef GEMMERY_OPERATION_real_2
#undef GEMMERY_OPERATION_real_3
#undef GEMMERY_OPERATION_compare_2
#undef GEMMERY_OPERATION_logical_1
#undef GEMMERY_OPERATION_logical_2
#undef GEMMERY_OPERATION_choose_3

}  // namespace gemmery::device::op
