// SPDX-License-Identifier: Apache-2.0
// Where the variables and parameters of an entry and its functions lie.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "emulator/instruction/decode.hpp"
#include "emulator/instruction/image/call_graph.hpp"
#include "emulator/machine/kernel_image.hpp"

namespace gemmery::emulator {

class VariableLayout {
 public:
  // Fills in the image's parameters, shared bytes and local bytes.
  VariableLayout(const Program& program, const CallGraph& graph,
                 const ModuleVariables& module_variables, KernelImage& image);

  struct Place {
    Space space = Space::generic;
    std::uint64_t address = 0;
  };
  // nullopt if no variable has that name. The address of a local array of a function that may call
  // itself counts from the begin of its frame.
  std::optional<Place> find(const Function& function, std::string_view name) const;
  FunctionPlace::Block local_block(const Function& function, const Variable& variable) const;
  // Of all arrays of a function that may call itself.
  std::uint32_t array_bytes(const Function& function) const;

 private:
  using Key = std::pair<const Function*, std::string_view>;  // nullptr: the module
  void place_parameters(const Function& entry, KernelImage& image);
  void place_own_variables(const Function& function);
  void place_local(const Function& function, const Variable& variable, std::uint64_t& end);
  void place_shared(const Function* function, const Variable& variable);
  void place_module_variables(const Program& program, const ModuleVariables& module_variables,
                              const std::vector<const Function*>& functions);

  std::map<Key, Place> places_;
  std::vector<Key> dynamic_;  // extern shared arrays, placed after all others
  std::map<const Function*, std::uint64_t> frame_end_;  // of functions that may call themselves
  std::uint64_t local_end_ = 0;
  std::uint64_t shared_end_ = 0;
  std::uint32_t dynamic_alignment_ = 16;
};

}  // namespace gemmery::emulator
