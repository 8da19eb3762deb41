// SPDX-License-Identifier: Apache-2.0
// A PTX module: parsed once, its kernels decoded for each device that asks for them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/device.hpp"
#include "emulator/instruction/image/build_image.hpp"
#include "emulator/machine/launch.hpp"

namespace gemmery::emulator {

class Module {
 public:
  // Throws Error (invalid_argument) for text that is not PTX.
  explicit Module(std::string_view ptx);
  ~Module();  // frees the memory of its variables
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const Program& program() const noexcept { return *program_; }
  bool has_entry(std::string_view name) const noexcept;
  // True if the device runs code for the module's target. PTX runs on later devices, unless its
  // target is a single architecture ("sm_90a").
  bool runs_on(const DeviceInfo& device) const noexcept;

  // Throws Error: unsupported for an instruction that the emulator does not know, invalid_argument
  // for an entry that does not exist, out_of_memory for variables that do not fit.
  std::shared_ptr<const KernelImage> image(std::string_view entry, EmulatedDevice& device);

  // The addresses of the module's variables on a device, which are placed now if necessary.
  ModuleVariables variables(EmulatedDevice& device);

 private:
  const ModuleVariables& variables_on(EmulatedDevice& device);

  std::shared_ptr<const Program> program_;
  // By ordinal; guarded by building_mutex().
  std::map<int, ModuleVariables> variables_;
  std::optional<ModuleVariables> managed_;  // the same on all devices
  std::map<std::pair<int, std::string>, std::shared_ptr<const KernelImage>> images_;
};

// The same for the text of a `.target` directive.
bool ptx_runs_on(std::string_view ptx_target, const DeviceInfo& device) noexcept;

// A launch with copies of all its arguments, so that a graph can keep it.
struct KernelLaunch {
  EmulatedDevice* device = nullptr;
  std::shared_ptr<const KernelImage> image;
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::array<std::uint32_t, 3> cluster{1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  bool is_cooperative = false;
  std::vector<std::byte> parameters;  // laid out by KernelImage::parameter_offset
};

// The observers of a launch; the fields of LaunchRequest.
struct Watch {
  FaultCollector* collector = nullptr;
  ExecutionObserver* observer = nullptr;
  std::uint32_t sampled_clusters = 0;
};

// Runs it to its end. The caller holds `executing` of the device. Throws what run_grid throws; a
// Fault names device and seed.
LaunchStatistics run(const KernelLaunch& launch, std::uint64_t seed,
                     std::uint64_t step_limit = 0,  // 0: the default of run_grid
                     const Watch& watch = {});

}  // namespace gemmery::emulator
