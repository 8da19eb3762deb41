// SPDX-License-Identifier: Apache-2.0
// Products of integers, bits and f64, whose results do not depend on the rule in tensor_core.hpp.
#pragma once

#include "emulator/arithmetic/tensor_core.hpp"

namespace gemmery::emulator::tensor_core {

void multiply_integers(const MatrixProduct& product);
void multiply_bits(const MatrixProduct& product);
void multiply_f64(const MatrixProduct& product);

}  // namespace gemmery::emulator::tensor_core
