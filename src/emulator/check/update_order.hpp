// SPDX-License-Identifier: Apache-2.0
// The order of the read-modify-writes at each address. Each observes all earlier ones, so an agent
// that is ordered after one is ordered after those, too. (PTX ISA, "Causality Order": through the
// observation order.)
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "emulator/check/shadow.hpp"

namespace gemmery::emulator {

// Its size is bounded: the order of addresses and agents that were dropped is lost. Thread-safe; a
// caller that records updates of an address holds the lock of its bytes.
class UpdateOrder {
 public:
  // Records a read-modify-write of `bytes` at `address`, naturally aligned. Only those of whole
  // cells by the generic proxy are kept.
  void note(std::uint64_t address, std::uint32_t bytes, const Accessor& who);
  // Records a strong read of these bytes by the same agent. It observes all updates up to now: the
  // agent's later accesses to the bytes, and those of agents ordered after it, come after the
  // updates (coherence).
  void observe(std::uint64_t address, std::uint32_t bytes, const Accessor& who);
  // Records any other write: agents that observe it observe no earlier update.
  void forget(std::uint64_t address, std::uint32_t bytes);
  // True if `who` is ordered after the update at `address` that `found` names, through a later
  // read-modify-write or a read that observed it.
  bool is_followed(std::uint64_t address, const Conflict& found, const Accessor& who) const;
  void clear();

 private:
  struct Update {  // an agent's last update
    Epoch epoch;
    std::uint64_t time = 0;
  };
  struct Observation {  // the last observation by a lane of an agent
    Epoch epoch;
    std::uint8_t lane = 0;
    std::uint64_t time = 0;
  };
  struct Place {
    std::uint64_t cell = 0;
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    std::vector<Update> updates;
    std::size_t newest = 0;  // of the updates
    std::vector<Observation> observations;
  };
  Place* find(std::uint64_t cell) noexcept;
  const Place* find(std::uint64_t cell) const noexcept;
  Place& find_or_replace(std::uint64_t cell);
  void note_at(Place& place, Epoch epoch);
  void observe_at(Place& place, const Accessor& who) const;

  std::atomic<bool> has_any_{false};
  mutable std::mutex mutex_;
  std::uint64_t time_ = 0;
  std::vector<Place> places_;  // sets of a few ways, by the cell
};

}  // namespace gemmery::emulator
