// SPDX-License-Identifier: Apache-2.0
// The scheduler's data of each operation, packed into a cache line; made once per launch.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "emulator/machine/kernel_image.hpp"

namespace gemmery::emulator {

struct PlannedStep {
  Execute execute = nullptr;
  const Operation* operation = nullptr;
  const RegisterIndex* reads = nullptr;
  const RegisterIndex* writes = nullptr;
  std::uint32_t read_count = 0;
  std::uint32_t write_count = 0;
  std::uint32_t guard_offset = 0;
  RegisterIndex guard = no_register;
  bool has_guard = false;
  bool is_guard_negated = false;
  bool propagates_definedness = true;
  bool needs_convergence = false;
  bool tolerates_exited = false;
  bool has_side_effect = false;
  bool wakes_others = false;            // a side effect that a blocked operation may wait for
  bool is_wgmma = false;                // a wgmma tracks its registers itself
  bool touches_wgmma_register = false;  // not a wgmma, accesses an accumulator or A fragment
  bool writes_wgmma_register = false;   // not a wgmma, writes one of these
};

// Valid as long as the image exists.
class Plan {
 public:
  explicit Plan(const KernelImage& image);
  // From now on Grid::observer sees the operations that lanes execute.
  void observe_executions();
  const PlannedStep& operator[](std::uint32_t pc) const noexcept { return steps_[pc]; }
  bool is_wgmma_register(RegisterIndex reg) const noexcept { return is_wgmma_register_[reg]; }

 private:
  std::vector<bool> is_wgmma_register_;  // accumulators and A fragments
  std::vector<RegisterIndex> lists_;     // reads and writes of all steps, without no_register
  std::vector<PlannedStep> steps_;       // one more than the image has; the last makes lanes exit
};

}  // namespace gemmery::emulator
