// SPDX-License-Identifier: Apache-2.0
// Devices and their facts. Facts are data: from the driver if there is one, otherwise from a table
// by name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <gemmery/export.hpp>
#include <gemmery/target.hpp>

namespace gemmery {

enum class DeviceType : std::uint8_t { cpu, cuda, emulated };

// Where memory is and code runs. Device{} is the CPU. The index of an emulated device is the
// position of its name in `known_device_names()`.
struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;

  friend bool operator==(const Device&, const Device&) = default;

  static constexpr Device cpu() { return {}; }
  static constexpr Device cuda(int index) { return {DeviceType::cuda, index}; }
  static constexpr Device emulated(int index) { return {DeviceType::emulated, index}; }
  constexpr bool is_cpu() const { return type == DeviceType::cpu; }
};

// "cpu", "cuda:1", "emulated:h200"
GEMMERY_API std::string to_string(Device device);

// Parses the output of `to_string`, and "emulated:1" for "emulated:h200"; nullopt for other text.
// It does not check if the device exists; its first use does.
GEMMERY_API std::optional<Device> parse_device(std::string_view text) noexcept;

// The facts of a device that predictions and matching need. Rates are peaks by the data sheet or
// the driver.
struct DeviceInfo {
  std::string name;  // "NVIDIA H200", or the table's name
  Target target;
  int multiprocessors = 0;                  // SMs; cores of a CPU
  std::int64_t shared_bytes_per_block = 0;  // the limit of a block's dynamic shared memory
  std::int64_t shared_bytes_per_multiprocessor = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  double clock_ghz = 0;                   // boost clock
  double bandwidth_bytes_per_second = 0;  // device memory
  // Fused multiply-adds per clock and multiprocessor on the CUDA cores (or the vector units of a
  // CPU core).
  int fma_f32_per_clock = 0;
  int fma_f64_per_clock = 0;
  int fma_int_per_clock = 0;

  friend bool operator==(const DeviceInfo&, const DeviceInfo&) = default;
};

// The facts of a device that this machine need not have, by one of `known_device_names()` such as
// "h200"; nullopt for an unknown name.
GEMMERY_API std::optional<DeviceInfo> find_device_info(std::string_view table_name);

// The facts of the first known device of a GPU target's architecture (any suffix). If none is
// known: those of the closest one, with this architecture and a name that says so.
GEMMERY_API DeviceInfo typical_device_info(Target target);

// The names that `find_device_info` knows.
GEMMERY_API std::span<const std::string_view> known_device_names() noexcept;

}  // namespace gemmery
