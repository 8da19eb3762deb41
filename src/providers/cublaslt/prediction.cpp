// SPDX-License-Identifier: Apache-2.0
// The roofline, waves that are filled only in part, and shares of the peaks that products of large
// matrices usually reach. Nothing here is fitted: these times only tell magnitudes.
#include "providers/cublaslt/prediction.hpp"

#include <algorithm>
#include <cmath>

#include "model/peak_rate.hpp"

namespace gemmery::cublaslt {
namespace {

constexpr double launch_us = 3;
constexpr double arithmetic_share = 0.7;
constexpr double memory_share = 0.85;

double arithmetic_us(const GemmProblem& problem, const DeviceInfo& device) {
  const double flops_per_us =
      2e3 * model::peak_rate(problem, device) * device.multiprocessors * device.clock_ghz;
  return flops_per_us > 0 ? problem.flops() / (arithmetic_share * flops_per_us) : 0;
}

double memory_us(const GemmProblem& problem, const DeviceInfo& device) {
  const double bytes_per_us = memory_share * device.bandwidth_bytes_per_second / 1e6;
  return bytes_per_us > 0 ? problem.bytes() / bytes_per_us : 0;
}

// The share of the device that its waves of tiles occupy on average.
double filled_share(float waves) { return waves > 0 ? waves / std::ceil(waves) : 1; }

}  // namespace

std::vector<double> predict_us(const GemmProblem& problem, const DeviceInfo& device,
                               const std::vector<Choice>& choices) {
  const double arithmetic = arithmetic_us(problem, device);
  const double memory = memory_us(problem, device);
  std::vector<double> times;
  for (const Choice& choice : choices) {
    const double time = launch_us + std::max(arithmetic / filled_share(choice.waves), memory);
    times.push_back(times.empty() ? time : std::max(time, times.back()));
  }
  return times;
}

}  // namespace gemmery::cublaslt
