// SPDX-License-Identifier: Apache-2.0
// The order of events: epochs and vector clocks, after FastTrack (Flanagan and Freund, PLDI 2009).
//
// Agents are numbered per cluster. Its warps come first (CTA rank * warps per CTA + warp). The
// others are added as they appear: mbarriers (an async write that completes on phase p of barrier b
// is epoch (b, p)) and strands (the wgmma groups of a warp, the bulk groups and cp.async groups of
// a thread: group g is clock g). So an async operation is ordered before any agent that has waited
// for its phase or group.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace gemmery::emulator {

using AgentIndex = std::uint32_t;  // within a cluster
inline constexpr AgentIndex no_agent = ~AgentIndex{0};

// A time of an agent; 0 is "never". 24 bits of cluster + 1, 12 of agent, 28 of clock.
class Epoch {
 public:
  static constexpr int clock_bits = 28;
  constexpr Epoch() = default;
  constexpr Epoch(std::uint32_t cluster, AgentIndex agent, std::uint32_t clock) noexcept
      : bits_((std::uint64_t{cluster} + 1) << 40 | std::uint64_t{agent} << clock_bits | clock) {}
  static constexpr Epoch from_bits(std::uint64_t bits) noexcept {
    Epoch epoch;
    epoch.bits_ = bits;
    return epoch;
  }
  constexpr std::uint64_t bits() const noexcept { return bits_; }
  constexpr bool is_never() const noexcept { return bits_ == 0; }
  constexpr std::uint32_t cluster() const noexcept {
    return static_cast<std::uint32_t>(bits_ >> 40) - 1;
  }
  constexpr AgentIndex agent() const noexcept {
    return static_cast<AgentIndex>(bits_ >> clock_bits & 0xfff);
  }
  constexpr std::uint32_t clock() const noexcept {
    return static_cast<std::uint32_t>(bits_ & 0xfffffff);
  }
  friend constexpr bool operator==(Epoch, Epoch) = default;

 private:
  std::uint64_t bits_ = 0;
};
inline constexpr AgentIndex max_agents = 4096;
inline constexpr std::uint32_t max_clusters = (1u << 24) - 2;

inline constexpr std::uint32_t no_cluster = max_clusters + 1;

// For each agent the latest clock known. Agents of other clusters are stored separately: they
// become known only through acquire and release at gpu scope. Clocks with the same knowledge of
// other clusters share it, so a barrier of a whole grid costs each block little.
class VectorClock {
 public:
  std::uint32_t of(AgentIndex agent) const noexcept {
    return agent < clocks_.size() ? clocks_[agent] : 0;
  }
  void raise(AgentIndex agent, std::uint32_t clock);
  void set(AgentIndex agent, std::uint32_t clock);  // replaces the agent's clock
  void join(const VectorClock& other);
  void clear() noexcept {  // forgets all clocks; keeps the storage of its own cluster's
    clocks_.clear();
    foreign_.reset();
  }
  // True if the event at `epoch` is known here. `cluster` is the cluster of this clock.
  bool knows(Epoch epoch, std::uint32_t cluster) const noexcept {
    if (epoch.is_never()) return true;
    if (epoch.cluster() == cluster) return of(epoch.agent()) >= epoch.clock();
    return knows_foreign(epoch);
  }
  // For release at gpu scope: converts this clock to the view from another cluster, and back.
  // Either cluster may be `no_cluster`: a clock that belongs to none.
  void join_foreign(const VectorClock& other, std::uint32_t other_cluster,
                    std::uint32_t own_cluster);

 private:
  using Clocks = std::vector<std::uint32_t>;
  struct Foreign {
    std::uint32_t cluster = no_cluster;
    std::shared_ptr<const Clocks> clocks;  // never changed
  };
  using ForeignList = std::vector<Foreign>;  // by ascending cluster, perhaps with its own
  static const Foreign* find(const ForeignList& list, std::uint32_t cluster) noexcept;
  static bool covers(const ForeignList& these, const ForeignList& those) noexcept;
  static ForeignList joined(const ForeignList& a, const ForeignList& b);
  void join_foreign_list(const std::shared_ptr<const ForeignList>& list);
  void join_cluster(std::uint32_t cluster, const Clocks& clocks);
  bool knows_foreign(Epoch epoch) const noexcept;

  Clocks clocks_;
  std::shared_ptr<const ForeignList> foreign_;  // never changed; nullptr: none
};

// The events that an agent is ordered after; passed on by every release and acquire.
struct Knowledge {
  VectorClock happened;  // events ordered before the present
  VectorClock fenced;    // of these, the generic writes that fence.proxy.async made visible to the
                         // async proxy
  VectorClock map_released;  // the generic writes that a release to the tensor-map proxy covers
  VectorClock map_acquired;  // of these, the writes that a later acquire from that proxy covers

  void join(const Knowledge& other) {
    happened.join(other.happened);
    fenced.join(other.fenced);
    map_released.join(other.map_released);
    map_acquired.join(other.map_acquired);
  }
  void clear() noexcept {
    happened.clear();
    fenced.clear();
    map_released.clear();
    map_acquired.clear();
  }
};

}  // namespace gemmery::emulator
