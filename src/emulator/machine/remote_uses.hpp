// SPDX-License-Identifier: Apache-2.0
// Who used the shared memory of a CTA from another one, so that a CTA that leaves too early is
// found whatever the schedule was: each use must be ordered before the exit.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/check/clock.hpp"

namespace gemmery::emulator {

class Warp;

class RemoteUses {
 public:
  // A warp of another CTA loads, stores or arrives here now, at its running instruction.
  void note(const Warp& by);
  // What a warp of this CTA knows as it leaves, or learned by barrier.cluster (which orders
  // execution even where it is relaxed and orders no memory).
  void learn(const VectorClock& known) { leaving_.join(known); }
  // The last warp has left. Throws Fault (early_exit), placed at a use that nobody here waited for.
  void check_exit(std::uint32_t rank) const;
  void clear();

 private:
  struct Use {
    const Warp* by;
    std::uint32_t clock;  // the latest
    std::uint32_t pc;
  };
  std::vector<Use> uses_;
  VectorClock leaving_;
};

}  // namespace gemmery::emulator
