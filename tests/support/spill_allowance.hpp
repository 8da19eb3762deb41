// SPDX-License-Identifier: Apache-2.0
// What a kernel may spill.
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/target.hpp>

namespace gemmery::tests {

// In bytes, stores and loads together; 0 but for sm80's 8-bit floats from Hopper to sm_110. These
// targets widen 8-bit floats before they multiply them, which takes registers that large tiles do
// not have; what that spills was 20 to 300 bytes. They are to have families of their own for these
// types.
inline int allowed_spills(const Kernel& kernel, Target target) {
  const DType a = kernel.operands().a.dtype;
  const bool is_float8 = bit_width(a) == 8 && is_floating(a);
  const bool widens = target.architecture >= 90 && target.architecture < 120;
  return kernel.family().name() == "sm80" && is_float8 && widens ? 320 : 0;
}

}  // namespace gemmery::tests
