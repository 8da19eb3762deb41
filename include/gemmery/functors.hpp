// SPDX-License-Identifier: Apache-2.0
// The functors of the explicit description as programs: what each one computes, with the order of
// operations and the roundings that its name implies.
#pragma once

#include <gemmery/dtype.hpp>
#include <gemmery/epilogue.hpp>
#include <gemmery/export.hpp>

namespace gemmery::epilogue {

// The types of a functor. `compute` is float32, or float64 for accumulators of float64 or integers.
// A program over such accumulators runs in float64; a functor that computes in float32 then rounds
// each step to float32.
struct FunctorTypes {
  DType out = DType::float32;
  int count = 1;  // elements of out per access: a power of two of at most 16 bytes
  DType accumulator = DType::float32;
  DType compute = DType::float32;
  bool reads_c = true;  // false stands for beta == 0: C is not read, so its NaNs have no effect
};

enum class Activation : unsigned char {
  identity,
  relu,        // max(t, 0); NaN stays NaN
  leaky_relu,  // t > 0 ? t : t * leaky_alpha, the operand of this name
  tanh,
  sigmoid,
  silu,
  hardswish,
  gelu  // by erf
};

// The operands of each are alpha and, if C is read, C and beta. Each throws Error for types that it
// does not support: unsupported for another compute type, invalid_argument for a count that is not
// the width of an access.

// D = fma(alpha, accum, beta * C), rounded to out; integers saturate. Here and below, another value
// may replace the accumulator: the sum of stored accumulators.
GEMMERY_API Program linear_combination(const FunctorTypes& types,
                                       const Expression& accumulated = accum());
// The same, clamped to the range of finite numbers of out before it is rounded.
GEMMERY_API Program linear_combination_clamp(const FunctorTypes& types,
                                             const Expression& accumulated = accum());
// linear_combination_clamp of int32 accumulators to 8-bit integers, computed in float32, for any K.
GEMMERY_API Program fast_linear_combination_clamp(DType out, int count, bool reads_c = true,
                                                  const Expression& accumulated = accum());
// D = activation(fma(alpha, accum, beta * C))
GEMMERY_API Program linear_combination_generic(Activation activation, const FunctorTypes& types,
                                               const Expression& accumulated = accum());

}  // namespace gemmery::epilogue
