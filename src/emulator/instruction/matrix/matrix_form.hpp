// SPDX-License-Identifier: Apache-2.0
// Modifiers that the matrix instructions share: shapes and element types.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "emulator/arithmetic/tensor_core.hpp"
#include "emulator/instruction/form.hpp"

namespace gemmery::emulator {

struct MatrixShape {
  std::uint32_t m = 0, n = 0, k = 0;
};

// "m64n256k16".
std::optional<MatrixShape> find_matrix_shape(std::string_view word) noexcept;
// Takes the shape of an instruction; refuses the form if there is none.
MatrixShape take_matrix_shape(Form& form);

std::optional<MatrixElement> find_matrix_element(ScalarType type) noexcept;
std::optional<Accumulator> find_accumulator(ScalarType type) noexcept;
std::uint32_t bits_of(MatrixElement element) noexcept;
bool is_narrow_float(MatrixElement element) noexcept;  // of 8 bits

// The types .d.a.b (wgmma) or .d.a.b.c (mma, where c must equal d); refuses others.
struct MatrixTypes {
  Accumulator accumulator = Accumulator::f32;
  MatrixElement a = MatrixElement::f16, b = MatrixElement::f16;
};
MatrixTypes take_matrix_types(Form& form, bool names_c);

}  // namespace gemmery::emulator
