// SPDX-License-Identifier: Apache-2.0
// Timing: rotating operand sets that exceed the cache, batches timed by the device's clock, medians
// and quartiles.
#include <gemmery/measure.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <gemmery/buffer.hpp>
#include <gemmery/error.hpp>
#include <gemmery/family.hpp>

#include "api/operand_sets.hpp"
#include "core/device_rates.hpp"
#include "driver/graph.hpp"
#include "driver/stream.hpp"
#include "operation/types.hpp"
#include "platform/host_info.hpp"

namespace gemmery {
namespace {

using api::OperandSets;
using api::Placements;

constexpr int smallest_set_count = 2;
constexpr int largest_set_count = 256;
constexpr int longest_batch =
    1000;  // runs per timed batch: a graph of this many nodes is made in milliseconds
constexpr double memory_share = 0.5;  // the largest share of the device's memory for operand sets

// Twice the cache, so that a set has left it before it is used again.
int set_count(const ProblemLine& line, const DeviceInfo& device) {
  const auto bytes =
      static_cast<double>(std::max<std::size_t>(Placements(line.problem).bytes(), 1));
  const double wanted = std::floor(2.0 * static_cast<double>(device.l2_bytes) / bytes) + 1;
  const double room = device.memory_bytes > 0
                          ? memory_share * static_cast<double>(device.memory_bytes) / bytes
                          : wanted;
  const double count = std::min(std::max<double>(wanted, smallest_set_count), std::max(room, 1.0));
  return static_cast<int>(std::min<double>(count, largest_set_count));
}

// --- batches ---

// Runs a kernel some number of times over the sets in turn, and returns the time.
class Batch {
 public:
  virtual ~Batch() = default;
  virtual double elapsed_us() = 0;
};

struct BatchPlan {
  const Kernel& kernel;
  const std::vector<GemmArguments>& arguments;
  Stream stream;
  int runs;
  std::vector<PreparedLaunch>* prepared = nullptr;  // one per set; on a GPU
};

class CpuBatch final : public Batch {
 public:
  explicit CpuBatch(const BatchPlan& plan) : plan_(plan) {}

  double elapsed_us() override {
    const auto start = std::chrono::steady_clock::now();
    for (int run = 0; run < plan_.runs; ++run) {
      const GemmArguments& arguments =
          plan_.arguments[static_cast<std::size_t>(next_++) % plan_.arguments.size()];
      plan_.kernel.run(arguments, {.stream = plan_.stream, .assume_supported = true});
    }
    const std::chrono::duration<double, std::micro> elapsed =
        std::chrono::steady_clock::now() - start;
    return elapsed.count();
  }

 private:
  BatchPlan plan_;
  std::int64_t next_ = 0;
};

// The runs are captured into a graph if possible, so that gaps between launches are those of the
// device, not of the host.
class GpuBatch final : public Batch {
 public:
  explicit GpuBatch(const BatchPlan& plan)
      : plan_(plan),
        start_(plan.stream.device(), driver::Event::Kind::timing),
        end_(plan.stream.device(), driver::Event::Kind::timing) {
    try {
      driver::GraphCapture capture(plan_.stream);
      launch_all();
      graph_ = capture.end();
    } catch (const Error&) {
      graph_.reset();
    }
  }

  double elapsed_us() override {
    start_.record(plan_.stream);
    if (graph_) {
      graph_->launch(plan_.stream);
    } else {
      launch_all();
    }
    end_.record(plan_.stream);
    end_.synchronize();
    return 1000 * driver::elapsed_ms(start_, end_);
  }

 private:
  void launch_all() {
    for (int run = 0; run < plan_.runs; ++run)
      (*plan_.prepared)[static_cast<std::size_t>(run) % plan_.prepared->size()].launch(
          plan_.stream);
  }

  BatchPlan plan_;
  driver::Event start_, end_;
  std::optional<driver::Graph> graph_;
};

std::unique_ptr<Batch> make_batch(const BatchPlan& plan) {
  if (plan.stream.device().is_cpu()) return std::make_unique<CpuBatch>(plan);
  return std::make_unique<GpuBatch>(plan);
}

// The kernel that is measured.
class Subject {
 public:
  Subject(const Kernel& kernel, const OperandSets& sets, Stream stream)
      : kernel_(kernel), arguments_(sets.arguments()), stream_(stream) {
    if (stream.device().is_cpu()) {
      kernel_.run(arguments_.front(), {.stream = stream});
      return;
    }
    const Artifact artifact = kernel_.compile(arguments_.front());
    for (const GemmArguments& arguments : arguments_) prepared_.push_back(artifact.bind(arguments));
  }

  // Chooses a batch that lasts at least `sample_ms`, while the device warms up.
  void warm_up(const MeasureOptions& options) {
    runs_ = 1;
    double spent_us = 0;
    while (true) {
      batch_ = make_batch({kernel_, arguments_, stream_, runs_, &prepared_});
      const double elapsed = std::min(batch_->elapsed_us(), batch_->elapsed_us());
      spent_us += 2 * elapsed;
      const int wanted = runs_for(options.sample_ms * 1000, elapsed / runs_);
      if (wanted <= runs_ + runs_ / 4) break;
      runs_ = std::min(wanted, 16 * runs_);
    }
    while (spent_us < options.warmup_ms * 1000) spent_us += std::max(batch_->elapsed_us(), 1.0);
  }

  void sample() { times_us_.push_back(batch_->elapsed_us() / runs_); }
  int runs() const { return runs_; }
  std::vector<double>& times_us() { return times_us_; }

 private:
  static int runs_for(double batch_us, double run_us) {
    const double runs = std::ceil(batch_us / std::max(run_us, 0.01));
    return static_cast<int>(std::clamp<double>(runs, 1, longest_batch));
  }

  Kernel kernel_;
  const std::vector<GemmArguments>& arguments_;
  Stream stream_;
  std::vector<PreparedLaunch> prepared_;
  std::unique_ptr<Batch> batch_;
  int runs_ = 1;
  std::vector<double> times_us_;
};

// --- figures ---

// The interpolated value below which `share` of the sorted samples lie.
double quantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(position);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (position - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

int tensor_core_rate(const GemmProblem& problem, Target target) {
  const TensorCoreRates rates = tensor_core_rates(target);
  const DType a = problem.a.dtype;
  if (a == DType::float64) return rates.float64;
  if (is_integer(a)) return rates.integer8;
  if (bit_width(a) == 8) return rates.float8;
  if (bit_width(a) == 16) return rates.half;
  if (problem.math == Math::native) return 0;
  const bool is_tf32 = problem.math == Math::tf32 || problem.math == Math::tf32x3;
  return (is_tf32 ? rates.tf32 : rates.half) / operation::product_count(problem.math);
}

// Multiply-adds per clock and multiprocessor (or core), by the fastest unit for these types.
int peak_rate(const GemmProblem& problem, const DeviceInfo& device) {
  if (device.target.is_cpu()) return platform::host_product_rate(problem.a.dtype);
  const int cuda_cores = problem.accumulator == DType::float64 ? device.fma_f64_per_clock
                         : is_integer(problem.accumulator)     ? 4 * device.fma_int_per_clock
                                                               : device.fma_f32_per_clock;
  return std::max(cuda_cores, tensor_core_rate(problem, device.target));
}

// The minimum time by arithmetic units and memory traffic.
double roofline_us(const GemmProblem& problem, const DeviceInfo& device) {
  const double flops_per_us =
      2e3 * peak_rate(problem, device) * device.multiprocessors * device.clock_ghz;
  const double bytes_per_us = device.bandwidth_bytes_per_second / 1e6;
  const double arithmetic = flops_per_us > 0 ? problem.flops() / flops_per_us : 0;
  const double memory = bytes_per_us > 0 ? problem.bytes() / bytes_per_us : 0;
  return std::max(arithmetic, memory);
}

Measurement summarize(const ProblemLine& line, const DeviceInfo& device, Subject& subject) {
  std::vector<double>& times = subject.times_us();
  std::ranges::sort(times);
  Measurement measurement{.median_us = quantile(times, 0.5),
                          .minimum_us = times.front(),
                          .maximum_us = times.back(),
                          .quartile_low_us = quantile(times, 0.25),
                          .quartile_high_us = quantile(times, 0.75),
                          .samples = static_cast<int>(times.size()),
                          .runs_per_sample = subject.runs(),
                          .roofline_us = roofline_us(line.problem, device)};
  if (measurement.median_us > 0) {
    measurement.flops_per_second = line.problem.flops() / measurement.median_us * 1e6;
    measurement.roofline_share = measurement.roofline_us / measurement.median_us;
  }
  return measurement;
}

const DeviceInfo& facts_of(const Kernel& kernel, Device device) {
  const DeviceInfo* const info = kernel.family().device_info(device);
  if (info != nullptr) return *info;
  throw Error({.kind = ErrorKind::unsupported,
               .operand = "device",
               .expected = "a device that " + kernel.name() + " runs on",
               .got = to_string(device)});
}

void check_options(const MeasureOptions& options) {
  if (options.device.type == DeviceType::emulated) {
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = "device",
                 .expected = "a device that can be timed",
                 .got = to_string(options.device) + ", which is emulated",
                 .hint = "verify and run support it; measure on a GPU or on the CPU"});
  }
  if (options.samples >= 1) return;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "samples",
               .expected = "1 or more",
               .got = std::to_string(options.samples)});
}

}  // namespace

std::vector<Measurement> measure_interleaved(const ProblemLine& line,
                                             const std::vector<Kernel>& kernels,
                                             const MeasureOptions& options) {
  check_options(options);
  if (kernels.empty()) return {};
  const DeviceInfo& device = facts_of(kernels.front(), options.device);
  std::optional<OwnedStream> own;
  if (!options.device.is_cpu()) own.emplace(options.device);
  const Stream stream = own ? own->get() : Stream::cpu();
  const std::uint64_t seed = options.seed != 0 ? options.seed : api::fresh_seed();
  const int count = set_count(line, device);
  const OperandSets sets(line, count, seed, stream);

  std::vector<Subject> subjects;
  subjects.reserve(kernels.size());
  for (const Kernel& kernel : kernels) subjects.emplace_back(kernel, sets, stream);
  for (Subject& subject : subjects) subject.warm_up(options);
  for (int sample = 0; sample < options.samples; ++sample)
    for (Subject& subject : subjects) subject.sample();

  std::vector<Measurement> measurements;
  for (Subject& subject : subjects) {
    measurements.push_back(summarize(line, device, subject));
    measurements.back().buffer_sets = count;
  }
  return measurements;
}

Measurement measure(const ProblemLine& line, const Kernel& kernel, const MeasureOptions& options) {
  return measure_interleaved(line, {kernel}, options).front();
}

}  // namespace gemmery
