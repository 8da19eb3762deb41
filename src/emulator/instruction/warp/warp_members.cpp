// SPDX-License-Identifier: Apache-2.0
// The lanes that take part in an instruction with a membermask.
#include "emulator/instruction/warp/warp_members.hpp"

#include "emulator/instruction/copy/copy_operands.hpp"

namespace gemmery::emulator {

namespace {

[[noreturn]] void throw_left_out(int lane, LaneMask members) {
  throw_fault(FaultKind::divergent_barrier, lane,
              "the membermask " + hexadecimal(members) +
                  " leaves out a lane that executes the instruction; name every lane that comes "
                  "here, and no other");
}

// Lanes may arrive together in several groups, each with its own membermask.
LaneMask members_of_groups(const LaneMask* masks, LaneMask active) {
  LaneMask all = 0;
  for_each_lane(active, [&](int lane) {
    if ((masks[lane] >> lane & 1) == 0) throw_left_out(lane, masks[lane]);
    all |= masks[lane];
    for_each_lane(masks[lane] & active, [&](int other) {
      if (masks[other] == masks[lane]) return;
      throw_fault(FaultKind::divergent_barrier, lane,
                  "the membermask " + hexadecimal(masks[lane]) + " names lane " +
                      std::to_string(other) + ", which itself names " + hexadecimal(masks[other]) +
                      "; lanes that wait for each other must name the same mask");
    });
  });
  return all;
}

}  // namespace

LaneMask members_of(const Warp& warp, const Operation& operation, std::size_t slot,
                    LaneMask active) {
  warp.require_defined(operation.slot[slot], active, "which lanes take part");
  const auto* const masks = warp.source<LaneMask>(operation, slot);
  const LaneMask members = masks[std::countr_zero(active)];
  bool is_uniform = true;
  for_each_lane(active, [&](int lane) { is_uniform = is_uniform && masks[lane] == members; });
  if (!is_uniform) return members_of_groups(masks, active);
  const LaneMask outside = active & ~members;
  if (outside != 0) throw_left_out(std::countr_zero(outside), members);
  return members;
}

}  // namespace gemmery::emulator
