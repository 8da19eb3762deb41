// SPDX-License-Identifier: Apache-2.0
// Operands of asynchronous copies.
#include "emulator/instruction/copy/copy_operands.hpp"

#include "emulator/memory/address.hpp"

namespace gemmery::emulator {

LaneOperand decode_address(Form& form, const Operand& operand) {
  LaneOperand address;
  Operation& operation = form.operation();
  operation.immediate = 0;
  const std::size_t slot = form.context().add_address(operation, operand, &address.is_64_bit);
  address.slot = operation.slot[slot];
  address.offset = operation.immediate;
  operation.immediate = 0;
  if (operand.reg == no_register && !operand.text.empty()) {
    Space space = Space::generic;
    form.context().address_of(operand.text, &space);
    if (space == Space::param) address.offset += param_window;
  }
  return address;
}

LaneOperand decode_value(Form& form, const Operand& operand, ScalarType type) {
  LaneOperand value;
  value.slot = form.context().source_slot(operand, type);
  value.is_64_bit = bits_of(type) == 64;
  if (value.slot.reg != no_register) form.operation().reads.push_back(value.slot.reg);
  return value;
}

Cluster::SharedPlace shared_place_of(Warp& warp, std::uint64_t address) {
  if (address >> 32 != 0)
    throw Fault(FaultKind::out_of_bounds,
                hexadecimal(address) +
                    " is a generic address where a shared one is wanted; convert it with "
                    "cvta.to.shared (__cvta_generic_to_shared)");
  return warp.cta.cluster.shared_place(static_cast<std::uint32_t>(address));
}

std::uint32_t own_shared_offset(Warp& warp, std::uint64_t address) {
  const Cluster::SharedPlace place = shared_place_of(warp, address);
  if (place.cta != &warp.cta)
    throw Fault(FaultKind::out_of_bounds,
                "shared address " + hexadecimal(address) + " belongs to CTA " +
                    std::to_string(place.cta->rank) +
                    " of the cluster, and this instruction takes those of its own CTA (" +
                    std::to_string(warp.cta.rank) + ") only");
  return place.offset;
}

std::string hexadecimal(std::uint64_t value) {
  std::string digits;
  do {
    digits.insert(digits.begin(), "0123456789abcdef"[value & 15]);
    value >>= 4;
  } while (value != 0);
  return "0x" + digits;
}

void throw_fault(FaultKind kind, int lane, std::string message) {
  Fault fault(kind, std::move(message));
  fault.place.lane = lane;
  throw fault;
}

void require_multiple(std::uint64_t value, std::uint32_t alignment, int lane, const char* what) {
  if (value % alignment == 0) return;
  throw_fault(FaultKind::misaligned, lane,
              std::string(what) + " " + hexadecimal(value) + " must be a multiple of " +
                  std::to_string(alignment) + "; align the buffer or the index");
}

}  // namespace gemmery::emulator
