// SPDX-License-Identifier: Apache-2.0
// Finds instructions that access a wgmma's registers before its wait.
#include "emulator/machine/wgmma_guard.hpp"

#include <algorithm>
#include <string>

namespace gemmery::emulator {

namespace {

std::string wait_in_words(const WgmmaState& state, std::uint32_t group) {
  if (group > state.committed) return "commit it (wgmma.commit_group) and wait for it first";
  return "wait first: wgmma.wait_group with at most " + std::to_string(state.committed - group) +
         " groups left";
}

[[noreturn]] void throw_in_flight(const Warp& warp, const WgmmaState::InFlight& use,
                                  bool is_write) {
  const KernelImage& image = *warp.cta.cluster.grid.image;
  throw Fault(FaultKind::in_flight,
              image.register_name[use.reg] + " is " + (is_write ? "written" : "read") +
                  " while the wgmma at PTX line " +
                  std::to_string(image.place_of(use.pc).ptx_line) + " still " +
                  (use.is_written ? "writes it; " : "reads it; ") +
                  wait_in_words(warp.wgmma, use.group));
}

}  // namespace

void check_in_flight(const Warp& warp, const PlannedStep& step) {
  const auto touches = [](const RegisterIndex* list, std::uint32_t count, RegisterIndex reg) {
    return std::find(list, list + count, reg) != list + count;
  };
  for (const WgmmaState::InFlight& use : warp.wgmma.in_flight) {
    if (touches(step.writes, step.write_count, use.reg)) throw_in_flight(warp, use, true);
    if (use.is_written && touches(step.reads, step.read_count, use.reg))
      throw_in_flight(warp, use, false);
  }
}

void note_touched(Warp& warp, const PlannedStep& step, const Plan& plan) {
  if (warp.wgmma.needs_fence) return;
  std::vector<RegisterIndex>& touched = warp.wgmma.touched_since_fence;
  for (std::uint32_t at = 0; at < step.write_count; ++at) {
    const RegisterIndex reg = step.writes[at];
    if (plan.is_wgmma_register(reg) && std::ranges::find(touched, reg) == touched.end())
      touched.push_back(reg);
  }
}

}  // namespace gemmery::emulator
