// SPDX-License-Identifier: Apache-2.0
#include "drop_in/driver/limits.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/arithmetic.hpp"
#include "emulator/program/program.hpp"

namespace gemmery::drop_in {
namespace {

constexpr int warp_size = 32;

int in_int(std::int64_t value) noexcept {
  return static_cast<int>(std::min<std::int64_t>(value, std::numeric_limits<int>::max()));
}

// The attributes that are the same for all devices: number in the manual, value.
struct AttributeRow {
  int attribute;
  int value;
};
constexpr AttributeRow attribute_rows[] = {
    {1, most_threads_per_block},
    {2, 1024},  // the most threads of a block in x, y, z
    {3, 1024},
    {4, 64},
    {5, std::numeric_limits<int>::max()},  // the most blocks of a grid in x, y, z
    {6, 65535},
    {7, 65535},
    {8, shared_bytes_without_opting_in},
    {9, 65536},  // bytes of constant memory
    {10, warp_size},
    {11, std::numeric_limits<int>::max()},  // the largest pitch
    {12, registers_per_multiprocessor},     // registers of a block
    {14, 512},                              // alignment of textures
    {15, 1},                                // copies beside kernels
    {19, 1},                                // host memory can be mapped
    {31, 1},                                // concurrent kernels
    {40, 2},                                // copy engines
    {41, 1},                                // unified addressing
    {51, 32},                               // alignment of the pitch of textures
    {78, 1},                                // stream priorities
    {79, 1},                                // global loads go through L1
    {80, 1},                                // and local ones
    {82, registers_per_multiprocessor},
    {83, 1},   // managed memory
    {86, 0},   // atomics of the link to the host
    {87, 2},   // single to double precision performance
    {89, 1},   // managed memory by host and device at a time
    {90, 1},   // compute preemption
    {95, 1},   // cooperative launches
    {99, 1},   // host memory can be registered
    {102, 1},  // virtual memory management
    {111, reserved_shared_bytes},
    {115, 1},  // memory pools
    {120, 1},  // clusters; see below for older architectures
    {123, 1},  // memory pools are served by unified pointers
    {124, 0},
    {134, -1},  // no NUMA node
};

int table_value(int attribute) noexcept {
  const auto* const row = std::ranges::find(attribute_rows, attribute, &AttributeRow::attribute);
  return row == std::end(attribute_rows) ? 0 : row->value;
}

}  // namespace

ArchitectureLimits limits_of(Target target) noexcept {
  switch (target.architecture) {
    case 75:
      return {1024, 16};
    case 86:
    case 87:
      return {1536, 16};
    case 89:
      return {1536, 24};
    case 110:
    case 120:
    case 121:
      return {1536, 24};
    default:
      return {2048, 32};
  }
}

int most_threads_of(const emulator::KernelImage& image) noexcept {
  const auto product = [](const std::array<std::uint32_t, 3>& extents) {
    return static_cast<int>(extents[0] * std::max(extents[1], 1u) * std::max(extents[2], 1u));
  };
  const emulator::Function& entry = *image.entry;
  if (entry.required_threads[0] != 0) return product(entry.required_threads);
  if (entry.max_threads[0] != 0) return product(entry.max_threads);
  return most_threads_per_block;
}

int active_blocks(const DeviceInfo& device, const emulator::KernelImage& image, int block_size,
                  std::size_t dynamic_shared_bytes) noexcept {
  constexpr std::int64_t shared_granule = 128;
  const ArchitectureLimits limits = limits_of(device.target);
  const std::int64_t threads = round_up(std::max(block_size, 1), warp_size);
  if (threads > most_threads_per_block) return 0;
  const std::int64_t shared =
      round_up(static_cast<std::int64_t>(image.static_shared_bytes) +
                   static_cast<std::int64_t>(dynamic_shared_bytes) + reserved_shared_bytes,
               shared_granule);
  const std::int64_t by_shared = device.shared_bytes_per_multiprocessor / shared;
  return in_int(std::min({limits.threads / threads, by_shared, std::int64_t{limits.blocks}}));
}

int attribute_of(const DeviceInfo& device, int ordinal, int attribute) noexcept {
  switch (attribute) {
    case 13:
      return static_cast<int>(std::lround(device.clock_ghz * 1e6));
    case 16:
      return device.multiprocessors;
    case 33:  // the bus of the device
      return ordinal + 1;
    case 36:  // memory clock for the bus below, kHz
      return static_cast<int>(std::lround(device.bandwidth_bytes_per_second / 2 / 512 * 1e-3));
    case 37:
      return 4096;
    case 38:
      return in_int(device.l2_bytes);
    case 39:
      return limits_of(device.target).threads;
    case 75:
      return device.target.major();
    case 76:
      return device.target.minor();
    case 81:
      return in_int(device.shared_bytes_per_multiprocessor);
    case 97:
      return in_int(device.shared_bytes_per_block);
    case 106:
      return limits_of(device.target).blocks;
    case 108:  // bytes of L2 that can be set aside, which changes nothing here
      return device.target.architecture >= 80 ? in_int(device.l2_bytes / 8 * 5) : 0;
    case 109:  // and the largest window that uses them
      return device.target.architecture >= 80 ? 128 << 20 : 0;
    case 120:
      return device.target.architecture >= 90 ? 1 : 0;
    default:
      return table_value(attribute);
  }
}

}  // namespace gemmery::drop_in
