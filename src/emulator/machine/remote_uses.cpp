// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/remote_uses.hpp"

#include <algorithm>
#include <string>

#include "emulator/machine/wait_report.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

void RemoteUses::note(const Warp& by) {
  const auto known =
      std::ranges::find_if(uses_, [&by](const Use& use) { return use.by->agent == by.agent; });
  const Use use{.by = &by, .clock = by.clock, .pc = by.running->pc};
  if (known != uses_.end())
    *known = use;
  else
    uses_.push_back(use);
}

void RemoteUses::check_exit(std::uint32_t rank) const {
  for (const Use& use : uses_) {
    if (leaving_.of(use.by->agent) >= use.clock) continue;
    Fault fault(FaultKind::early_exit,
                "shared memory of CTA " + std::to_string(rank) +
                    " is used from another CTA of its cluster, and nothing makes CTA " +
                    std::to_string(rank) +
                    " stay until then; end the kernel with barrier.cluster.arrive and .wait by all "
                    "threads");
    add_place(fault, *use.by, use.pc);
    throw fault;
  }
}

void RemoteUses::clear() {
  uses_.clear();
  leaving_ = {};
}

}  // namespace gemmery::emulator
