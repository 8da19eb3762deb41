// SPDX-License-Identifier: Apache-2.0
// Runs a grid to its end.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "emulator/machine/execution_observer.hpp"
#include "emulator/machine/fault_collector.hpp"
#include "emulator/machine/kernel_image.hpp"
#include "emulator/memory/global_memory.hpp"

namespace gemmery::emulator {

struct LaunchRequest {
  std::shared_ptr<const KernelImage> image;
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::array<std::uint32_t, 3> cluster{1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  bool is_cooperative = false;  // all CTAs are resident at once and have a workspace in memory
  std::span<const std::byte> parameters;  // laid out by KernelImage::parameter_offset
  std::uint32_t multiprocessors = 132;
  std::uint64_t shared_bytes_per_cta = 232448;  // the device's limit
  std::uint64_t seed = 0;        // of the schedule: the order and length of the warps' turns, and
                                 // the delays of asynchronous operations
  int host_threads = 0;          // 0: one per core
  std::uint64_t step_limit = 0;  // warp instructions per cluster, 0: a generous default
  // If not null, faults go there and the launch continues. A fault after which a cluster cannot
  // continue ends that cluster; a time-out, or such a fault in clusters that communicate, ends the
  // grid.
  FaultCollector* collector = nullptr;
  ExecutionObserver* observer = nullptr;  // of every operation; may be null
  // If not 0: the number of clusters that run, chosen by the seed.
  std::uint32_t sampled_clusters = 0;
};

struct LaunchStatistics {
  std::uint64_t warp_instructions = 0;
  std::uint64_t lane_instructions = 0;  // the sum of active lanes
};

// Throws Fault (the first by cluster index, with its place filled in; all threads have stopped),
// Error (invalid_argument, unsupported) for a shape that the kernel or the device does not allow,
// or Error (launch) if the calling thread's platform::ScopedCancellation requests a stop.
LaunchStatistics run_grid(const LaunchRequest& request, GlobalMemory& memory);

}  // namespace gemmery::emulator
