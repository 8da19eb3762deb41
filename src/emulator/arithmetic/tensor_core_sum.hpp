// SPDX-License-Identifier: Apache-2.0
// One sum of a tensor core, the plain way: exact for infinities, NaNs, subnormal results and all
// exponents.
#pragma once

#include <cstdint>

#include "emulator/arithmetic/tensor_core.hpp"

namespace gemmery::emulator::tensor_core {

// Where sums and results are cut off.
struct Rule {
  int places;         // F of tensor_core.hpp
  int result_places;  // of an f32 result
  Accumulator accumulator;
};

Rule rule_of(const MatrixProduct& product) noexcept;

// An element of D as its bits, of these bits of C.
std::uint32_t sum_plainly(const MatrixProduct& product, std::uint32_t row, std::uint32_t column,
                          std::uint32_t c_bits) noexcept;

}  // namespace gemmery::emulator::tensor_core
