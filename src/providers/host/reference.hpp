// SPDX-License-Identifier: Apache-2.0
// The exact reference: sums far better than any kernel's, one rounding at the end. It is a kernel
// of its own, and what the oracle (oracle.hpp) holds others against.
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
  std::vector<double> low;  // empty unless an operand is float64; then the sum is high + low (Dot2)
  std::vector<double> magnitude;  // sum over k of |a|·|b|, where asked for

  DoubleDouble at(std::int64_t index) const {
    const auto i = static_cast<std::size_t>(index);
    return {high[i], low.empty() ? 0 : low[i]};
  }
};

// Sums over k of A·B for matrix `batch`:
//   float64 operands      compensated: error at most 2^-105·|sum| + (k·2^-53)²·magnitude, and the
//   rounding of high + low narrower floats       in float64, every product exact: error at most
//   k·2^-53·magnitude int8, uint8           exact modulo 2^32, as an int32 (hardware wraps); with
//   Math::saturate the exact sum saturates instead
// With alpha = 0 the operands are not read and every sum is 0. `magnitudes`: what a magnitude is,
// where any are asked for.
ExactSums exact_sums(const GemmArguments& arguments, std::int64_t batch,
                     PackedValue magnitudes = PackedValue::itself);

// alpha and beta as the epilogue sees them: in its compute type.
struct EpilogueScalars {
  double alpha;
  double beta;
};
EpilogueScalars epilogue_scalars(const GemmArguments& arguments);

// out = alpha · sum + beta · C in double-double, each element rounded once; C may be out. Or what a
// program makes of the sums in double, where its operations round; its constants, casts and what it
// reads are those of the type that it computes in.
void run_reference(const GemmArguments& arguments);

}  // namespace gemmery::host
