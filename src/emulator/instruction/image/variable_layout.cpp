// SPDX-License-Identifier: Apache-2.0
// Places variables in sequence, each with its alignment.
#include "emulator/instruction/image/variable_layout.hpp"

#include <algorithm>
#include <set>

#include <gemmery/error.hpp>

#include "emulator/memory/address.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint64_t max_local_bytes = 512 * 1024;           // per thread, on all devices
constexpr std::uint32_t call_stack_bytes = 16 * 1024;           // per thread
constexpr std::uint64_t frame_alignment = 16;                   // the largest of a local array
constexpr std::uint64_t max_shared_bytes = shared_offset_mask;  // the range of an address
constexpr std::uint64_t max_parameter_bytes = 32764;            // sm_70 and up, PTX ISA 8.1

std::uint64_t align_up(std::uint64_t offset, std::uint64_t alignment) noexcept {
  return (offset + alignment - 1) / alignment * alignment;
}

std::uint64_t place_behind(std::uint64_t& end, const Variable& variable) noexcept {
  const std::uint64_t begin = align_up(end, std::max(variable.alignment, 1u));
  end = begin + variable.bytes;
  return begin;
}

void require_fit(std::uint64_t bytes, std::uint64_t limit, const char* what) {
  if (bytes <= limit) return;
  throw Error({.kind = ErrorKind::unsupported,
               .operand = what,
               .expected = "at most " + std::to_string(limit) + " bytes",
               .got = std::to_string(bytes)});
}

void collect_symbols(const Operand& operand, std::set<std::string_view>& found) {
  if (!operand.text.empty()) found.insert(operand.text);
  for (const Operand& item : operand.items) collect_symbols(item, found);
}

std::set<std::string_view> mentioned_symbols(const std::vector<const Function*>& functions) {
  std::set<std::string_view> found;
  for (const Function* const function : functions)
    for (const Instruction& instruction : function->code)
      for (const Operand& operand : instruction.operands) collect_symbols(operand, found);
  return found;
}

}  // namespace

VariableLayout::VariableLayout(const Program& program, const CallGraph& graph,
                               const ModuleVariables& module_variables, KernelImage& image) {
  for (const auto& [function, cycle] : graph.cycle_of) frame_end_[function] = 0;
  place_parameters(*graph.functions.front(), image);
  place_module_variables(program, module_variables, graph.functions);
  for (const Function* const function : graph.functions) place_own_variables(*function);
  require_fit(shared_end_, max_shared_bytes, "static shared memory");
  require_fit(local_end_, max_local_bytes, "local memory of a thread");
  const std::uint64_t dynamic_begin =
      align_up(shared_reserved_bytes + shared_end_, dynamic_alignment_);
  for (const Key& key : dynamic_) places_[key] = {Space::shared, dynamic_begin};
  image.static_shared_bytes = static_cast<std::uint32_t>(shared_end_);
  image.dynamic_shared_alignment = dynamic_alignment_;
  image.call_stack_begin = static_cast<std::uint32_t>(align_up(local_end_, frame_alignment));
  image.local_bytes = image.call_stack_begin;
  const auto has_arrays = [](const auto& frame) { return frame.second != 0; };
  if (std::ranges::any_of(frame_end_, has_arrays)) image.local_bytes += call_stack_bytes;
}

void VariableLayout::place_parameters(const Function& entry, KernelImage& image) {
  std::uint64_t end = 0;
  for (const Variable& parameter : entry.parameters) {
    const std::uint64_t offset = place_behind(end, parameter);
    places_[{&entry, parameter.name}] = {Space::param, offset};
    require_fit(end, max_parameter_bytes, "kernel parameters");
    image.parameter_offset.push_back(static_cast<std::uint32_t>(offset));
    image.parameter_size.push_back(static_cast<std::uint32_t>(parameter.bytes));
  }
  image.parameter_bytes = static_cast<std::uint32_t>(end);
}

// Only variables that the entry mentions: the module's other kernels have shared memory of their
// own.
void VariableLayout::place_module_variables(const Program& program,
                                            const ModuleVariables& module_variables,
                                            const std::vector<const Function*>& functions) {
  const std::set<std::string_view> mentioned = mentioned_symbols(functions);
  for (const Variable& variable : program.variables) {
    if (!mentioned.contains(variable.name)) continue;
    if (variable.space == Space::shared) {
      place_shared(nullptr, variable);
      continue;
    }
    const auto address = module_variables.addresses.find(variable.name);
    if (address != module_variables.addresses.end())
      places_[{nullptr, variable.name}] = {variable.space, address->second};
  }
}

void VariableLayout::place_own_variables(const Function& function) {
  if (!function.is_entry)
    for (const auto* list : {&function.parameters, &function.results})
      for (const Variable& variable : *list) place_local(function, variable, local_end_);
  const auto frame = frame_end_.find(&function);
  for (const Variable& variable : function.variables) {
    if (variable.space == Space::shared) {
      place_shared(&function, variable);
    } else if (variable.space == Space::local && frame != frame_end_.end()) {
      place_local(function, variable, frame->second);
    } else if (variable.space == Space::local || variable.space == Space::param) {
      place_local(function, variable, local_end_);
    } else {
      throw Error({.kind = ErrorKind::unsupported,
                   .operand = function.name,
                   .expected = "variables of a function in .shared, .local or .param",
                   .got = variable.name});
    }
  }
}

void VariableLayout::place_local(const Function& function, const Variable& variable,
                                 std::uint64_t& end) {
  require_fit(variable.bytes, max_local_bytes, "a local variable");
  places_[{&function, variable.name}] = {Space::local, place_behind(end, variable)};
}

std::uint32_t VariableLayout::array_bytes(const Function& function) const {
  return static_cast<std::uint32_t>(align_up(frame_end_.at(&function), frame_alignment));
}

void VariableLayout::place_shared(const Function* function, const Variable& variable) {
  const Key key{function, variable.name};
  if (variable.bytes == 0) {
    dynamic_alignment_ = std::max(dynamic_alignment_, variable.alignment);
    dynamic_.push_back(key);
    return;
  }
  require_fit(variable.bytes, max_shared_bytes, "a shared variable");
  places_[key] = {Space::shared, shared_reserved_bytes + place_behind(shared_end_, variable)};
}

std::optional<VariableLayout::Place> VariableLayout::find(const Function& function,
                                                          std::string_view name) const {
  auto found = places_.find({&function, name});
  if (found == places_.end()) found = places_.find({nullptr, name});
  if (found == places_.end()) return std::nullopt;
  return found->second;
}

FunctionPlace::Block VariableLayout::local_block(const Function& function,
                                                 const Variable& variable) const {
  return {static_cast<std::uint32_t>(places_.at({&function, variable.name}).address),
          static_cast<std::uint32_t>(variable.bytes)};
}

}  // namespace gemmery::emulator
