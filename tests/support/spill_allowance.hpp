// SPDX-License-Identifier: Apache-2.0
// The spills that a kernel may have.
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/target.hpp>

namespace gemmery::tests {

// In bytes, stores and loads together; 0 except for two kinds of sm80's kernels. 8-bit floats from
// Hopper to sm_110: these targets convert them before they multiply them, which takes registers
// that large tiles do not have; 20 to 300 bytes spilled. They are to get families of their own for
// these types. Convolutions of bytes whose channels are no multiple of 4: a few designs spilled 8
// to 156 bytes for sm_120.
inline int allowed_spills(const Kernel& kernel, Target target) {
  if (kernel.family().name() != "sm80") return 0;
  const OperandRules& rules = kernel.operands();
  const DType a = rules.a.dtype;
  const bool is_float8 = bit_width(a) == 8 && is_floating(a);
  const bool widens = target.architecture >= 90 && target.architecture < 120;
  if (is_float8 && widens) return 320;
  // Convolutions copy operands of few bytes through registers, with the places of their pixels.
  const bool is_convolution = !kernel.metadata().design_value("convolution").empty();
  const bool has_few_bytes = rules.a.alignment < 4 || rules.b.alignment < 4;
  return is_convolution && bit_width(a) == 8 && has_few_bytes ? 320 : 0;
}

}  // namespace gemmery::tests
