// SPDX-License-Identifier: Apache-2.0
// Predicates as operands, which may be negated: !%p1.
#pragma once

#include "emulator/instruction/form.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

// From this bit on, Operation::flags records which slots are negated predicates.
inline constexpr std::uint32_t first_negation_bit = 24;

inline LaneMask read_predicate(const Warp& warp, const Operation& operation,
                               std::size_t slot) noexcept {
  const LaneMask mask = *warp.source<LaneMask>(operation, slot);
  return ((operation.flags >> (first_negation_bit + slot)) & 1) != 0 ? ~mask : mask;
}

inline void note_negation(Form& form, const Operand& operand, std::size_t slot) noexcept {
  if (operand.is_negated) form.operation().flags |= 1u << (first_negation_bit + slot);
}
// Records the negations of `count` operands from `operand` on, which are in the slots from `slot`
// on.
inline void note_negations(Form& form, std::size_t operand, std::size_t slot, std::size_t count) {
  for (std::size_t index = 0; index < count; ++index)
    note_negation(form, form.operand(operand + index), slot + index);
}

}  // namespace gemmery::emulator
