// SPDX-License-Identifier: Apache-2.0
// The exact reference: far more accurate sums than any kernel's, and one rounding at the end. It is
// a kernel itself, and the oracle (oracle.hpp) checks other kernels against it.
#pragma once

#include <cstdint>
#include <vector>

#include <gemmery/arguments.hpp>

#include "providers/host/number.hpp"
#include "providers/host/pack.hpp"

namespace gemmery::host {

// The sums of one matrix of a batch, row major and packed: element (i, j) is at i·n + j.
struct ExactSums {
  std::vector<double> high;
  std::vector<double> low;  // empty unless sums are compensated; then the sum is high + low (Dot2)
  std::vector<double> magnitude;  // sum over k of |a|·|b|, if requested
  // With programs of operands, if magnitudes are requested: the largest distance of a kernel's sum
  // that its elements alone make, sum over k of d(a)·|b| + |a|·d(b).
  std::vector<double> deviation;
  // For a convolution, if needed: not 0 if a kernel that multiplies zeros in padding gets NaN. The
  // sums are those of the definition, without these terms.
  std::vector<std::uint8_t> may_be_nan;

  DoubleDouble at(std::int64_t index) const {
    const auto i = static_cast<std::size_t>(index);
    return {high[i], low.empty() ? 0 : low[i]};
  }
};

// True if products may not be exact in float64: of float64 or scaled operands.
bool is_compensated(const GemmProblem& problem) noexcept;

// Sums over k of A·B for matrix `batch`:
//
//   float64, scaled    compensated: error at most 2^-105·|sum| + (k·2^-53)²·magnitude, and the
//                      rounding of high + low; scaled elements are rounded to float64 before,
//                      unless they have at most 53 bits (one scale of an operand of 24 bits);
//                      elements of a program are those that it gives in float64
//   narrower floats    in float64, every product exact: error at most k·2^-53·magnitude
//   int8, uint8        exact modulo 2^32, as an int32 (hardware wraps); with Math::saturate the
//                      exact sum saturates instead
//
// With alpha = 0 the operands are not read and every sum is 0. `magnitudes` selects the magnitude,
// if any is requested.
ExactSums exact_sums(const GemmArguments& arguments, std::int64_t batch,
                     PackedValue magnitudes = PackedValue::itself);

// alpha and beta as the epilogue sees them: in its compute type.
struct EpilogueScalars {
  double alpha;
  double beta;
};
EpilogueScalars epilogue_scalars(const GemmArguments& arguments);

// out = alpha · accum + beta · C in double-double, each element rounded once; C may be out. With a
// program: its results in double, where its operations round; its constants, casts and inputs are
// those of its compute type.
void run_reference(const GemmArguments& arguments);

}  // namespace gemmery::host
