// SPDX-License-Identifier: Apache-2.0
// The figures of timed kernels: medians, quartiles and the roofline.
#include <gemmery/measure.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "api/timed_kernel.hpp"
#include "model/peak_rate.hpp"
#include "platform/host_info.hpp"

namespace gemmery {
namespace {

using api::TimedKernel;
using api::TimedOperands;

// The interpolated value below which `share` of the sorted samples lie.
double quantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(position);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (position - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

// Multiply-adds per clock and multiprocessor (or core), by the fastest unit for these types.
int peak_rate(const GemmProblem& problem, const DeviceInfo& device) {
  return device.target.is_cpu() ? platform::host_product_rate(problem.a.dtype)
                                : model::peak_rate(problem, device);
}

// Sets the minimum times by arithmetic units and by memory traffic.
void add_roofline(const GemmProblem& problem, const DeviceInfo& device, Measurement& measurement) {
  const double flops_per_us =
      2e3 * peak_rate(problem, device) * device.multiprocessors * device.clock_ghz;
  const double bytes_per_us = device.bandwidth_bytes_per_second / 1e6;
  if (flops_per_us > 0) measurement.arithmetic_us = problem.flops() / flops_per_us;
  if (bytes_per_us > 0) measurement.memory_us = problem.bytes() / bytes_per_us;
  measurement.roofline_us = std::max(measurement.arithmetic_us, measurement.memory_us);
}

Measurement summarize(const ProblemLine& line, const DeviceInfo& device,
                      const TimedKernel& subject) {
  std::vector<double> times = subject.times_us();
  std::ranges::sort(times);
  Measurement measurement{.median_us = quantile(times, 0.5),
                          .minimum_us = times.front(),
                          .maximum_us = times.back(),
                          .quartile_low_us = quantile(times, 0.25),
                          .quartile_high_us = quantile(times, 0.75),
                          .samples = static_cast<int>(times.size()),
                          .runs_per_sample = subject.runs(),
                          .samples_us = subject.times_us()};
  add_roofline(line.problem, device, measurement);
  if (measurement.median_us > 0) {
    measurement.flops_per_second = line.problem.flops() / measurement.median_us * 1e6;
    measurement.roofline_share = measurement.roofline_us / measurement.median_us;
  }
  return measurement;
}

// Three digits, with the first unit, each a thousand times the one before, that leaves less than a
// thousand.
std::string in_units(double value, std::initializer_list<std::string_view> units) {
  const auto* unit = units.begin();
  for (; value >= 999.5 && unit + 1 != units.end(); ++unit) value /= 1000;
  return fmt::format("{:.3g} {}", value, *unit);
}

}  // namespace

std::string to_string(const Measurement& measurement) {
  const auto time = [](double us) { return in_units(us, {"us", "ms", "s"}); };
  return fmt::format(
      "{}, {} (median of {} samples, quartiles {} to {})", time(measurement.median_us),
      in_units(measurement.flops_per_second / 1e6, {"MFLOP/s", "GFLOP/s", "TFLOP/s"}),
      measurement.samples, time(measurement.quartile_low_us), time(measurement.quartile_high_us));
}

std::vector<Measurement> measure_interleaved(const ProblemLine& line,
                                             const std::vector<Kernel>& kernels,
                                             const MeasureOptions& options) {
  api::check_options(options);
  if (kernels.empty()) return {};
  const DeviceInfo& device = api::facts_of(kernels.front(), options.device);
  const TimedOperands operands(line, device, options);

  std::deque<TimedKernel> subjects;
  for (const Kernel& kernel : kernels) subjects.emplace_back(kernel, operands);
  for (TimedKernel& subject : subjects) subject.warm_up(options);
  for (int sample = 0; sample < options.samples; ++sample)
    for (TimedKernel& subject : subjects) subject.sample();

  std::vector<Measurement> measurements;
  for (const TimedKernel& subject : subjects) {
    measurements.push_back(summarize(line, device, subject));
    measurements.back().buffer_sets = operands.set_count();
  }
  return measurements;
}

Measurement measure(const ProblemLine& line, const Kernel& kernel, const MeasureOptions& options) {
  return measure_interleaved(line, {kernel}, options).front();
}

}  // namespace gemmery
