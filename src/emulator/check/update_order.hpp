// SPDX-License-Identifier: Apache-2.0
// The order of the read-modify-writes at each address. Each observes all earlier ones, so a party
// ordered after one is ordered after those, too. (PTX ISA, "Causality Order": through the
// observation order.)
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "emulator/check/shadow.hpp"

namespace gemmery::emulator {

// Bounded: nothing is known of addresses and agents that were dropped. Safe for many threads;
// whoever notes updates of an address holds its bytes meanwhile.
class UpdateOrder {
 public:
  // A read-modify-write of `bytes` at `address`, naturally aligned. Only those of whole cells by
  // the generic proxy are kept.
  void note(std::uint64_t address, std::uint32_t bytes, const Accessor& who);
  // A strong read of them by the same party observes all updates up to now: its later accesses of
  // these bytes, and those of whoever is ordered after it, come after them (coherence).
  void observe(std::uint64_t address, std::uint32_t bytes, const Accessor& who);
  // Another write: its observers observe nothing earlier.
  void forget(std::uint64_t address, std::uint32_t bytes);
  // True if `who` is ordered, through a later read-modify-write or a read that observed it, after
  // the one at `address` that `found` names.
  bool is_followed(std::uint64_t address, const Conflict& found, const Accessor& who) const;
  void clear();

 private:
  struct Update {  // the last one of an agent
    Epoch epoch;
    std::uint64_t time = 0;
  };
  struct Observation {  // the last one of a lane of an agent
    Epoch epoch;
    std::uint8_t lane = 0;
    std::uint64_t time = 0;
  };
  struct Place {
    std::uint64_t cell = 0;
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    std::vector<Update> updates;
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
