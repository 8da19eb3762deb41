// SPDX-License-Identifier: Apache-2.0
// Makes the plan of a launch from the operations of its image.
#include "emulator/machine/plan.hpp"

#include <algorithm>
#include <string_view>

#include "emulator/machine/execution_observer.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

namespace {

std::string_view opcode_of(const Operation& operation) noexcept {
  return operation.text == nullptr ? std::string_view{} : operation.text->opcode;
}

// Blocked operations wait for barriers, arrivals, registers and lanes, never for plain memory.
bool can_wake(const Operation& operation) noexcept {
  constexpr std::string_view memory_only[] = {"st", "atom", "red", "ld", "stmatrix"};
  return operation.has_side_effect &&
         std::ranges::find(memory_only, opcode_of(operation)) == std::end(memory_only);
}

RegisterIndex guard_register(const KernelImage& image, const Operation& operation) {
  if (!operation.has_guard) return no_register;
  for (const RegisterIndex reg : operation.reads)
    if (reg < image.register_count && image.register_type[reg] == ScalarType::pred &&
        image.register_offset[reg] == operation.guard_offset)
      return reg;
  return no_register;
}

bool is_fragment_type(ScalarType type) noexcept {
  return type != ScalarType::pred && bits_of(type) == 32;
}

// The registers of wgmmas: accumulators and A fragments, not descriptors and predicates.
std::vector<bool> wgmma_registers(const KernelImage& image) {
  std::vector<bool> is_used(image.register_count);
  for (const Operation& operation : image.code) {
    if (opcode_of(operation) != "wgmma") continue;
    for (const RegisterIndex reg : operation.writes)
      if (reg < is_used.size()) is_used[reg] = true;
    for (const RegisterIndex reg : operation.reads)
      if (reg < is_used.size() && is_fragment_type(image.register_type[reg])) is_used[reg] = true;
  }
  return is_used;
}

Step leave(Warp& warp, const Operation&, LaneMask active) {
  warp.exit(active);
  return Step::jumped;
}

// The operation after the last instruction of an image.
const Operation& end_of_code() {
  static const Operation operation = [] {
    Operation made;
    made.execute = leave;
    return made;
  }();
  return operation;
}

Step execute_observed(Warp& warp, const Operation& operation, LaneMask active) {
  ExecutionObserver& observer = *warp.cta.cluster.grid.observer;
  observer.before(warp, operation, active);
  const Step step = operation.execute(warp, operation, active);
  if (step != Step::blocked) observer.after(warp, operation, active);
  return step;
}

}  // namespace

void Plan::observe_executions() {
  for (std::size_t pc = 0; pc + 1 < steps_.size(); ++pc) steps_[pc].execute = execute_observed;
}

Plan::Plan(const KernelImage& image) : is_wgmma_register_(wgmma_registers(image)) {
  std::size_t list_size = 0;
  for (const Operation& operation : image.code)
    list_size += operation.reads.size() + operation.writes.size();
  lists_.reserve(list_size);  // steps point into it
  steps_.reserve(image.code.size() + 1);

  const auto append = [&](const std::vector<RegisterIndex>& from, std::uint32_t& count) {
    const RegisterIndex* const first = lists_.data() + lists_.size();
    for (const RegisterIndex reg : from)
      if (reg < image.register_count) lists_.push_back(reg), ++count;
    return first;
  };
  const auto has_wgmma_register = [&](const RegisterIndex* list, std::uint32_t count) {
    return std::any_of(list, list + count,
                       [&](RegisterIndex reg) { return is_wgmma_register_[reg]; });
  };
  for (const Operation& operation : image.code) {
    PlannedStep step{.execute = operation.execute,
                     .operation = &operation,
                     .guard_offset = operation.guard_offset,
                     .guard = guard_register(image, operation),
                     .has_guard = operation.has_guard,
                     .is_guard_negated = operation.is_guard_negated,
                     .propagates_definedness = operation.propagates_definedness,
                     .needs_convergence = operation.needs_convergence,
                     .tolerates_exited = operation.tolerates_exited,
                     .has_side_effect = operation.has_side_effect,
                     .wakes_others = can_wake(operation),
                     .is_wgmma = opcode_of(operation) == "wgmma"};
    step.reads = append(operation.reads, step.read_count);
    step.writes = append(operation.writes, step.write_count);
    if (!step.is_wgmma) {
      step.writes_wgmma_register = has_wgmma_register(step.writes, step.write_count);
      step.touches_wgmma_register =
          step.writes_wgmma_register || has_wgmma_register(step.reads, step.read_count);
    }
    steps_.push_back(step);
  }
  steps_.push_back({.execute = leave, .operation = &end_of_code()});
}

}  // namespace gemmery::emulator
