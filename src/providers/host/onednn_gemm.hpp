// SPDX-License-Identifier: Apache-2.0
// GEMM problems by oneDNN: which fit, how operands are presented, and what is left to our own
// loops.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/status.hpp>

namespace gemmery::host {

// Whether a problem of these types is served, whatever its shape; `run_onednn` may still find a
// shape that it refuses.
Status onednn_serves_types(DType a, DType b, DType accumulator, Math math);

// The whole question: availability, types, strides.
Status onednn_serves(const GemmProblem& problem);

// Float sums in float32, int8 sums exact in int32. float16 and the 8-bit floats are converted first
// (to float32, or to bfloat16 where both operands are exact in it). alpha, beta and conversions
// that oneDNN has not are one pass of ours over its sums. Throws Error: unsupported, unavailable.
void run_onednn(const GemmArguments& arguments);

}  // namespace gemmery::host
