// SPDX-License-Identifier: Apache-2.0
// Creates the devices, keeps them usable in a forked child, and reports host reads of unwritten
// memory.
#include "emulator/device.hpp"

#include <gemmery/error.hpp>

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "emulator/handles.hpp"
#include "platform/environment.hpp"
#include "platform/log.hpp"

namespace gemmery::emulator {
namespace {

// A device has the memory size of the table, limited by the host's memory, which holds it.
std::uint64_t memory_limit(std::uint64_t bytes_of_device) {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return bytes_of_device;
  return std::min(bytes_of_device,
                  static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes));
}

// The devices' names in the table, in the order of their ordinals.
std::vector<std::string>& device_names() {
  static auto* const names =
      new std::vector<std::string>(known_device_names().begin(), known_device_names().end());
  return *names;
}

int index_in_table(const std::string& name) {
  const auto known = known_device_names();
  return static_cast<int>(std::ranges::find(known, name) - known.begin());
}

using DeviceList = std::vector<std::unique_ptr<EmulatedDevice>>;

void lock_all();
void unlock_all();

// Created at the first use and never destroyed.
DeviceList& all_devices() {
  static DeviceList* const list = [] {
    auto* const devices = new DeviceList;
    for (const std::string& name : device_names()) {
      devices->push_back(std::make_unique<EmulatedDevice>(static_cast<int>(devices->size()), name,
                                                          find_device_info(name).value()));
    }
    // In a child every device is idle, whatever other threads of its parent were doing.
    pthread_atfork(lock_all, unlock_all, unlock_all);
    return devices;
  }();
  return *list;
}

void lock_all() {
  building_mutex().lock();
  for (const auto& device : all_devices()) device->executing.lock();
  handles().mutex.lock();  // last, the same order as for allocations
}

void unlock_all() {
  handles().mutex.unlock();
  for (const auto& device : all_devices()) device->executing.unlock();
  building_mutex().unlock();
}

std::atomic<bool> is_seed_set{false};
std::atomic<std::uint64_t> set_seed{0};
std::atomic<std::uint64_t> most_steps{0};

}  // namespace

EmulatedDevice::EmulatedDevice(int place, const std::string& name, DeviceInfo facts)
    : ordinal(place),
      info(std::move(facts)),
      device(Device::emulated(index_in_table(name))),
      memory(memory_limit(static_cast<std::uint64_t>(info.memory_bytes)), global_range(1 + place)) {
  memory.add_peer(host_memory());
}

void EmulatedDevice::note_host_read(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t unwritten = memory.count_unwritten(address, bytes);
  if (unwritten == 0) return;
  counters.unwritten_bytes_copied += unwritten;
  const std::optional<GlobalMemory::Extent> extent = memory.find(address);
  if (!extent || !warned_.insert(extent->address).second) return;
  platform::log(LogLevel::warning, to_string(device) + ": a copy of " + std::to_string(bytes) +
                                       " bytes to the host takes " + std::to_string(unwritten) +
                                       " that nobody has written, of the allocation of " +
                                       std::to_string(extent->bytes) + " bytes");
}

int device_count() noexcept { return static_cast<int>(device_names().size()); }

void choose_devices(const std::vector<std::string>& names) {
  if (names.empty() || names.size() >= global_range_count) {
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "emulated devices",
                 .expected = "1 to " + std::to_string(global_range_count - 1),
                 .got = std::to_string(names.size())});
  }
  for (const std::string& name : names) {
    if (find_device_info(name)) continue;
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "emulated devices",
                 .expected = "names of the table of devices, such as h200",
                 .got = "'" + name + "'"});
  }
  device_names() = names;
}

GlobalMemory& host_memory() {
  static auto* const memory =
      new GlobalMemory(memory_limit(std::numeric_limits<std::uint64_t>::max()), host_range);
  return *memory;
}

EmulatedDevice& device_at(int ordinal) {
  if (ordinal >= 0 && ordinal < device_count())
    return *all_devices()[static_cast<std::size_t>(ordinal)];
  throw Error({.kind = ErrorKind::unavailable,
               .operand = to_string(Device::emulated(ordinal)),
               .expected = "an index below " + std::to_string(device_count()),
               .got = std::to_string(ordinal)});
}

std::uint64_t schedule_seed() {
  if (is_seed_set.load(std::memory_order_acquire)) return set_seed.load();
  const std::optional<std::int64_t> seed = platform::read_environment_integer(
      "GEMMERY_EMULATOR_SEED", 0, std::numeric_limits<std::int64_t>::max());
  return static_cast<std::uint64_t>(seed.value_or(1));
}

void set_schedule_seed(std::uint64_t seed) noexcept {
  set_seed.store(seed);
  is_seed_set.store(true, std::memory_order_release);
}

std::mutex& building_mutex() noexcept {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

std::uint64_t step_limit() noexcept { return most_steps.load(); }

void set_step_limit(std::uint64_t steps) noexcept { most_steps.store(steps); }

}  // namespace gemmery::emulator
