// SPDX-License-Identifier: Apache-2.0
// Shapes of operands: matrices as batches of one, extents that must agree, broadcasts of C.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <gemmery/tensor.hpp>

namespace gemmery::operation {

// Kernels use 32-bit indices within an extent and 64-bit addresses.
inline constexpr std::int64_t largest_extent = (std::int64_t{1} << 31) - 1;

struct NamedOperand {
  std::string_view name;
  const Tensor& tensor;
};

std::string shape_text(const Tensor& tensor);

// Throws Error (unsupported) for an extent that is too large for kernels.
void check_extents(const NamedOperand& operand);

// A view of rank 3. Throws Error for a rank other than 2 and 3; `form` says what was expected.
Tensor as_batch(const NamedOperand& operand, std::string_view form);

// Throws Error unless `got` is `expected`, which `owner` has.
void require_extent(std::string_view operand, std::string_view what, std::int64_t expected,
                    std::string_view owner, std::int64_t got);

// The same matrix for every batch.
Tensor broadcast_batch(const NamedOperand& operand, std::int64_t batches);

// C in the shape of `domain`, by NumPy's rule.
Tensor broadcast_c(const Tensor& c, const Tensor& domain);

}  // namespace gemmery::operation
