// SPDX-License-Identifier: Apache-2.0
// setmaxnreg: warpgroups return registers to their CTA's pool and take registers from it.
#include <algorithm>
#include <string>

#include "emulator/instruction/copy/copy_operands.hpp"
#include "emulator/instruction/synchronisation/synchronisation_rows.hpp"

namespace gemmery::emulator {
namespace {

// Operation::immediate is the number of registers; flags != 0 means .inc.

constexpr std::uint32_t registers_per_multiprocessor = 65536;
constexpr std::uint32_t most_registers = 255;  // of a thread
constexpr std::uint32_t granularity = 8;
constexpr std::uint32_t warps_per_warpgroup = 4;

// The registers of each thread at launch. ptxas decides that number, which is unknown here, so the
// largest that fits is assumed. A first .inc to fewer registers shows that it was smaller.
std::uint32_t launch_quota(const Warp& warp) {
  const Grid& grid = warp.cta.cluster.grid;
  std::uint32_t quota = registers_per_multiprocessor / (grid.warps_per_cta() * lanes_per_warp);
  if (grid.image->entry->max_registers != 0)
    quota = std::min(quota, grid.image->entry->max_registers);
  return std::min(quota / granularity * granularity, most_registers);
}

std::uint32_t quota_of(const Warp& warp) {
  return warp.register_quota != 0 ? warp.register_quota : launch_quota(warp);
}

[[noreturn]] void refuse_change(FaultKind kind, const Operation& operation,
                                const std::string& why) {
  throw Fault(kind, std::string("setmaxnreg.") + (operation.flags != 0 ? "inc " : "dec ") +
                        std::to_string(operation.immediate) + why);
}

// All warps of a warpgroup must execute the same sequence of changes.
void note_change(Warp& warp, const Operation& operation) {
  RegisterPool& pool = warp.cta.registers;
  auto& changes = pool.changes[warp.index / warps_per_warpgroup];
  const RegisterPool::Change change{.is_increase = operation.flags != 0,
                                    .registers = static_cast<std::uint32_t>(operation.immediate),
                                    .pc = operation.pc};
  const std::uint32_t number = pool.changes_made[warp.index]++;
  if (number == changes.size()) {
    changes.push_back(change);
    return;
  }
  if (changes[number].is_increase == change.is_increase &&
      changes[number].registers == change.registers)
    return;
  const std::uint32_t line = warp.cta.cluster.grid.image->place_of(changes[number].pc).ptx_line;
  refuse_change(FaultKind::divergent_barrier, operation,
                " in one warp of a warpgroup, while another executed setmaxnreg of " +
                    std::to_string(changes[number].registers) + " registers at PTX line " +
                    std::to_string(line) + "; all four warps must execute the same one");
}

std::string describe_quota_wait(const Warp& warp, const Fragment& fragment) {
  const Operation& operation = warp.cta.cluster.grid.image->code[fragment.pc];
  return "setmaxnreg.inc to " + std::to_string(operation.immediate) + " from " +
         std::to_string(quota_of(warp)) +
         " registers: " + std::to_string(warp.cta.registers.free_registers / lanes_per_warp) +
         " for each lane of one warp are free; let other warpgroups give more back with "
         "setmaxnreg.dec, or ask for fewer";
}

Step run_change(Warp& warp, const Operation& operation, LaneMask) {
  const auto wanted = static_cast<std::uint32_t>(operation.immediate);
  const bool is_increase = operation.flags != 0;
  std::uint32_t has_now = quota_of(warp);
  if (is_increase && warp.register_quota == 0) has_now = std::min(has_now, wanted);
  std::uint32_t& pool = warp.cta.registers.free_registers;
  if (warp.running->resume == 0) {
    if (is_increase ? wanted < has_now : wanted > has_now)
      refuse_change(FaultKind::illegal_instruction, operation,
                    ", while a thread has " + std::to_string(has_now) + " registers; expected " +
                        (is_increase ? "no fewer: use .dec" : "no more: use .inc"));
    note_change(warp, operation);
  }
  if (!is_increase) {
    pool += (has_now - wanted) * lanes_per_warp;
  } else if ((wanted - has_now) * lanes_per_warp <= pool) {
    pool -= (wanted - has_now) * lanes_per_warp;
  } else {
    warp.running->resume = 1;
    warp.describe_wait = describe_quota_wait;
    return Step::blocked;
  }
  warp.register_quota = wanted;
  return Step::next;
}

}  // namespace

void decode_setmaxnreg(DecodeContext& context, const Instruction& instruction,
                       Operation& operation) {
  Form form(context, instruction, operation);
  const bool is_increase = form.take("inc");
  if (!is_increase && !form.take("dec")) form.refuse("expected .inc or .dec");
  if (!form.take("sync") || !form.take("aligned") || !form.take("u32"))
    form.refuse("expected .sync.aligned.u32");
  form.finish();
  form.expect_operands(1);
  const Operand& count = form.operand(0);
  if (count.kind != Operand::Kind::immediate) form.refuse("the count must be a constant");
  if (count.bits < 24 || count.bits > 256 || count.bits % granularity != 0)
    form.refuse("the count must be a multiple of 8 from 24 to 256");
  operation.execute = run_change;
  operation.immediate = count.bits;
  operation.flags = is_increase ? 1 : 0;
  operation.needs_convergence = true;
  operation.has_side_effect = true;
}

}  // namespace gemmery::emulator
