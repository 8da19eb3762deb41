// SPDX-License-Identifier: Apache-2.0
// Predicts the time of a GEMM with one block of threads per output tile. Arithmetic only.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

namespace gemmery::model {

// From the end of the previous kernel to the start of the first block, and from the last block to
// the end: the overhead of a tiny problem (128^3 takes 3.5 us, of which 1 us is arithmetic; H200).
inline constexpr double kernel_launch_us = 1.2;

// The facts of a kernel that a prediction needs.
struct TiledDesign {
  int tile_m = 0;
  int tile_n = 0;
  int tile_k = 0;
  int k_slices = 1;                   // of k, each a tile of its own
  int threads = 0;                    // of one block
  int blocks_per_multiprocessor = 1;  // resident at a time, by registers and shared memory
  double fma_per_clock = 0;           // of one multiprocessor, peak for the kernel's arithmetic
  double efficiency = 1;  // share of that peak that the mainloop reaches when it does not wait
  double step_latency_clocks =
      0;  // least time of a step of tile_k when too few threads hide the latency of loads
};

// The parts of a prediction, in microseconds.
struct TimeParts {
  double launch_us = 0;
  double math_us = 0;    // waves of tiles through the arithmetic units
  double l2_us = 0;      // every tile's operands through the second-level cache
  double memory_us = 0;  // every operand once through device memory
  double fill_us = 0;    // first loads and last stores, which nothing overlaps

  double total_us() const noexcept;
};

// A problem on a device; predicts designs for it.
class TiledGemmModel {
 public:
  TiledGemmModel(const GemmProblem& problem, const DeviceInfo& device) noexcept;

  TimeParts predict(const TiledDesign& design) const noexcept;

 private:
  double m_;
  double n_;
  double k_;
  double l_;
  double a_bytes_;  // of an element
  double b_bytes_;
  double multiprocessors_;
  double us_per_clock_;
  double l2_clocks_per_byte_;
  double memory_us_;
};

// The least time on the device by peak arithmetic and bandwidth, in microseconds. `fma_per_clock`
// as above.
double roofline_us(const GemmProblem& problem, double fma_per_clock,
                   const DeviceInfo& device) noexcept;

}  // namespace gemmery::model
