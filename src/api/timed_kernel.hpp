// SPDX-License-Identifier: Apache-2.0
// Timing of single kernels, sample by sample, over operand sets that together exceed the cache:
// what `measure` and `tune` have in common.
#pragma once

#include <gemmery/buffer.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/measure.hpp>
#include <gemmery/problem.hpp>

#include <memory>
#include <optional>
#include <vector>

#include "api/operand_sets.hpp"

namespace gemmery::api {

// Throws Error for options that cannot be obeyed: unsupported for an emulated device,
// invalid_argument for less than one sample.
void check_options(const MeasureOptions& options);

// The facts of a device as a kernel's family sees them; throws Error (unsupported) if the family
// has no kernels for it.
const DeviceInfo& facts_of(const Kernel& kernel, Device device);

// Operand sets of a problem on a device, and the stream on which kernels run over them.
class TimedOperands {
 public:
  TimedOperands(const ProblemLine& line, const DeviceInfo& device, const MeasureOptions& options);

  Stream stream() const noexcept { return stream_; }
  const std::vector<GemmArguments>& arguments() const { return sets_.arguments(); }
  int set_count() const noexcept { return count_; }

 private:
  std::optional<OwnedStream> own_;
  Stream stream_;
  int count_;
  OperandSets sets_;
};

class Batch;

// A kernel that is timed. The operands must outlive it.
class TimedKernel {
 public:
  // Compiles it, and runs it once on the CPU. Throws what `run` throws.
  TimedKernel(const Kernel& kernel, const TimedOperands& operands);
  TimedKernel(const TimedKernel&) = delete;  // its batch points into it
  ~TimedKernel();

  // Chooses a batch that lasts at least `sample_ms`, while the device warms up. Earlier samples are
  // dropped.
  void warm_up(const MeasureOptions& options);

  // Times one batch.
  void sample();

  int runs() const noexcept { return runs_; }
  // Microseconds per run, one per sample, in their order.
  const std::vector<double>& times_us() const noexcept { return times_us_; }

 private:
  Kernel kernel_;
  const std::vector<GemmArguments>* arguments_;
  Stream stream_;
  std::vector<PreparedLaunch> prepared_;
  std::unique_ptr<Batch> batch_;
  int runs_ = 1;
  std::vector<double> times_us_;
};

}  // namespace gemmery::api
