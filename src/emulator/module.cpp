// SPDX-License-Identifier: Apache-2.0
// Modules, and launches of their kernels.
#include "emulator/module.hpp"

#include <gemmery/error.hpp>

#include "emulator/program/parser.hpp"

namespace gemmery::emulator {
namespace {

// Target::cpu() if the text names no architecture.
Target target_of(std::string_view text) noexcept {
  try {
    return parse_target(text);
  } catch (const Error&) {
    return Target::cpu();
  }
}

bool is_at_least(Target device, Target code) noexcept {
  return device.architecture >= code.architecture;
}

}  // namespace

Module::Module(std::string_view ptx) : program_(std::make_shared<const Program>(parse_ptx(ptx))) {}

Module::~Module() {
  for (const auto& [ordinal, variables] : variables_) {
    EmulatedDevice& device = device_at(ordinal);
    const std::lock_guard lock(device.executing);
    for (const auto& [name, address] : variables.addresses) device.memory.free(address);
  }
  if (!managed_) return;
  for (const auto& [name, address] : managed_->addresses) host_memory().free(address);
}

bool Module::has_entry(std::string_view name) const noexcept {
  const Function* const function = program_->find_function(name);
  return function != nullptr && function->is_entry;
}

bool Module::runs_on(const DeviceInfo& device) const noexcept {
  return ptx_runs_on(program_->target, device);
}

bool ptx_runs_on(std::string_view ptx_target, const DeviceInfo& device) noexcept {
  const Target target = target_of(ptx_target);
  if (target.is_cpu()) return true;  // unsupported instructions will be reported
  return target.suffix == 0 ? is_at_least(device.target, target)
                            : gemmery::runs_on(target, device.target);
}

const ModuleVariables& Module::variables_on(EmulatedDevice& device) {
  const auto found = variables_.find(device.ordinal);
  if (found != variables_.end()) return found->second;
  const std::lock_guard lock(device.executing);
  if (!managed_) managed_ = place_managed_variables(*program_, host_memory());
  return variables_.emplace(device.ordinal, place_variables(*program_, device.memory, *managed_))
      .first->second;
}

ModuleVariables Module::variables(EmulatedDevice& device) {
  const std::lock_guard lock(building_mutex());
  return variables_on(device);
}

std::shared_ptr<const KernelImage> Module::image(std::string_view entry, EmulatedDevice& device) {
  const std::lock_guard lock(building_mutex());
  std::shared_ptr<const KernelImage>& image = images_[{device.ordinal, std::string(entry)}];
  if (image == nullptr) image = build_image(program_, entry, variables_on(device));
  return image;
}

LaunchStatistics run(const KernelLaunch& launch, std::uint64_t seed, std::uint64_t step_limit,
                     const Watch& watch) {
  EmulatedDevice& device = *launch.device;
  ++device.counters.launches;
  try {
    const LaunchStatistics statistics = run_grid(
        {.image = launch.image,
         .grid = launch.grid,
         .block = launch.block,
         .cluster = launch.cluster,
         .dynamic_shared_bytes = launch.dynamic_shared_bytes,
         .is_cooperative = launch.is_cooperative,
         .parameters = launch.parameters,
         .multiprocessors = static_cast<std::uint32_t>(device.info.multiprocessors),
         .shared_bytes_per_cta = static_cast<std::uint64_t>(device.info.shared_bytes_per_block),
         .seed = seed,
         .step_limit = step_limit,
         .collector = watch.collector,
         .observer = watch.observer,
         .sampled_clusters = watch.sampled_clusters},
        device.memory);
    device.counters.warp_instructions += statistics.warp_instructions;
    device.counters.lane_instructions += statistics.lane_instructions;
    return statistics;
  } catch (Fault& fault) {
    if (!fault.other_side.empty()) fault.other_side += "\n";
    fault.other_side +=
        "on " + to_string(device.device) + ", schedule of seed " + std::to_string(seed);
    throw;
  }
}

}  // namespace gemmery::emulator
