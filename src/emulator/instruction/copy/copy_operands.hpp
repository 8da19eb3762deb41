// SPDX-License-Identifier: Apache-2.0
// Operands of asynchronous copies: decoded with the instruction, read lane by lane.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "emulator/instruction/form.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

// A source operand that has no slot of the operation, which has too few of them.
struct LaneOperand {
  OperandSlot slot;
  bool is_64_bit = false;
  std::uint64_t offset = 0;  // added to each lane's value

  std::uint64_t value(const Warp& warp, int lane) const noexcept {
    const std::byte* const at = (slot.is_constant ? warp.constants : warp.registers) + slot.offset;
    const std::uint64_t value = is_64_bit ? reinterpret_cast<const std::uint64_t*>(at)[lane]
                                          : reinterpret_cast<const std::uint32_t*>(at)[lane];
    return value + offset;
  }
};

// Decodes [base + offset]. The name of a parameter means its generic address.
LaneOperand decode_address(Form& form, const Operand& operand);
LaneOperand decode_value(Form& form, const Operand& operand, ScalarType type);

// --- run time -----------------------------------------------------------------------------------

// The CTA and offset of a shared address of any CTA of the cluster; throws Fault for other
// addresses. own_shared_offset requires an address in the warp's own CTA.
Cluster::SharedPlace shared_place_of(Warp& warp, std::uint64_t address);
std::uint32_t own_shared_offset(Warp& warp, std::uint64_t address);

std::string hexadecimal(std::uint64_t value);
[[noreturn]] void throw_fault(FaultKind kind, int lane, std::string message);
// Throws Fault (misaligned) unless `value` is a multiple of `alignment`: "shared destination 0x404
// of the copy must be a multiple of 16; …".
void require_multiple(std::uint64_t value, std::uint32_t alignment, int lane, const char* what);

// Calls `visit(lane)` for each lane of a mask.
template <class Visit>
void for_each_lane(LaneMask lanes, Visit visit) {
  for (; lanes != 0; lanes &= lanes - 1) visit(std::countr_zero(lanes));
}

}  // namespace gemmery::emulator
