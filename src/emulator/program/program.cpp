// SPDX-License-Identifier: Apache-2.0
// Queries on a parsed module.
#include "emulator/program/program.hpp"

#include <algorithm>

namespace gemmery::emulator {

bool Instruction::has(std::string_view modifier) const noexcept {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

std::string Instruction::full_opcode() const {
  std::string text = opcode;
  for (const std::string& modifier : modifiers) text.append(".").append(modifier);
  return text;
}

const Function* Program::find_function(std::string_view name) const noexcept {
  const auto found = std::find_if(functions.begin(), functions.end(),
                                  [&](const Function& function) { return function.name == name; });
  return found == functions.end() ? nullptr : &*found;
}

}  // namespace gemmery::emulator
