// SPDX-License-Identifier: Apache-2.0
// The functors of the explicit description as programs: what each computes, step by step, in the
// order and with the roundings that its name stands for.
#pragma once

#include <gemmery/dtype.hpp>
#include <gemmery/epilogue.hpp>
#include <gemmery/export.hpp>

namespace gemmery::epilogue {

// What a functor is made for. `compute` is float32, or float64 for accumulators of float64 or
// integers. Programs over those run in float64, and a functor that computes in float32 rounds each
// step to float32 there.
struct FunctorTypes {
  DType out = DType::float32;
  int count = 1;  // elements of out to an access: a power of two of at most 16 bytes
  DType accumulator = DType::float32;
  DType compute = DType::float32;
  bool reads_c = true;  // false stands for beta == 0: C is not read, so that its NaNs stay out
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

// Operands of each: alpha and, where C is read, C and beta. Each throws Error for types that it is
// not made for: (unsupported) another compute type, (invalid_argument) a count that is no width of
// an access.

// D = fma(alpha, accum, beta * C), rounded to out; integers saturate. Something else may stand in
// the accumulator's place, here and below: the sum of accumulators that were stored.
GEMMERY_API Program linear_combination(const FunctorTypes& types,
                                       const Expression& accumulated = accum());
// The same, held between the least and the largest finite number of out before it is rounded.
GEMMERY_API Program linear_combination_clamp(const FunctorTypes& types,
                                             const Expression& accumulated = accum());
// linear_combination_clamp for int32 accumulators, in float32, to 8-bit integers, for any K.
GEMMERY_API Program fast_linear_combination_clamp(DType out, int count, bool reads_c = true,
                                                  const Expression& accumulated = accum());
// D = activation(fma(alpha, accum, beta * C))
GEMMERY_API Program linear_combination_generic(Activation activation, const FunctorTypes& types,
                                               const Expression& accumulated = accum());

}  // namespace gemmery::epilogue
