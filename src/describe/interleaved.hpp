// SPDX-License-Identifier: Apache-2.0
// Interleaved operands: copied into rows of neighbours of k before the product, and D out of them
// behind it. The caller's memory stays as it is.
#pragma once

#include <gemmery/buffer.hpp>
#include <gemmery/describe.hpp>

#include <vector>

#include "describe/steps.hpp"

namespace gemmery::describe {

// The interleaved operand lies in `lines` lines of `length` neighbours; plain memory of the same
// elements is `plain`, packed.
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
