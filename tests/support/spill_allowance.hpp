// SPDX-License-Identifier: Apache-2.0
// The spills that a kernel may have.
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/target.hpp>

namespace gemmery::tests {

// In bytes, stores and loads together; 0 except for sm80's 8-bit floats from Hopper to sm_110.
// These targets convert 8-bit floats before they multiply them, which takes registers that large
// tiles do not have; 20 to 300 bytes spilled. They are to get families of their own for these
// types.
inline int allowed_spills(const Kernel& kernel, Target target) {
  const DType a = kernel.operands().a.dtype;
  const bool is_float8 = bit_width(a) == 8 && is_floating(a);
  const bool widens = target.architecture >= 90 && target.architecture < 120;
  return kernel.family().name() == "sm80" && is_float8 && widens ? 320 : 0;
}

}  // namespace gemmery::tests
