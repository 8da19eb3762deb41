// SPDX-License-Identifier: Apache-2.0
// Batches of runs, timed by the device's clock.
#include "api/timed_kernel.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <utility>

#include <gemmery/error.hpp>
#include <gemmery/family.hpp>

#include "api/random_numbers.hpp"
#include "driver/graph.hpp"
#include "driver/stream.hpp"

namespace gemmery::api {

// Runs a kernel some number of times over the sets in turn, and returns the time.
class Batch {
 public:
  virtual ~Batch() = default;
  virtual double elapsed_us() = 0;
};

namespace {

constexpr int smallest_set_count = 2;
constexpr int largest_set_count = 256;
constexpr int longest_batch =
    1000;  // runs per timed batch: a graph of this many nodes is made in milliseconds
constexpr double memory_share = 0.5;  // the largest share of the device's memory for operand sets

// Twice the cache, so that a set has left it before it is used again.
int sets_to_rotate(const ProblemLine& line, const DeviceInfo& device) {
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

int runs_for(double batch_us, double run_us) {
  const double runs = std::ceil(batch_us / std::max(run_us, 0.01));
  return static_cast<int>(std::clamp<double>(runs, 1, longest_batch));
}

std::optional<OwnedStream> own_stream(Device device) {
  std::optional<OwnedStream> own;
  if (!device.is_cpu()) own.emplace(device);
  return own;
}

}  // namespace

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

TimedOperands::TimedOperands(const ProblemLine& line, const DeviceInfo& device,
                             const MeasureOptions& options)
    : own_(own_stream(options.device)),
      stream_(own_ ? own_->get() : Stream::cpu()),
      count_(sets_to_rotate(line, device)),
      sets_(line, count_, options.seed != 0 ? options.seed : fresh_seed(), stream_) {}

TimedKernel::TimedKernel(const Kernel& kernel, const TimedOperands& operands)
    : kernel_(kernel), arguments_(&operands.arguments()), stream_(operands.stream()) {
  if (stream_.device().is_cpu()) {
    kernel_.run(arguments_->front(), {.stream = stream_});
    return;
  }
  const Artifact artifact = kernel_.compile(arguments_->front());
  for (const GemmArguments& arguments : *arguments_) prepared_.push_back(artifact.bind(arguments));
}

TimedKernel::~TimedKernel() = default;

void TimedKernel::warm_up(const MeasureOptions& options) {
  times_us_.clear();
  runs_ = 1;
  double spent_us = 0;
  while (true) {
    batch_ = make_batch({kernel_, *arguments_, stream_, runs_, &prepared_});
    const double elapsed = std::min(batch_->elapsed_us(), batch_->elapsed_us());
    spent_us += 2 * elapsed;
    const int wanted = runs_for(options.sample_ms * 1000, elapsed / runs_);
    if (wanted <= runs_ + runs_ / 4) break;
    runs_ = std::min(wanted, 16 * runs_);
  }
  while (spent_us < options.warmup_ms * 1000) spent_us += std::max(batch_->elapsed_us(), 1.0);
}

void TimedKernel::sample() { times_us_.push_back(batch_->elapsed_us() / runs_); }

}  // namespace gemmery::api
