// SPDX-License-Identifier: Apache-2.0
// Copies between interleaved and plain memory, as elementwise kernels.
#include "describe/interleaved.hpp"

#include "describe/packed_operands.hpp"

namespace gemmery::describe {
namespace {

Step copy_step(const Tensor& destination, const Tensor& source) {
  return elementwise_step(destination, EpilogueArguments("D = source", {{"source", source}}));
}

Tensor interleaved_of(const InterleavedOperand& operand) {
  return interleaved_view(operand.interleaved, operand.dtype, operand.lines, operand.length,
                          operand.device);
}
Tensor lines_of(const InterleavedOperand& operand) {
  return line_view(operand.plain, operand.dtype, operand.lines, operand.length, operand.device);
}

}  // namespace

Step into_lines(const InterleavedOperand& operand) {
  return copy_step(lines_of(operand), interleaved_of(operand));
}

Step out_of_lines(const InterleavedOperand& operand) {
  return copy_step(interleaved_of(operand), lines_of(operand));
}

// In each group of 32: 8 * ((n % 8) / 2) + 2 * ((n % 32) / 8) + n % 2.
std::int64_t reordered_column(std::int64_t n) noexcept {
  return n / 32 * 32 + 8 * (n % 8 / 2) + 2 * (n % 32 / 8) + n % 2;
}

}  // namespace gemmery::describe
