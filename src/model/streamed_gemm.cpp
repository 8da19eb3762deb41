// SPDX-License-Identifier: Apache-2.0
// Memory's rate, and what one multiprocessor can have under way and multiply. No constant here was
// fitted to times of such kernels: each says where it comes from.
#include "model/streamed_gemm.hpp"

#include <algorithm>
#include <cmath>

namespace gemmery::model {
namespace {

// As in tiled_gemm.cpp; and one trip to memory before the first product.
constexpr double launch_us = 1.2;
constexpr double first_load_us = 0.8;
// Share of the data sheet's bandwidth that reads reach: what times of sm90 kernels on an H200 were
// fitted with (WarpSpecializedConstants). Writes are few here.
constexpr double memory_share = 0.97;
// From a load to its value while memory is busy: at 4.8 TB/s 132 multiprocessors need 36 KB under
// way each, by Little's law.
constexpr double loaded_latency_us = 1.0;
// Bytes per clock that a multiprocessor takes from the second-level cache at most.
constexpr double port_bytes_per_clock = 64;
// Instructions of threads per clock: four schedulers, a warp each; the share that is issued beside
// waits is assumed.
constexpr double instructions_per_clock = 128;
constexpr double issued_share = 0.8;
// Of a split: the way of the parts to the last block and the count of arrivals, two trips to the
// second-level cache; and for each part what the last block waits for.
constexpr double exchange_us = 1.2;
constexpr double exchange_us_per_slice = 0.3;

double bytes_per_us_of_multiprocessor(const StreamedDesign& design, double blocks,
                                      double clocks_per_us) {
  const double by_latency = blocks * design.bytes_under_way / loaded_latency_us;
  const double by_port = port_bytes_per_clock * clocks_per_us;
  if (design.instructions_per_byte <= 0) return std::min(by_latency, by_port);
  const double by_issue =
      instructions_per_clock * issued_share / design.instructions_per_byte * clocks_per_us;
  return std::min({by_latency, by_port, by_issue});
}

}  // namespace

double StreamedParts::total_us() const noexcept {
  return fixed_us + std::max(memory_us, busiest_us) + exchange_us;
}

StreamedParts predict_streamed(const StreamedDesign& design, const DeviceInfo& device) noexcept {
  const double multiprocessors = std::max(device.multiprocessors, 1);
  const double units_each = std::ceil(std::max(design.units, 1.0) / multiprocessors);
  const double blocks = std::clamp(units_each, 1.0, design.blocks_per_multiprocessor);
  const double unit_bytes = design.streamed_bytes / std::max(design.units, 1.0);
  const double rate = bytes_per_us_of_multiprocessor(design, blocks, device.clock_ghz * 1e3);
  const double memory_rate = device.bandwidth_bytes_per_second * memory_share / 1e6;
  StreamedParts parts;
  parts.fixed_us = launch_us + first_load_us;
  parts.memory_us = (design.streamed_bytes + design.other_bytes) / memory_rate;
  parts.busiest_us = units_each * unit_bytes / rate;
  if (design.slices > 1)
    parts.exchange_us =
        exchange_us + exchange_us_per_slice * design.slices + design.exchanged_bytes / memory_rate;
  return parts;
}

}  // namespace gemmery::model
