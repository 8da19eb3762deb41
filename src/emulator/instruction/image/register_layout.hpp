// SPDX-License-Identifier: Apache-2.0
// One register space for an entry and its functions: lane vectors of all registers in use.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/instruction/image/call_graph.hpp"
#include "emulator/machine/kernel_image.hpp"

namespace gemmery::emulator {

class RegisterLayout {
 public:
  // A register that no instruction names gets no storage; its offset is the sink's.
  explicit RegisterLayout(const CallGraph& graph);

  // The image's index of a function's register.
  RegisterIndex index(const Function& function, RegisterIndex reg) const {
    return first_.at(&function) + reg;
  }
  OperandSlot slot(RegisterIndex reg) const { return {offset_[reg], false, reg}; }
  ScalarType type(RegisterIndex reg) const { return type_[reg]; }
  // The register that `_`, the sink, stands for.
  RegisterIndex value_sink() const noexcept { return value_sink_; }
  RegisterIndex predicate_sink() const noexcept { return predicate_sink_; }
  // The hidden register that holds the return address of a called function.
  RegisterIndex return_address(const Function& function) const {
    return return_address_.at(&function);
  }
  // That which holds the address of a local array of a function that may call itself; no_register
  // for other variables.
  RegisterIndex array_address(const Function& function, std::string_view name) const;
  // All that have storage, with the hidden ones.
  std::vector<RegisterIndex> registers_of(const Function& function) const;

  void move_into(KernelImage& image) &&;

 private:
  RegisterIndex add(std::string name, ScalarType type, bool is_used);
  void add_array_addresses(const Function& function);
  void assign_offsets();

  std::map<const Function*, RegisterIndex> first_;
  std::map<const Function*, RegisterIndex> return_address_;
  std::map<const Function*, RegisterIndex> end_;
  std::map<std::pair<const Function*, std::string_view>, RegisterIndex> array_address_;
  RegisterIndex value_sink_ = 0;
  RegisterIndex predicate_sink_ = 0;
  std::vector<std::string> name_;
  std::vector<ScalarType> type_;
  std::vector<bool> is_used_;
  std::vector<std::uint32_t> offset_;
  std::uint32_t bytes_ = 0;
};

// Bytes of one lane in a lane vector of that type: 4, 8 or 16.
std::uint32_t lane_bytes_of(ScalarType type) noexcept;

}  // namespace gemmery::emulator
