// SPDX-License-Identifier: Apache-2.0
// bar.warp.sync: lanes of a warp wait for each other, each at its own instruction if they have
// diverged; their memory accesses are ordered.
#include <bit>
#include <string>

#include "emulator/instruction/copy/copy_operands.hpp"
#include "emulator/instruction/synchronisation/synchronisation_rows.hpp"
#include "emulator/instruction/warp/warp_members.hpp"

namespace gemmery::emulator {
namespace {

// Fragment::resume holds the lanes that are waited for, and this bit once all of them have arrived.
constexpr std::uint64_t has_arrived = std::uint64_t{1} << 32;
constexpr std::uint64_t is_released = std::uint64_t{1} << 33;

Step run_warp_barrier(Warp& warp, const Operation& operation, LaneMask active);

bool waits_with(const Warp& warp, const Fragment& fragment, LaneMask members) {
  return fragment.resume == (has_arrived | members) &&
         warp.cta.cluster.grid.image->code[fragment.pc].execute == run_warp_barrier;
}

std::string describe_warp_barrier_wait(const Warp& warp, const Fragment& fragment) {
  const auto members = static_cast<LaneMask>(fragment.resume);
  return "bar.warp.sync of lanes " + hexadecimal(members) + ": lanes " +
         hexadecimal(members & warp.live & ~fragment.lanes) + " are elsewhere";
}

Step run_warp_barrier(Warp& warp, const Operation& operation, LaneMask active) {
  if ((warp.running->resume & is_released) != 0) return Step::next;
  const LaneMask members = members_of(warp, operation, 0, active);
  LaneMask here = active;
  for (const Fragment& fragment : warp.fragments) {
    if (waits_with(warp, fragment, members)) here |= fragment.lanes;
  }
  if ((members & warp.live & ~here) != 0) {
    warp.running->resume = has_arrived | members;
    warp.describe_wait = describe_warp_barrier_wait;
    return Step::blocked;
  }
  for (Fragment& fragment : warp.fragments) {
    if (&fragment != warp.running && waits_with(warp, fragment, members))
      fragment.resume |= is_released;
  }
  warp.synchronise_lanes();
  return Step::next;
}

}  // namespace

void decode_warp_barrier(DecodeContext& context, const Instruction& instruction,
                         Operation& operation) {
  Form form(context, instruction, operation);
  form.take("warp");
  if (!form.take("sync")) form.refuse("expected .sync");
  form.finish();
  form.expect_operands(1);
  operation.execute = run_warp_barrier;
  operation.has_side_effect = true;  // lets the warp's other lanes go on
  form.add_source(form.operand(0), ScalarType::b32);
}

}  // namespace gemmery::emulator
