// SPDX-License-Identifier: Apache-2.0
// Predicates first, then the vectors, in the order of declaration.
#include "emulator/instruction/image/register_layout.hpp"

#include <algorithm>

#include <gemmery/error.hpp>

namespace gemmery::emulator {
namespace {

void mark_used(const Operand& operand, std::vector<bool>& used) {
  if (operand.reg != no_register) used[operand.reg] = true;
  for (const Operand& item : operand.items) mark_used(item, used);
}

std::vector<bool> used_registers(const Function& function) {
  std::vector<bool> used(function.registers.size());
  for (const Instruction& instruction : function.code) {
    if (instruction.guard != no_register) used[instruction.guard] = true;
    for (const Operand& operand : instruction.operands) mark_used(operand, used);
  }
  return used;
}

}  // namespace

std::uint32_t lane_bytes_of(ScalarType type) noexcept {
  return static_cast<std::uint32_t>(std::max(bytes_of(type), 4));
}

RegisterLayout::RegisterLayout(const CallGraph& graph) {
  predicate_sink_ = add("_", ScalarType::pred, true);
  value_sink_ = add("_", ScalarType::b128, true);
  for (const Function* const function : graph.functions) {
    first_[function] = static_cast<RegisterIndex>(name_.size());
    const std::vector<bool> used = used_registers(*function);
    for (std::size_t reg = 0; reg < used.size(); ++reg)
      add(function->registers[reg].name, function->registers[reg].type, used[reg]);
    if (!function->is_entry)
      return_address_[function] = add("return address of " + function->name, ScalarType::b32, true);
    if (graph.cycle_of.contains(function)) add_array_addresses(*function);
    end_[function] = static_cast<RegisterIndex>(name_.size());
  }
  assign_offsets();
}

RegisterIndex RegisterLayout::add(std::string name, ScalarType type, bool is_used) {
  name_.push_back(std::move(name));
  type_.push_back(type);
  is_used_.push_back(is_used);
  return static_cast<RegisterIndex>(name_.size() - 1);
}

void RegisterLayout::add_array_addresses(const Function& function) {
  for (const Variable& variable : function.variables)
    if (variable.space == Space::local)
      array_address_[{&function, variable.name}] =
          add("address of " + variable.name, ScalarType::b64, true);
}

RegisterIndex RegisterLayout::array_address(const Function& function, std::string_view name) const {
  const auto found = array_address_.find({&function, name});
  return found == array_address_.end() ? no_register : found->second;
}

std::vector<RegisterIndex> RegisterLayout::registers_of(const Function& function) const {
  std::vector<RegisterIndex> registers;
  for (RegisterIndex reg = first_.at(&function); reg < end_.at(&function); ++reg)
    if (is_used_[reg]) registers.push_back(reg);
  return registers;
}

void RegisterLayout::assign_offsets() {
  std::uint64_t end = 0;
  offset_.assign(name_.size(), 0);
  for (std::size_t reg = 0; reg < name_.size(); ++reg) {
    if (!is_used_[reg] || type_[reg] != ScalarType::pred) continue;
    offset_[reg] = static_cast<std::uint32_t>(end);
    end += sizeof(LaneMask);
  }
  end = (end + lane_vector_alignment - 1) / lane_vector_alignment * lane_vector_alignment;
  for (std::size_t reg = 0; reg < name_.size(); ++reg) {
    if (!is_used_[reg] || type_[reg] == ScalarType::pred) continue;
    offset_[reg] = static_cast<std::uint32_t>(end);
    end += std::uint64_t{lane_bytes_of(type_[reg])} * lanes_per_warp;
  }
  bytes_ = static_cast<std::uint32_t>(end);  // at most 2^18 registers of 512 bytes
}

void RegisterLayout::move_into(KernelImage& image) && {
  image.register_count = static_cast<std::uint32_t>(name_.size());
  image.register_bytes = bytes_;
  image.register_offset = std::move(offset_);
  image.register_type = std::move(type_);
  image.register_name = std::move(name_);
}

}  // namespace gemmery::emulator
