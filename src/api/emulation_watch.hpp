// SPDX-License-Identifier: Apache-2.0
// What ran: the instructions that lanes executed, and the steps of one block.
#pragma once

#include <gemmery/emulate.hpp>

#include <atomic>
#include <optional>
#include <vector>

#include "emulator/machine/execution_observer.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery {

class EmulationWatch final : public emulator::ExecutionObserver {
 public:
  struct Step {
    std::uint32_t pc = 0;
    int warp = 0;
    std::uint32_t lanes = 0;
    std::string result;  // of the first of these lanes
  };

  EmulationWatch(bool wants_coverage, std::optional<EmulatedTrace> traced)
      : wants_coverage_(wants_coverage), traced_(traced) {}

  bool has_wishes() const noexcept { return wants_coverage_ || traced_; }
  // Before each schedule; only the first one is traced.
  void begin(std::size_t instructions);
  void before(const emulator::Warp& warp, const emulator::Operation& operation,
              std::uint32_t active) override;
  void after(const emulator::Warp& warp, const emulator::Operation& operation,
             std::uint32_t active) override;

  bool has_run(std::uint32_t pc) const { return executed_[pc]; }
  const std::vector<Step>& steps() const noexcept { return steps_; }

 private:
  bool is_traced(const emulator::Warp& warp) const noexcept;

  const bool wants_coverage_;
  std::optional<EmulatedTrace> traced_;
  bool is_tracing_ = false;
  std::vector<std::atomic<bool>> executed_;  // by pc
  std::vector<Step> steps_;
};

}  // namespace gemmery
