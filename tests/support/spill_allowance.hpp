// SPDX-License-Identifier: Apache-2.0
// The spills that a kernel may have.
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/target.hpp>

namespace gemmery::tests {

// In bytes, stores and loads together. 0 except for 8-bit floats of sm80 from Hopper to sm_110:
// these targets convert 8-bit floats before multiplying them, for which large tiles lack registers;
// 20 to 300 bytes are spilled.
inline int allowed_spills(const Kernel& kernel, Target target) {
  if (kernel.family().name() != "sm80") return 0;
  const OperandRules& rules = kernel.operands();
  const DType a = rules.a.dtype;
  const bool is_float8 = bit_width(a) == 8 && is_floating(a);
  const bool widens = target.architecture >= 90 && target.architecture < 120;
  return is_float8 && widens ? 320 : 0;
}

}  // namespace gemmery::tests
