// SPDX-License-Identifier: Apache-2.0
#include "emulator/instruction/matrix/matrix_form.hpp"

#include <charconv>
#include <string>

namespace gemmery::emulator {

std::optional<MatrixShape> find_matrix_shape(std::string_view word) noexcept {
  MatrixShape shape;
  const char* at = word.data();
  const char* const end = at + word.size();
  for (const auto& [letter, extent] :
       {std::pair{'m', &shape.m}, std::pair{'n', &shape.n}, std::pair{'k', &shape.k}}) {
    if (at == end || *at != letter) return std::nullopt;
    const auto [rest, error] = std::from_chars(at + 1, end, *extent);
    if (error != std::errc{}) return std::nullopt;
    at = rest;
  }
  return at == end ? std::optional(shape) : std::nullopt;
}

MatrixShape take_matrix_shape(Form& form) {
  for (const std::string& word : form.instruction().modifiers)
    if (const auto shape = find_matrix_shape(word)) {
      form.take(word);
      return *shape;
    }
  form.refuse("a shape (.m16n8k16 or the like) is missing");
}

std::optional<MatrixElement> find_matrix_element(ScalarType type) noexcept {
  switch (type) {
    case ScalarType::f16:
      return MatrixElement::f16;
    case ScalarType::bf16:
      return MatrixElement::bf16;
    case ScalarType::tf32:
      return MatrixElement::tf32;
    case ScalarType::e4m3:
      return MatrixElement::e4m3;
    case ScalarType::e5m2:
      return MatrixElement::e5m2;
    case ScalarType::s8:
      return MatrixElement::s8;
    case ScalarType::u8:
      return MatrixElement::u8;
    case ScalarType::s4:
      return MatrixElement::s4;
    case ScalarType::u4:
      return MatrixElement::u4;
    case ScalarType::b1:
      return MatrixElement::b1;
    case ScalarType::f64:
      return MatrixElement::f64;
    default:
      return std::nullopt;
  }
}

std::optional<Accumulator> find_accumulator(ScalarType type) noexcept {
  switch (type) {
    case ScalarType::f32:
      return Accumulator::f32;
    case ScalarType::f16:
      return Accumulator::f16;
    case ScalarType::s32:
      return Accumulator::s32;
    case ScalarType::f64:
      return Accumulator::f64;
    default:
      return std::nullopt;
  }
}

bool is_narrow_float(MatrixElement element) noexcept {
  return element == MatrixElement::e4m3 || element == MatrixElement::e5m2;
}
std::uint32_t bits_of(MatrixElement element) noexcept {
  switch (element) {
    case MatrixElement::f16:
    case MatrixElement::bf16:
      return 16;
    case MatrixElement::tf32:
      return 32;
    case MatrixElement::s4:
    case MatrixElement::u4:
      return 4;
    case MatrixElement::b1:
      return 1;
    case MatrixElement::f64:
      return 64;
    default:
      return 8;
  }
}

namespace {

bool is_integer(MatrixElement element) noexcept {
  return element == MatrixElement::s8 || element == MatrixElement::u8 ||
         element == MatrixElement::s4 || element == MatrixElement::u4 ||
         element == MatrixElement::b1;
}

// Valid combinations of types (PTX ISA, "Data-types for mma"; the same for wgmma).
bool do_match(const MatrixTypes& types) noexcept {
  const MatrixElement a = types.a, b = types.b;
  if (is_integer(a) || is_integer(b))
    return is_integer(a) && is_integer(b) && bits_of(a) == bits_of(b) &&
           types.accumulator == Accumulator::s32;
  if (is_narrow_float(a) != is_narrow_float(b)) return false;
  if (!is_narrow_float(a) && a != b) return false;
  if (a == MatrixElement::f64) return types.accumulator == Accumulator::f64;
  if (a == MatrixElement::bf16 || a == MatrixElement::tf32)
    return types.accumulator == Accumulator::f32;
  return types.accumulator == Accumulator::f32 || types.accumulator == Accumulator::f16;
}

}  // namespace

MatrixTypes take_matrix_types(Form& form, bool names_c) {
  const auto d = find_accumulator(form.take_type());
  const auto a = find_matrix_element(form.take_type());
  const auto b = find_matrix_element(form.take_type());
  if (!d || !a || !b) form.refuse("these types are not known here");
  const MatrixTypes types{*d, *a, *b};
  if (!do_match(types)) form.refuse("these types do not go together");
  if (names_c && find_accumulator(form.take_type()) != d)
    form.refuse("C of another type than D is not known here");
  return types;
}

}  // namespace gemmery::emulator
