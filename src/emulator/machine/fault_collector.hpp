// SPDX-License-Identifier: Apache-2.0
// The faults of a launch that continues after them: one for each place, with a count.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/check/fault.hpp"

namespace gemmery::emulator {

struct CollectedFault {
  Fault fault;  // the first instance, by cluster and then by step
  std::uint32_t cluster = 0;
  std::uint64_t step = 0;   // of the cluster, in warp instructions
  std::uint64_t count = 1;  // instances: one for each instruction of a warp that has the fault
  bool ended_cluster = false;
};

// Safe for many threads. What it holds at the end of a launch is a function of the seed as long as
// no thread takes a part in which blocks race with each other.
// The same for faults of one kind whose sides lie on the same lines of the source, or of the PTX
// where no source is known: a loop that was unrolled is one place.
std::string place_key(const Fault& fault);

class FaultCollector {
 public:
  void note(CollectedFault found);
  std::vector<CollectedFault> take_all();  // in the order of clusters and steps

 private:
  std::mutex lock_;
  std::map<std::string, CollectedFault> faults_;  // by place
};

}  // namespace gemmery::emulator
