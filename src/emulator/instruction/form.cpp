// SPDX-License-Identifier: Apache-2.0
// Shared by decoders of ordinary instructions: reading modifiers and operands.
#include "emulator/instruction/form.hpp"

#include <cstdlib>

namespace gemmery::emulator {

bool Form::take(std::string_view word) noexcept {
  const auto& words = instruction_.modifiers;
  for (std::size_t index = 0; index < words.size() && index < 64; ++index)
    if (!is_taken(index) && words[index] == word) {
      mark(index);
      return true;
    }
  return false;
}

std::optional<std::size_t> Form::take_one_of(std::span<const std::string_view> words) noexcept {
  for (std::size_t index = 0; index < words.size(); ++index)
    if (take(words[index])) return index;
  return std::nullopt;
}

ScalarType Form::take_type() {
  const auto& words = instruction_.modifiers;
  for (std::size_t index = 0; index < words.size() && index < 64; ++index)
    if (!is_taken(index))
      if (const auto type = find_scalar_type(words[index])) {
        mark(index);
        return *type;
      }
  refuse("a type is missing");
}

std::optional<Rounding> Form::take_rounding() noexcept {
  if (take("rn")) return Rounding::nearest_even;
  if (take("rz")) return Rounding::toward_zero;
  if (take("rm")) return Rounding::down;
  if (take("rp")) return Rounding::up;
  return std::nullopt;
}

void Form::finish() {
  const auto& words = instruction_.modifiers;
  for (std::size_t index = 0; index < words.size(); ++index)
    if (index >= 64 || !is_taken(index)) refuse("." + words[index] + " is not known here");
}

void Form::refuse(std::string_view why) {
  context_.refuse(instruction_, why);
  std::abort();  // never reached: refuse throws, which g++ does not know of a virtual call
}

const Operand& Form::operand(std::size_t index) {
  if (index >= operand_count()) refuse("an operand is missing");
  return instruction_.operands[index];
}

void Form::expect_operands(std::size_t count) {
  if (operand_count() != count)
    refuse("it takes " + std::to_string(count) + " operands, " + std::to_string(operand_count()) +
           " are given");
}

void Form::assign(Execute execute, ScalarType destination,
                  std::initializer_list<ScalarType> sources) {
  finish();
  expect_operands(sources.size() + 1);
  operation_.execute = execute;
  add_destination(operand(0), destination);
  std::size_t index = 1;
  for (const ScalarType type : sources) add_source(operand(index++), type);
}

Execute find_handler(Form& form, ScalarType type, std::span<const TypedHandler> rows) {
  for (const TypedHandler& row : rows)
    if (row.type == type) return row.execute;
  form.refuse("." + std::string(name(type)) + " is not a type of it here");
}

ScalarType untyped(int bits) noexcept {
  switch (bits) {
    case 8:
      return ScalarType::b8;
    case 16:
      return ScalarType::b16;
    case 32:
      return ScalarType::b32;
    case 64:
      return ScalarType::b64;
    default:
      return ScalarType::b128;
  }
}

}  // namespace gemmery::emulator
