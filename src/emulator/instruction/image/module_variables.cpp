// SPDX-License-Identifier: Apache-2.0
// Global and constant variables of a module: allocates them and writes their initialisers.
#include <cstring>

#include <gemmery/error.hpp>

#include "emulator/instruction/image/build_image.hpp"
#include "emulator/instruction/image/function_address.hpp"

namespace gemmery::emulator {
namespace {

bool has_storage(const Variable& variable) noexcept {
  return !variable.is_extern &&
         (variable.space == Space::global || variable.space == Space::constant);
}

std::uint64_t memory_bytes(const Variable& variable) noexcept {
  return variable.bytes == 0 ? 1 : variable.bytes;
}

std::uint64_t require_place(const Variable& variable, std::uint64_t address) {
  if (address == 0)
    throw Error({.kind = ErrorKind::out_of_memory,
                 .operand = variable.name,
                 .got = std::to_string(variable.bytes) + " bytes of a module's variable"});
  return address;
}

std::uint64_t allocate(const Variable& variable, GlobalMemory& memory) {
  return require_place(variable, memory.allocate(memory_bytes(variable)));
}

std::uint64_t address_value(const Program& program, const Variable& variable,
                            const Variable::AddressOf& what, const ModuleVariables& placed) {
  if (const Function* const function = program.find_function(what.variable))
    return address_of_function(program, *function);
  const auto found = placed.addresses.find(what.variable);
  if (found == placed.addresses.end())
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = variable.name,
                 .expected = "addresses of global and constant variables to begin with",
                 .got = what.variable});
  return found->second + static_cast<std::uint64_t>(what.offset);
}

void initialise(const Program& program, const Variable& variable, const ModuleVariables& placed,
                GlobalMemory& memory) {
  const std::uint64_t at = placed.addresses.find(variable.name)->second;
  std::vector<std::byte> bytes = variable.initial;
  for (const Variable::AddressOf& address : variable.addresses) {
    const std::uint64_t value = address_value(program, variable, address, placed);
    std::memcpy(bytes.data() + address.at, &value, sizeof value);
  }
  const bool is_done = memory.fill(at, 0, variable.bytes) &&
                       (bytes.empty() || memory.copy_in(at, bytes.data(), bytes.size()));
  if (!is_done)
    throw Error({.kind = ErrorKind::out_of_memory, .operand = variable.name, .got = "no memory"});
}

}  // namespace

ModuleVariables place_variables(const Program& program, GlobalMemory& memory,
                                const ModuleVariables& managed) {
  ModuleVariables placed = managed;
  for (const Variable& variable : program.variables)
    if (has_storage(variable) && !variable.is_managed)
      placed.addresses[variable.name] = allocate(variable, memory);
  for (const Variable& variable : program.variables)
    if (has_storage(variable) && !variable.is_managed)
      initialise(program, variable, placed, memory);
  return placed;
}

ModuleVariables place_managed_variables(const Program& program, GlobalMemory& host_memory) {
  ModuleVariables placed;
  for (const Variable& variable : program.variables) {
    if (!has_storage(variable) || !variable.is_managed) continue;
    placed.addresses[variable.name] =
        require_place(variable, host_memory.allocate_mapped(memory_bytes(variable)));
  }
  for (const Variable& variable : program.variables)
    if (has_storage(variable) && variable.is_managed)
      initialise(program, variable, placed, host_memory);
  return placed;
}

}  // namespace gemmery::emulator
