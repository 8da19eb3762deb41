// SPDX-License-Identifier: Apache-2.0
// Timing of a kernel on a problem: rotating buffers larger than the cache, random data, device
// timing, medians with spread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gemmery/export.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>

namespace gemmery {

struct MeasureOptions {
  Device device = Device::cpu();
  int samples = 11;      // timed batches; the median of them is reported
  double sample_ms = 5;  // minimum duration of a batch
  double warmup_ms = 20;
  std::uint64_t seed = 0;  // 0 = fresh
};

// Times per run in microseconds, over the samples.
struct Measurement {
  double median_us = 0;
  double minimum_us = 0;
  double maximum_us = 0;
  double quartile_low_us = 0;
  double quartile_high_us = 0;
  int samples = 0;
  int runs_per_sample = 0;
  int buffer_sets = 0;  // operand sets that were rotated through
  double flops_per_second = 0;
  double arithmetic_us = 0;   // the least time by the device's peak arithmetic, 0 if unknown
  double memory_us = 0;       // the least time by its bandwidth, 0 if unknown
  double roofline_us = 0;     // the larger one of both
  double roofline_share = 0;  // roofline_us / median_us
  std::vector<double> samples_us = {};  // in the order of time
};

// "93 us, 45.1 GFLOP/s (median of 11 samples, quartiles 90.2 us to 97.9 us)".
GEMMERY_API std::string to_string(const Measurement& measurement);

// Throws what `run` throws.
GEMMERY_API Measurement measure(const ProblemLine& line, const Kernel& kernel,
                                const MeasureOptions& options = {});

// Several kernels in turn, sample by sample, so that clock drift affects all of them: one
// measurement per kernel.
GEMMERY_API std::vector<Measurement> measure_interleaved(const ProblemLine& line,
                                                         const std::vector<Kernel>& kernels,
                                                         const MeasureOptions& options = {});

}  // namespace gemmery
