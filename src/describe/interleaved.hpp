// SPDX-License-Identifier: Apache-2.0
// Interleaved operands: A and B (and C) are copied to plain memory before the product, and D is
// copied back after it. The caller's memory is not changed.
#pragma once

#include <gemmery/buffer.hpp>
#include <gemmery/describe.hpp>

#include <vector>

#include "describe/steps.hpp"

namespace gemmery::describe {

// The interleaved operand has `lines` lines of `length` elements each; `plain` is packed memory of
// the same elements.
struct InterleavedOperand {
  const void* interleaved;
  const void* plain;
  DType dtype;
  std::int64_t lines;
  std::int64_t length;
  Device device;
};

Step into_lines(const InterleavedOperand& operand);
Step out_of_lines(const InterleavedOperand& operand);

}  // namespace gemmery::describe
