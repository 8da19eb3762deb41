// SPDX-License-Identifier: Apache-2.0
// The error that a kernel's declared arithmetic may cause: one table, from which every bound comes.
//
//   before the final rounding:
//     |x̂ − x| ≤ e = (2·u_in + (K+2)·u_acc)·|α|·(|A||B|) + 2·u_acc·|β||C|
//   after it:
//     |D̂ − D| ≤ e + u_out·(|D|+e) + η_out/2
//
// If sums have two levels, the products within a block of k and then the blocks by FADD
// (promoted 8-bit floats, split float32), the factor of the sum is not (K+2)·u_acc but
//     (min(K, widest block) + more)·u_acc + (K/narrowest block + 2)·u_block
// With split float32 the small products are added first: their sum is then below 2⁻⁶ of |A||B|, so
// 8 products of them cost less than two more steps.
//
// A vector that tensor cores add to the accumulators before an emitted epilogue
// (DeclaredMath::adds_vector) adds 2·u_acc·|vector| to e, as C does.
//
// Elements with scales or a zero point are rounded as they are decoded, once for each of them, and
// the factor of the sum gains (scales and zero points of A and B)·2⁻²⁴, or ·2⁻⁵³ with float64
// accumulators. |A| and |B| are those of decoded elements (panel_companions.hpp). Scales may also
// multiply the sums of a block of k: the product of the scales is rounded, and so is its product
// with the sum, which counts as the sum of blocks does.
//
// |A| and |B| count small elements as larger than they are if their error does not shrink with
// them, and elements that leave the range of the type that they are rounded to as infinite
// (`magnitude_of`).
//
// If C is wider than the epilogue's compute type (f64 or int32 in float32), its conversion adds
// 2⁻²⁴·|β||C| to e (oracle.cpp).
#pragma once

#include <cstdint>

#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>

#include "providers/host/pack.hpp"

namespace gemmery::host {

// The multiplying unit. Tensor cores align and truncate the products that they add; FMAs round each
// sum.
enum class Arithmetic : std::uint8_t { fma, tensor_core };

// A kernel's arithmetic, as it declares it.
struct DeclaredMath {
  DType a;
  DType b;
  DType accumulator;
  Math math = Math::native;
  Arithmetic arithmetic = Arithmetic::fma;
  bool adds_vector = false;  // the multiplying unit adds the vector that the program adds first
};

DeclaredMath declared_math(const OperandRules& rules, Arithmetic arithmetic = Arithmetic::fma,
                           bool adds_vector = false);

struct ErrorModel {
  double input_unit = 0;  // u_in: of each operand as it enters a product
  // u_acc: of each step of the sum and of the epilogue; 0 for exact integers
  double accumulator_unit = 0;
  // For sums in two levels.
  struct Blocks {
    double unit = 0;    // u_block, of each block's FADD; 0 if there is one level
    double widest = 0;  // products of k in a block
    double narrowest = 0;
    double more = 0;  // additional steps of the first level
  };
  Blocks blocks;
  double underflow = 0;        // absolute error of a product or sum too small for the accumulator
  double accumulator_max = 0;  // larger accumulators may overflow: no statement is made
  double compute_max = 0;      // the same for the epilogue

  // The factor of |α|·(|A||B|).
  double product_factor(std::int64_t k) const;
};

// The part of that factor for scales and zero points.
double decoding_factor(const GemmProblem& problem) noexcept;

ErrorModel error_model(const DeclaredMath& declared);

// The meaning of |A| and |B| above; `itself` if the sums are exact.
PackedValue magnitude_of(const DeclaredMath& declared) noexcept;

}  // namespace gemmery::host
