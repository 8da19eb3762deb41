// SPDX-License-Identifier: Apache-2.0
// Products of integers, of bits and of f64, which have no order of addition of their own.
#pragma once

#include "emulator/arithmetic/tensor_core.hpp"

namespace gemmery::emulator::tensor_core {

void multiply_integers(const MatrixProduct& product);
void multiply_bits(const MatrixProduct& product);
void multiply_f64(const MatrixProduct& product);

}  // namespace gemmery::emulator::tensor_core
