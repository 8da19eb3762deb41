// SPDX-License-Identifier: Apache-2.0
// Convolution problems by oneDNN: which fit, how operands are presented.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/status.hpp>

namespace gemmery::host {

// The complete test, except that of types: geometry, strides, and whether oneDNN has an
// implementation other than its reference.
Status onednn_serves_convolution(const GemmProblem& problem);

// Float sums accumulate in float32, int8 sums exactly in int32. Operands that are not packed, or of
// a type that oneDNN does not multiply, are copied first; filters are reordered at each call. The
// epilogue is ours. Throws Error: unsupported, unavailable.
void run_onednn_convolution(const GemmArguments& arguments);

}  // namespace gemmery::host
