// SPDX-License-Identifier: Apache-2.0
// Order through memory by fences: the events that a fence publishes and acquires. (PTX ISA, "Memory
// Consistency Model", release and acquire patterns.)
#pragma once

#include <cstdint>

#include "emulator/check/clock.hpp"

namespace gemmery::emulator {

enum class Scope : std::uint8_t { cta, cluster, gpu, system };

// The fence state of a warp. A strong store (.relaxed, .volatile, atomics) after a fence publishes
// what the fence released; a fence after a strong load acquires what the load has observed. So
//   fence.{acq_rel, sc} or membar:  known.join(observed) if has_observed, observed = {}, then
//   release(released), has_released = true, released_scope = the fence's.
// Strong loads and stores do the rest (instruction/memory_order.cpp).
struct FenceState {
  Knowledge observed;  // already converted to the view from this cluster
  bool has_observed = false;
  Knowledge released;
  bool has_released = false;
  Scope released_scope = Scope::gpu;
};

}  // namespace gemmery::emulator
