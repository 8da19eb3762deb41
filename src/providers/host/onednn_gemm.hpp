// SPDX-License-Identifier: Apache-2.0
// GEMM problems by oneDNN: which fit, how operands are presented, and what our own loops do.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/status.hpp>

namespace gemmery::host {

// True if problems of these types are served, whatever the shape; `run_onednn` may still meet a
// shape that it refuses.
Status onednn_serves_types(DType a, DType b, DType accumulator, Math math);

// The complete test: availability, types, strides.
Status onednn_serves(const GemmProblem& problem);

// Float sums accumulate in float32, int8 sums exactly in int32. float16 and the 8-bit floats are
// converted first (to float32, or to bfloat16 if both operands are exact in it). alpha, beta and
// conversions that oneDNN lacks are a pass of ours over its results. Throws Error: unsupported,
// unavailable.
void run_onednn(const GemmArguments& arguments);

}  // namespace gemmery::host
