// SPDX-License-Identifier: Apache-2.0
// Selects the arithmetic of a matrix product.
#include "emulator/arithmetic/tensor_core.hpp"

#include "emulator/arithmetic/tensor_core_exact.hpp"
#include "emulator/arithmetic/tensor_core_floats.hpp"

namespace gemmery::emulator {

void multiply(const MatrixProduct& product) {
  switch (product.a) {
    case MatrixElement::f64:
      return tensor_core::multiply_f64(product);
    case MatrixElement::b1:
      return tensor_core::multiply_bits(product);
    case MatrixElement::s8:
    case MatrixElement::u8:
    case MatrixElement::s4:
    case MatrixElement::u4:
      return tensor_core::multiply_integers(product);
    default:
      break;
  }
  if (product.unpacks_to_f16) return tensor_core::multiply_unpacked(product);
  tensor_core::multiply_floats(product);
}

}  // namespace gemmery::emulator
