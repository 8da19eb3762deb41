// SPDX-License-Identifier: Apache-2.0
// The general path of a tensor core's sum: exact for infinities, NaNs, subnormal results and all
// exponents.
#pragma once

#include <cstdint>

#include "emulator/arithmetic/tensor_core.hpp"

namespace gemmery::emulator::tensor_core {

// Where addends and results are truncated.
struct Rule {
  int places;         // F of tensor_core.hpp
  int result_places;  // the same for an f32 result
  Accumulator accumulator;
};

Rule rule_of(const MatrixProduct& product) noexcept;

// Returns the bits of an element of D, given the bits of its C.
std::uint32_t sum_plainly(const MatrixProduct& product, std::uint32_t row, std::uint32_t column,
                          std::uint32_t c_bits) noexcept;

}  // namespace gemmery::emulator::tensor_core
