// SPDX-License-Identifier: Apache-2.0
// The knowledge that releases publish at the addresses they write, for later acquires.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "emulator/check/clock.hpp"
#include "emulator/check/fence_state.hpp"

namespace gemmery::emulator {

// The releasing or the acquiring side. The two synchronise if the scope of each includes the other.
struct Participant {
  std::uint32_t cluster = 0;
  std::uint32_t cta_rank = 0;
  Scope scope = Scope::gpu;
};

class PublicationTable {
 public:
  // Records a release stored at `address`. A store starts anew; a read-modify-write (`continues`)
  // joins the releases before it (the release sequence).
  void publish(std::uint64_t address, const Participant& by, const Knowledge& knowledge,
               bool continues);
  // Records a strong store that publishes nothing: its readers acquire nothing.
  void withdraw(std::uint64_t address);
  // Joins what was published at `address` into `into`; false if there is nothing for `reader`.
  bool collect(std::uint64_t address, const Participant& reader, Knowledge& into) const;
  void clear();

 private:
  struct Publication {
    Participant by;
    Knowledge knowledge;
  };
  struct Place {
    std::vector<Publication> publications;
    bool is_wide = false;
    Knowledge wide;  // of those at gpu or system scope together, seen from no cluster
  };
  std::atomic<bool> has_any_{false};
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Place> at_;
};

}  // namespace gemmery::emulator
