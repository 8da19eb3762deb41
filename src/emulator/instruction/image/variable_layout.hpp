// SPDX-License-Identifier: Apache-2.0
// Where the variables and parameters of an entry and its functions lie.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "emulator/instruction/decode.hpp"
#include "emulator/machine/kernel_image.hpp"

namespace gemmery::emulator {

class VariableLayout {
 public:
  // Fills in the image's parameters, shared bytes and local bytes. `functions` begins with the
  // entry.
  VariableLayout(const Program& program, std::span<const Function* const> functions,
                 const ModuleVariables& module_variables, KernelImage& image);

  struct Place {
    Space space = Space::generic;
    std::uint64_t address = 0;
  };
  // nullopt if no variable has that name.
  std::optional<Place> find(const Function& function, std::string_view name) const;
  FunctionPlace::Block local_block(const Function& function, const Variable& variable) const;

 private:
  using Key = std::pair<const Function*, std::string_view>;  // nullptr: the module
  void place_parameters(const Function& entry, KernelImage& image);
  void place_own_variables(const Function& function);
  void place_local(const Function& function, const Variable& variable);
  void place_shared(const Function* function, const Variable& variable);
  void place_module_variables(const Program& program, const ModuleVariables& module_variables,
                              std::span<const Function* const> functions);

  std::map<Key, Place> places_;
  std::vector<Key> dynamic_;  // extern shared arrays, placed after all others
  std::uint64_t local_end_ = 0;
  std::uint64_t shared_end_ = 0;
  std::uint32_t dynamic_alignment_ = 16;
};

}  // namespace gemmery::emulator
