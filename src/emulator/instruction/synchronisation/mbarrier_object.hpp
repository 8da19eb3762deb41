// SPDX-License-Identifier: Apache-2.0
// The effects of mbarrier instructions on the object, and the uses that are faults.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/instruction/synchronisation/mbarrier.hpp"

namespace gemmery::emulator {

inline constexpr std::uint32_t mbarrier_bytes = 8;
inline constexpr std::uint32_t mbarrier_most = (1u << 20) - 1;  // counts, and bytes either way

void initialise_mbarrier(Warp& warp, std::uint32_t offset, std::uint64_t count,
                         const Accessor& who);
void invalidate_mbarrier(Cta& cta, std::uint32_t offset);

// All functions throw Fault (mbarrier_misuse); `where` is the object's name for messages.
struct MbarrierPlace {
  Mbarrier& barrier;
  const Cta& cta;
  std::uint32_t offset;
};
void expect_bytes(const MbarrierPlace& place, std::int64_t bytes);
// `drops` lowers the count of later phases. Completes the phase if nothing is pending; with
// `keeps_phase` (.noComplete) that is a fault.
void arrive(const MbarrierPlace& place, std::uint64_t count, bool drops, bool keeps_phase);
void finish_phase_if_complete(Mbarrier& barrier);

// The token that mbarrier.arrive returns: opaque to kernels, valid for the current and the next
// phase.
struct MbarrierToken {
  std::uint32_t phase;
  std::uint32_t pending;
};
std::uint64_t token_of(const Mbarrier& barrier) noexcept;
MbarrierToken read_token(std::uint64_t bits) noexcept;

// "mbarrier at shared 0x400 of CTA 0".
std::string name_of(const Cta& cta, std::uint32_t offset);
// "phase 3 (parity 1) lacks 1 of 2 arrivals, and 16384 bytes are expected beyond what came".
std::string describe_progress(const Mbarrier& barrier);

}  // namespace gemmery::emulator
