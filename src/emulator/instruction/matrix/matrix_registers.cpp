// SPDX-License-Identifier: Apache-2.0
#include "emulator/instruction/matrix/matrix_registers.hpp"

#include <algorithm>
#include <span>
#include <string>

namespace gemmery::emulator {

void require_whole_warp(LaneMask active, const char* what) {
  if (active == all_lanes) return;
  throw Fault(FaultKind::divergent_barrier,
              std::string(what) +
                  " runs with part of a warp; all 32 lanes must reach it with the "
                  "same guard");
}

void add_unique(std::vector<RegisterIndex>& list, const OperandSlot& slot) {
  if (slot.reg != no_register && std::ranges::find(list, slot.reg) == list.end())
    list.push_back(slot.reg);
}

std::vector<OperandSlot> decode_registers(Form& form, const Operand& operand, std::size_t count,
                                          ScalarType type, bool is_destination) {
  const bool is_list = operand.kind == Operand::Kind::list;
  const std::span<const Operand> items =
      is_list ? std::span<const Operand>(operand.items) : std::span(&operand, 1);
  if (items.size() != count)
    form.refuse("a list of " + std::to_string(count) + " registers is expected, not of " +
                std::to_string(items.size()));
  Operation& operation = form.operation();
  std::vector<OperandSlot> slots;
  for (const Operand& item : items) {
    slots.push_back(is_destination ? form.context().destination_slot(item, type)
                                   : form.context().source_slot(item, type));
    add_unique(is_destination ? operation.writes : operation.reads, slots.back());
  }
  return slots;
}

void begin_warp_operation(Form& form) {
  if (!form.take("sync") || !form.take("aligned")) form.refuse("it needs .sync.aligned");
  form.operation().propagates_definedness = false;
  form.operation().needs_convergence = true;
}

}  // namespace gemmery::emulator
