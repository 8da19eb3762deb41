// SPDX-License-Identifier: Apache-2.0
// Floating-point products with elements of up to 32 bits.
#pragma once

#include "emulator/arithmetic/tensor_core.hpp"

namespace gemmery::emulator::tensor_core {

// Adds all products and C in one sum.
void multiply_floats(const MatrixProduct& product);

// 8-bit floats of mma.sync: MatrixProduct::unpacks_to_f16.
void multiply_unpacked(const MatrixProduct& product);

}  // namespace gemmery::emulator::tensor_core
