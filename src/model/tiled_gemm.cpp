// SPDX-License-Identifier: Apache-2.0
// A simple analytic model: waves, cache and memory traffic, latency.
#include "model/tiled_gemm.hpp"

#include <algorithm>
#include <cstdint>

namespace gemmery::model {
namespace {

// Bytes per clock that the second-level cache of an H100 delivers to all multiprocessors: 8 TB/s
// at 1.3 GHz.
constexpr double l2_bytes_per_clock_and_multiprocessor = 6154.0 / 132.0;
// Share of the data sheet's bandwidth that a copy reaches: 4.28 of 4.8 TB/s measured on an H200.
constexpr double reachable_bandwidth = 0.89;
// Clocks from a block's start to its first products, and from its last products to the end of its
// stores: about two round trips to memory.
constexpr double fill_clocks = 2500;
// The number of threads at which half the time is lost to waiting: one block of 256 threads reaches
// 0.9 of the rate of two (f32, 64x64 and 128x128 tiles, H200).
constexpr double waiting_threads = 64;

// The share of the arithmetic units' time that this many threads use.
double busy_share(double threads) { return threads / (threads + waiting_threads); }

// For quotients below 2^63. std::ceil is a function call if the compiler may not use SSE 4.1.
double divide_up(double x, double y) {
  const double quotient = x / y;
  const auto whole = static_cast<double>(static_cast<std::int64_t>(quotient));
  return whole < quotient ? whole + 1 : whole;
}

double element_bytes(const MatrixType& matrix) { return bit_width(matrix.dtype) / 8.0; }

}  // namespace

double TimeParts::total_us() const noexcept {
  return kernel_launch_us + fill_us + std::max({math_us, l2_us, memory_us});
}

TiledGemmModel::TiledGemmModel(const GemmProblem& problem, const DeviceInfo& device) noexcept
    : m_(static_cast<double>(problem.m)),
      n_(static_cast<double>(problem.n)),
      k_(static_cast<double>(problem.k)),
      l_(static_cast<double>(problem.l)),
      a_bytes_(element_bytes(problem.a)),
      b_bytes_(element_bytes(problem.b)),
      multiprocessors_(std::max(device.multiprocessors, 1)),
      us_per_clock_(1 / (device.clock_ghz * 1e3)),
      l2_clocks_per_byte_(1 / (l2_bytes_per_clock_and_multiprocessor * multiprocessors_)),
      memory_us_(problem.bytes() / (device.bandwidth_bytes_per_second * reachable_bandwidth) *
                 1e6) {}

TimeParts TiledGemmModel::predict(const TiledDesign& design) const noexcept {
  const double tiles =
      divide_up(m_, design.tile_m) * divide_up(n_, design.tile_n) * l_ * design.k_slices;
  const double k = divide_up(k_, design.k_slices);
  const double steps = std::max(divide_up(k, design.tile_k), 1.0);

  // The busiest multiprocessor determines the time. A step is bound by arithmetic, or by the
  // latency of its loads if few blocks share the multiprocessor.
  const double tiles_each = divide_up(tiles, multiprocessors_);
  const double resident = std::clamp<double>(tiles_each, 1, design.blocks_per_multiprocessor);
  // `efficiency` is that of a fully occupied multiprocessor.
  const double rate_share =
      busy_share(resident * design.threads) /
      busy_share(static_cast<double>(design.blocks_per_multiprocessor) * design.threads);
  const double tile_fma = static_cast<double>(design.tile_m) * design.tile_n * design.tile_k;
  const double step_clocks =
      std::max(tile_fma / (design.fma_per_clock * design.efficiency * rate_share),
               design.step_latency_clocks / resident);
  const double operand_bytes = (design.tile_m * a_bytes_ + design.tile_n * b_bytes_) * k;

  TimeParts parts;
  parts.launch_us = kernel_launch_us;
  parts.fill_us = fill_clocks * us_per_clock_;
  parts.math_us = tiles_each * steps * step_clocks * us_per_clock_;
  parts.l2_us = tiles * operand_bytes * l2_clocks_per_byte_ * us_per_clock_;
  parts.memory_us = memory_us_;
  return parts;
}

double roofline_us(const GemmProblem& problem, double fma_per_clock,
                   const DeviceInfo& device) noexcept {
  const double fma_per_second =
      fma_per_clock * std::max(device.multiprocessors, 1) * device.clock_ghz * 1e9;
  const double math_us = fma_per_second > 0 ? problem.flops() / 2 / fma_per_second * 1e6 : 0;
  const double memory_us = device.bandwidth_bytes_per_second > 0
                               ? problem.bytes() / device.bandwidth_bytes_per_second * 1e6
                               : 0;
  return std::max(math_us, memory_us);
}

}  // namespace gemmery::model
