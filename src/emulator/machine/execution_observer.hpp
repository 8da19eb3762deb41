// SPDX-License-Identifier: Apache-2.0
// Sees which operations lanes execute: coverage and traces.
#pragma once

#include "emulator/machine/operation.hpp"

namespace gemmery::emulator {

// Called by the host threads that run the clusters, each for its own.
class ExecutionObserver {
 public:
  virtual ~ExecutionObserver() = default;
  virtual void before(const Warp& warp, const Operation& operation, LaneMask active) = 0;
  // Not for an operation that blocks, or that ends its block with a fault.
  virtual void after(const Warp& warp, const Operation& operation, LaneMask active) = 0;
};

}  // namespace gemmery::emulator
