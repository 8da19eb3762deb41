// SPDX-License-Identifier: Apache-2.0
#include "emulator/execution_watch.hpp"

#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace gemmery::emulator {
namespace {

template <class T>
T lane_value(const std::byte* vector, int lane) {
  T value{};
  std::memcpy(&value, vector + static_cast<std::size_t>(lane) * sizeof value, sizeof value);
  return value;
}

std::string value_text(const std::byte* vector, ScalarType type, int lane) {
  if (type == ScalarType::pred)
    return (lane_value<std::uint32_t>(vector, 0) >> lane & 1) != 0 ? "true" : "false";
  if (type == ScalarType::f32) return fmt::format("{}", lane_value<float>(vector, lane));
  if (type == ScalarType::f64) return fmt::format("{}", lane_value<double>(vector, lane));
  if (bits_of(type) == 64) return fmt::format("{:#x}", lane_value<std::uint64_t>(vector, lane));
  return fmt::format("{:#x}", lane_value<std::uint32_t>(vector, lane));
}

// "%f12 = 1.5": the first register that the operation wrote.
std::string result_text(const Warp& warp, const Operation& operation, std::uint32_t active) {
  const KernelImage& image = *warp.cta.cluster.grid.image;
  if (operation.writes.empty() || operation.writes.front() >= image.register_count) return {};
  const RegisterIndex reg = operation.writes.front();
  const std::byte* const vector = warp.registers + image.register_offset[reg];
  if (bits_of(image.register_type[reg]) > 64) return {};
  return fmt::format("{} = {}", image.register_name[reg],
                     value_text(vector, image.register_type[reg], std::countr_zero(active)));
}

}  // namespace

void ExecutionWatch::begin(std::size_t instructions) {
  is_tracing_ = traced_.has_value() && executed_.empty();
  if (executed_.empty()) executed_ = std::vector<std::atomic<bool>>(instructions);
}

void ExecutionWatch::before(const Warp&, const Operation& operation, std::uint32_t) {
  executed_[operation.pc].store(true, std::memory_order_relaxed);
}

bool ExecutionWatch::is_traced(const Warp& warp) const noexcept {
  if (!is_tracing_ || warp.cta.position != traced_->block) return false;
  const bool is_warp = traced_->warp < 0 || static_cast<int>(warp.index) == traced_->warp;
  return is_warp && steps_.size() < traced_->most_steps;
}

void ExecutionWatch::after(const Warp& warp, const Operation& operation, std::uint32_t active) {
  if (!is_traced(warp)) return;
  steps_.push_back({.pc = operation.pc,
                    .warp = static_cast<int>(warp.index),
                    .lanes = active,
                    .result = result_text(warp, operation, active)});
}

}  // namespace gemmery::emulator
