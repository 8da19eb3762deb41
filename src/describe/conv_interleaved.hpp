// SPDX-License-Identifier: Apache-2.0
// Interleaved operands of a convolution: copied to NHWC and KRSC before it, D copied back after it.
// The caller's memory is not changed.
#pragma once

#include <gemmery/describe_conv.hpp>

#include <array>
#include <vector>

#include "describe/steps.hpp"

namespace gemmery::describe {

// An operand of 8-bit elements in both layouts. Extents are (N, H, W, C) of TensorNC32HW32, or
// (K, R, S, C) of TensorC32RSK32.
struct InterleavedTensor {
  Layout layout;
  const void* interleaved;
  const void* plain;
  DType dtype;
  std::array<std::int64_t, 4> extents;
  Device device;
};

std::vector<Step> to_plain(const InterleavedTensor& tensor);
std::vector<Step> to_interleaved(const InterleavedTensor& tensor);

}  // namespace gemmery::describe
