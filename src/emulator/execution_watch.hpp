// SPDX-License-Identifier: Apache-2.0
// What ran: the instructions that lanes executed, and the steps of one block.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/machine/execution_observer.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

// A block whose steps are kept, and one of its warps; -1: all.
struct TracedBlock {
  std::array<std::uint32_t, 3> block{};
  int warp = -1;
  std::size_t most_steps = 0;
};

class ExecutionWatch final : public ExecutionObserver {
 public:
  struct Step {
    std::uint32_t pc = 0;
    int warp = 0;
    std::uint32_t lanes = 0;
    std::string result;  // of the first of these lanes
  };

  ExecutionWatch(bool wants_coverage, std::optional<TracedBlock> traced)
      : wants_coverage_(wants_coverage), traced_(traced) {}

  bool has_wishes() const noexcept { return wants_coverage_ || traced_; }
  // Before each schedule; only the first one is traced.
  void begin(std::size_t instructions);
  void before(const Warp& warp, const Operation& operation, std::uint32_t active) override;
  void after(const Warp& warp, const Operation& operation, std::uint32_t active) override;

  bool has_run(std::uint32_t pc) const { return executed_[pc]; }
  const std::vector<Step>& steps() const noexcept { return steps_; }

 private:
  bool is_traced(const Warp& warp) const noexcept;

  const bool wants_coverage_;
  std::optional<TracedBlock> traced_;
  bool is_tracing_ = false;
  std::vector<std::atomic<bool>> executed_;  // by pc
  std::vector<Step> steps_;
};

}  // namespace gemmery::emulator
