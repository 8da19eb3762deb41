// SPDX-License-Identifier: Apache-2.0
// Joins vector clocks.
#include "emulator/check/clock.hpp"

#include <algorithm>

namespace gemmery::emulator {
namespace {

void join_clocks(std::vector<std::uint32_t>& to, const std::vector<std::uint32_t>& from) {
  if (to.size() < from.size()) to.resize(from.size());
  std::uint32_t* const at = to.data();
  const std::uint32_t* const with = from.data();
  for (std::size_t agent = 0; agent < from.size(); ++agent) {
    at[agent] = std::max(at[agent], with[agent]);
  }
}

}  // namespace

void VectorClock::raise(AgentIndex agent, std::uint32_t clock) {
  if (agent >= clocks_.size()) clocks_.resize(agent + 1);
  clocks_[agent] = std::max(clocks_[agent], clock);
}

void VectorClock::set(AgentIndex agent, std::uint32_t clock) {
  if (agent >= clocks_.size()) clocks_.resize(agent + 1);
  clocks_[agent] = clock;
}

std::vector<std::uint32_t>& VectorClock::clocks_of(std::uint32_t cluster) {
  for (Foreign& foreign : foreign_) {
    if (foreign.cluster == cluster) return foreign.clocks;
  }
  return foreign_.emplace_back(Foreign{.cluster = cluster, .clocks = {}}).clocks;
}

void VectorClock::join(const VectorClock& other) {
  join_clocks(clocks_, other.clocks_);
  for (const Foreign& foreign : other.foreign_) {
    join_clocks(clocks_of(foreign.cluster), foreign.clocks);
  }
}

void VectorClock::join_foreign(const VectorClock& other, std::uint32_t other_cluster,
                               std::uint32_t own_cluster) {
  if (other_cluster == own_cluster) return join(other);
  join_clocks(clocks_of(other_cluster), other.clocks_);
  for (const Foreign& foreign : other.foreign_) {
    join_clocks(foreign.cluster == own_cluster ? clocks_ : clocks_of(foreign.cluster),
                foreign.clocks);
  }
}

bool VectorClock::knows_foreign(Epoch epoch) const noexcept {
  for (const Foreign& foreign : foreign_) {
    if (foreign.cluster != epoch.cluster()) continue;
    return epoch.agent() < foreign.clocks.size() && foreign.clocks[epoch.agent()] >= epoch.clock();
  }
  return false;
}

}  // namespace gemmery::emulator
