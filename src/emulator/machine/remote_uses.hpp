// SPDX-License-Identifier: Apache-2.0
// Accesses to the shared memory of a CTA from other CTAs, so that a CTA that exits too early is
// found under every schedule: each access must be ordered before the exit.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/check/clock.hpp"

namespace gemmery::emulator {

class Warp;

class RemoteUses {
 public:
  // Called when a warp of another CTA loads, stores or arrives here, at its running instruction.
  void note(const Warp& by);
  // The knowledge of a warp of this CTA at its exit, or from barrier.cluster (which orders
  // execution even if it is relaxed and orders no memory).
  void learn(const VectorClock& known) { leaving_.join(known); }
  // Called after the last warp has exited. Throws Fault (early_exit), placed at an access that no
  // warp here waited for.
  void check_exit(std::uint32_t rank) const;
  void clear();

 private:
  struct Use {
    const Warp* by;
    std::uint32_t clock;  // of its latest access
    std::uint32_t pc;
  };
  std::vector<Use> uses_;
  VectorClock leaving_;
};

}  // namespace gemmery::emulator
