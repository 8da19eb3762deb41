// SPDX-License-Identifier: Apache-2.0
// The register lists of matrix instructions, which a whole warp executes together.
#pragma once

#include <cstddef>
#include <vector>

#include "emulator/instruction/form.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

// Throws Fault (divergent_barrier) unless all 32 lanes execute `what`.
void require_whole_warp(LaneMask active, const char* what);

template <class T>
const T* lanes_at(const Warp& warp, const OperandSlot& slot) noexcept {
  return reinterpret_cast<const T*>((slot.is_constant ? warp.constants : warp.registers) +
                                    slot.offset);
}
template <class T>
T* lanes_to(Warp& warp, const OperandSlot& slot) noexcept {
  return reinterpret_cast<T*>(warp.registers + slot.offset);
}

// Adds the register of `slot`, if it has one that is not in the list.
void add_unique(std::vector<RegisterIndex>& list, const OperandSlot& slot);

// A list of `count` registers; a single register may be written without braces.
std::vector<OperandSlot> decode_registers(Form& form, const Operand& operand, std::size_t count,
                                          ScalarType type, bool is_destination);

// .sync.aligned, without which the form is refused.
void begin_warp_operation(Form& form);

}  // namespace gemmery::emulator
