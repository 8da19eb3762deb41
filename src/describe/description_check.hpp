// SPDX-License-Identifier: Apache-2.0
// Checks that the fields of a description are consistent, without a compiler.
#pragma once

#include <gemmery/describe.hpp>

namespace gemmery::describe {

// Throws Error naming the first field that is inconsistent. Tile shapes are checked when the kernel
// is made.
void check_description(const GemmDescription& description);

// Checks one operand by itself.
void check_alignment(std::string_view operand, const TensorDescription& tensor);

// True of the swizzling functors of a dgrad with a stride.
constexpr bool is_of_strided_dgrad(SwizzlingFunctor swizzle) noexcept {
  return swizzle >= SwizzlingFunctor::StridedDgradIdentitySwizzle1;
}

}  // namespace gemmery::describe
