// SPDX-License-Identifier: Apache-2.0
// What releases have published under the addresses that they wrote, for whoever acquires there.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "emulator/check/clock.hpp"
#include "emulator/check/fence_state.hpp"

namespace gemmery::emulator {

// Who takes part: a release and an acquire meet where the scope of each includes the other.
struct Participant {
  std::uint32_t cluster = 0;
  std::uint32_t cta_rank = 0;
  Scope scope = Scope::gpu;
};

class PublicationTable {
 public:
  // A release was stored at `address`. A store begins anew; a read-modify-write (`continues`)
  // joins what the releases before it published (the release sequence).
  void publish(std::uint64_t address, const Participant& by, const Knowledge& knowledge,
               bool continues);
  // A strong store that publishes nothing: who reads it acquires nothing.
  void withdraw(std::uint64_t address);
  // Joins what was published at `address` into `into`; false where there is nothing for `reader`.
  bool collect(std::uint64_t address, const Participant& reader, Knowledge& into) const;
  void clear();

 private:
  struct Publication {
    Participant by;
    Knowledge knowledge;
  };
  std::atomic<bool> has_any_{false};
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::vector<Publication>> at_;
};

}  // namespace gemmery::emulator
