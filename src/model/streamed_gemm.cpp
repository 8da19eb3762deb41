// SPDX-License-Identifier: Apache-2.0
// The model: memory bandwidth, the bytes in flight and the instructions of a multiprocessor, and
// its waits. Fitted to times of skinny kernels on an H100 (tests/model/designs_h100.csv) unless
// stated otherwise.
#include "model/streamed_gemm.hpp"

#include <algorithm>
#include <cmath>

#include "model/concurrent_work.hpp"
#include "model/tiled_gemm.hpp"

namespace gemmery::model {
namespace {

// One memory latency before the first product.
constexpr double first_load_us = 0.8;
// Share of the data sheet's bandwidth that reads reach: the value of WarpSpecializedConstants, so
// that families can be compared; and less along columns, where 1x8192x8192 takes 47.5 us, and 44.7
// with sm90 (H100). With k adjacent both take 47.
constexpr double memory_share = 0.97;
constexpr double memory_share_along_columns = 0.91;
// From a load to its value while memory is busy.
constexpr double loaded_latency_us = 0.79;
// Thread instructions per clock: four schedulers, a warp each; and the share of the issue slots
// that is used: 8x8192x8192 with B along columns, 8 warps on a multiprocessor, 65 to 76 us.
constexpr double instructions_per_clock = 128;
constexpr double issued_share = 0.63;
// The time between the last product of a panel and the first of the next panel: two barriers.
constexpr double panel_us = 1.2;
// The wait for a panel load for which there was no register ahead of time: 8x8192x8192 with k
// adjacent takes 101 us in blocks of 128 threads, with 8 such loads for each of 11 panels, and 58
// in blocks of 256 without them.
constexpr double late_load_us = 0.31;
// With split k: the transfer of the parts to the last block and the arrival counter; and the last
// block's wait for each part.
constexpr double exchange_us = 0.5;
constexpr double exchange_us_per_slice = 0.31;

}  // namespace

double StreamedParts::total_us() const noexcept {
  return fixed_us + beside(memory_us, latency_us, busiest_us) + exchange_us;
}

StreamedParts predict_streamed(const StreamedDesign& design, const DeviceInfo& device) noexcept {
  const double multiprocessors = std::max(device.multiprocessors, 1);
  const double units_each = std::ceil(std::max(design.units, 1.0) / multiprocessors);
  const double blocks = std::clamp(units_each, 1.0, design.blocks_per_multiprocessor);
  const double unit_bytes = design.streamed_bytes / std::max(design.units, 1.0);
  const double issued_per_us =
      instructions_per_clock * issued_share * std::max(device.clock_ghz, 0.1) * 1e3;
  const double waits = std::ceil(units_each / blocks) * design.panels *
                       (panel_us + design.late_loads * late_load_us);
  const double share = design.is_along_columns ? memory_share_along_columns : memory_share;
  const double memory_rate = device.bandwidth_bytes_per_second * share / 1e6;
  StreamedParts parts;
  parts.fixed_us = kernel_launch_us + first_load_us;
  parts.memory_us = (design.streamed_bytes + design.other_bytes) / memory_rate;
  parts.latency_us =
      units_each * unit_bytes * loaded_latency_us / std::max(blocks * design.bytes_under_way, 1.0);
  parts.busiest_us = units_each * unit_bytes * design.instructions_per_byte / issued_per_us + waits;
  if (design.slices > 1)
    parts.exchange_us =
        exchange_us + exchange_us_per_slice * design.slices + design.exchanged_bytes / memory_rate;
  return parts;
}

}  // namespace gemmery::model
