// SPDX-License-Identifier: Apache-2.0
// The emulated devices: facts from the table of devices, a memory, and the order of their work.
#pragma once

#include <gemmery/device.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "emulator/memory/global_memory.hpp"

namespace gemmery::emulator {

// Counters of a device since the process began.
struct DeviceCounters {
  std::atomic<std::uint64_t> launches{0};
  std::atomic<std::uint64_t> warp_instructions{0};
  std::atomic<std::uint64_t> lane_instructions{0};
  std::atomic<std::uint64_t> unwritten_bytes_copied{0};  // unwritten bytes copied to the host
};

// One device. Lives as long as the process.
class EmulatedDevice {
 public:
  EmulatedDevice(int ordinal, const std::string& name, DeviceInfo info);

  const int ordinal;
  const DeviceInfo info;
  const Device device;  // of that name: "emulated:h200"
  GlobalMemory memory;
  DeviceCounters counters;

  // Locked during all work of the device, so that work on its streams has a total order.
  std::mutex executing;

  // Counts unwritten bytes in a copy to the host; the first of each allocation is logged. The
  // caller holds `executing`.
  void note_host_read(std::uint64_t address, std::uint64_t bytes);
  void forget_host_reads(std::uint64_t allocation) { warned_.erase(allocation); }

 private:
  std::set<std::uint64_t> warned_;  // allocations that were logged
};

int device_count() noexcept;
// Makes these the devices, by their names in the table; several may be of one name. Before the
// first use of a device; without it there is one of each name. Throws Error (invalid_argument) for
// a name that is not in the table, and for none or too many.
void choose_devices(const std::vector<std::string>& names);
// Memory that the host and all devices access at the same addresses: pinned and managed memory.
GlobalMemory& host_memory();
// Throws Error (unavailable) for an ordinal that does not exist.
EmulatedDevice& device_at(int ordinal);

// The seed of schedules: the last one set, else GEMMERY_EMULATOR_SEED, else 1. Throws Error
// (invalid_argument) for a variable that is not a number.
std::uint64_t schedule_seed();
void set_schedule_seed(std::uint64_t seed) noexcept;

// The number of warp instructions after which a cluster launched by a driver call counts as
// hanging; 0: the default of run_grid. For tests of kernels that hang.
std::uint64_t step_limit() noexcept;
void set_step_limit(std::uint64_t steps) noexcept;

// Locked while kernels are decoded, before `executing` of any device.
std::mutex& building_mutex() noexcept;

}  // namespace gemmery::emulator
