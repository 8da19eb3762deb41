// SPDX-License-Identifier: Apache-2.0
// The shadow of a memory: for every four bytes the last write and the reads since, and for each
// byte whether it was ever written.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/check/clock.hpp"
#include "emulator/check/fault.hpp"

namespace gemmery::emulator {

enum class Proxy : std::uint8_t { generic, async, tensor_map };

// As Accessor::lane: several lanes made the same access (a broadcast), and one call represents all
// of them.
inline constexpr std::uint8_t several_lanes = 255;

// The agent that accesses memory. An async operation has the knowledge that its issuer had at
// issue, and the epoch at which it completes.
struct Accessor {
  Epoch epoch;
  const Knowledge* known = nullptr;
  std::uint32_t cluster = 0;
  std::uint32_t pc = 0;   // the instruction's, for reports
  std::uint8_t lane = 0;  // generic: two lanes of one warp in one epoch are not ordered
  Proxy proxy = Proxy::generic;
  bool is_atomic = false;       // atomic with atomic is no race
  std::uint16_t operation = 0;  // async: a counter that distinguishes operations of one epoch
};

// The other access of a conflict, for the report.
struct Conflict {
  bool is_race = false;  // otherwise a missing proxy fence
  bool other_was_write = false;
  bool other_was_atomic = false;
  Epoch other;
  std::uint32_t other_pc = 0;
  std::uint8_t other_lane = 0;
  Proxy other_proxy = Proxy::generic;
  Proxy proxy = Proxy::generic;  // the proxy of the new access
  std::uint64_t offset = 0;      // first byte in conflict
};

// Shadow of one contiguous memory. Not synchronised: the owner locks. `offset` and `bytes` are
// within bounds (the owner has checked).
class Shadow {
 public:
  explicit Shadow(std::uint64_t bytes);
  ~Shadow();
  Shadow(Shadow&& other) noexcept;
  Shadow& operator=(Shadow&& other) noexcept;

  // Record the access. If it conflicts with an earlier one, fill in `found` with the first conflict
  // and return true. A generic write that the async proxy reads must be in `known->fenced`; a write
  // of a tensor map that is used must be in `known->map_acquired`. Races are found by
  // `known->happened`.
  [[nodiscard]] bool read(std::uint64_t offset, std::uint32_t bytes, const Accessor& who,
                          Conflict& found);
  [[nodiscard]] bool write(std::uint64_t offset, std::uint32_t bytes, const Accessor& who,
                           Conflict& found);

  // The same for lanes of a warp, `bytes` each at addresses[lane] - begin; `who.lane` is replaced.
  // Returns the lane of the first conflict, -1 if there is none.
  [[nodiscard]] int read_lanes(std::uint32_t lanes, const std::uint64_t* addresses,
                               std::uint64_t begin, std::uint32_t bytes, const Accessor& who,
                               Conflict& found);
  [[nodiscard]] int write_lanes(std::uint32_t lanes, const std::uint64_t* addresses,
                                std::uint64_t begin, std::uint32_t bytes, const Accessor& who,
                                Conflict& found);

  // Marks bytes as written.
  void mark_written(std::uint64_t offset, std::uint64_t bytes);
  void mark_unwritten(std::uint64_t offset, std::uint64_t bytes);
  bool is_written(std::uint64_t offset, std::uint32_t bytes) const noexcept;
  // Bit i: byte offset + i was written; at most 64 bytes.
  std::uint64_t written_mask(std::uint64_t offset, std::uint32_t bytes) const noexcept;

  // Forgets accesses (a kernel has ended, or the host freed the memory), but not which bytes were
  // written.
  void forget_accesses();

  // The same for bytes in which an mbarrier was (re)initialised, or that a host operation wrote.
  void forget_accesses(std::uint64_t offset, std::uint64_t bytes);

 private:
  struct Insides;

  std::vector<std::uint64_t> written_;  // a bit per byte
  std::unique_ptr<Insides> insides_;
};

// The Fault for a conflict that a shadow found: race or missing_proxy_fence; `message` names both
// accesses ("write of shared memory 0x1400 is not ordered after the read by warp 3 at PTX line
// 88"). The machine converts pcs to lines and places: it fills `other_side` from
// `conflict.other_pc`.
struct ConflictFault final : Fault {
  // `space`: "shared memory" or "global memory"; `address`: that of the first byte in conflict.
  ConflictFault(const Conflict& found, bool is_write, const char* space, std::uint64_t address);
  Conflict conflict;
};

}  // namespace gemmery::emulator
