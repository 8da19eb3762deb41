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
#include <utility>

#include <gemmery/buffer.hpp>
#include <gemmery/error.hpp>
#include <gemmery/family.hpp>

#include "api/epilogue_operands.hpp"
#include "api/guarded_operand.hpp"
#include "core/device_rates.hpp"
#include "driver/graph.hpp"
#include "driver/stream.hpp"
#include "operation/matrix.hpp"
#include "operation/types.hpp"
#include "platform/host_info.hpp"

namespace gemmery {
namespace {

constexpr int smallest_set_count = 2;
constexpr int largest_set_count = 256;
constexpr int longest_batch =
    1000;  // runs per timed batch: a graph of this many nodes is made in milliseconds
constexpr std::size_t pattern_bytes =
    8u << 20;  // random numbers, generated once; operands hold shifted copies of them
constexpr double memory_share = 0.5;  // the largest share of the device's memory for operand sets

// --- operands ---

// Random numbers of one type in host memory, and their copy on the device.
class NumberPattern {
 public:
  NumberPattern(DType dtype, std::uint64_t seed, std::size_t bytes, Stream stream) : dtype_(dtype) {
    const auto elements = static_cast<std::int64_t>(bytes / byte_width(dtype));
    api::GuardedOperand numbers({.type = {.dtype = dtype, .row_stride = 0, .column_stride = 1},
                                 .extents = {1, 1, elements},
                                 .guard_bands = false});
    numbers.fill({.fill = Fill::normal,
                  .seed = seed,
                  .least = is_signed(dtype) ? -127 : 0,
                  .most = 127,
                  .is_integer = is_integer(dtype)});
    bytes_ = static_cast<std::size_t>(elements) * byte_width(dtype);
    buffer_ = Buffer(std::max<std::size_t>(bytes_, 1), stream);
    copy(buffer_.data(), stream.device(), numbers.here().data(), Device::cpu(), bytes_, stream);
    synchronize(stream);
  }

  DType dtype() const { return dtype_; }

  // Fills `bytes` at `destination`, starting `shift` bytes into the pattern.
  void spread(void* destination, std::size_t bytes, std::size_t shift, Stream stream) const {
    const Device device = stream.device();
    shift = bytes_ == 0 ? 0 : shift % bytes_ / 16 * 16;
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t piece = std::min(bytes - done, bytes_ - shift);
      copy(static_cast<std::byte*>(destination) + done, device,
           static_cast<const std::byte*>(buffer_.data()) + shift, device, piece, stream);
      done += piece;
      shift = 0;
    }
  }

 private:
  static bool is_signed(DType dtype) { return facts(dtype).kind != DTypeKind::unsigned_integer; }

  DType dtype_;
  std::size_t bytes_ = 0;
  Buffer buffer_;
};

// An operand's place in memory of its own: the bytes, and the offset of its element 0.
struct Placement {
  MatrixType type;
  api::Extents3 extents;
  api::MatrixStarts starts;
  std::size_t bytes = 0;  // of the elements, which may be any numbers
  std::size_t origin = 0;
  std::size_t array = 0;  // where the pointers begin, behind the elements

  Placement(const MatrixType& matrix, const api::Extents3& sizes)
      : type(matrix), extents(sizes), starts(matrix, sizes) {
    const auto width = static_cast<std::int64_t>(byte_width(type.dtype));
    // A multiple of the stated alignment and of no larger one.
    const std::size_t alignment = type.alignment;
    const auto least = static_cast<std::size_t>(starts.below() * width);
    origin = (least + 255) / 256 * 256 + (alignment < 16 ? alignment : 0);
    bytes =
        origin + static_cast<std::size_t>(std::max<std::int64_t>(starts.above() + 1, 1) * width);
    array = (bytes + 255) / 256 * 256;
  }

  std::size_t all_bytes() const {
    if (!starts.is_pointed()) return bytes;
    return array + static_cast<std::size_t>(extents.batch) * sizeof(void*);
  }

  // Writes the pointers of an operand that has them.
  void put_pointers(void* base, Stream stream) const {
    const auto pointers = starts.pointers(static_cast<const std::byte*>(base) + origin);
    if (pointers.empty()) return;
    copy(static_cast<std::byte*>(base) + array, stream.device(), pointers.data(), Device::cpu(),
         pointers.size() * sizeof(void*), stream);
    synchronize(stream);
  }

  Tensor view(const void* base, Device device) const {
    const auto* const data =
        static_cast<const std::byte*>(base) + (starts.is_pointed() ? array : origin);
    return operation::make_view(data, type, {extents.batch, extents.rows, extents.columns}, device);
  }
};

struct Placements {
  Placement a, b, out;
  std::optional<Placement> c;
  std::vector<Placement> epilogue;

  explicit Placements(const GemmProblem& p)
      : a(p.a, {p.l, p.m, p.k}), b(p.b, {p.l, p.k, p.n}), out(p.out, {p.l, p.m, p.n}) {
    if (p.c) c.emplace(*p.c, api::Extents3{p.l, p.m, p.n});
    for (const api::EpilogueTensor& tensor : api::epilogue_tensors(p))
      epilogue.emplace_back(tensor.type, tensor.extents);
  }
  std::size_t bytes() const {
    std::size_t sum = a.all_bytes() + b.all_bytes() + out.all_bytes() + (c ? c->all_bytes() : 0);
    for (const Placement& place : epilogue) sum += place.all_bytes();
    return sum;
  }
};

// One set of operands.
struct OperandSet {
  Buffer a, b, out, c;
  std::vector<Buffer> epilogue;

  OperandSet(const Placements& places, Stream stream)
      : a(places.a.all_bytes(), stream),
        b(places.b.all_bytes(), stream),
        out(places.out.all_bytes(), stream),
        c(places.c ? Buffer(places.c->all_bytes(), stream) : Buffer()) {
    for (const Placement& place : places.epilogue) epilogue.emplace_back(place.all_bytes(), stream);
    put_pointers(places, stream);
  }

 private:
  void put_pointers(const Placements& places, Stream stream) {
    places.a.put_pointers(a.data(), stream);
    places.b.put_pointers(b.data(), stream);
    places.out.put_pointers(out.data(), stream);
    if (places.c) places.c->put_pointers(c.data(), stream);
    for (std::size_t i = 0; i < epilogue.size(); ++i)
      places.epilogue[i].put_pointers(epilogue[i].data(), stream);
  }
};

class OperandSets {
 public:
  OperandSets(const ProblemLine& line, int count, std::uint64_t seed, Stream stream)
      : line_(line), places_(line.problem), stream_(stream) {
    const GemmProblem& p = line.problem;
    const NumberPattern& a = pattern(p.a.dtype, seed);
    const NumberPattern& b = pattern(p.b.dtype, seed);
    const NumberPattern* const c = p.c ? &pattern(p.c->dtype, seed) : nullptr;
    std::uint64_t next = 0;
    for (int index = 0; index < count; ++index) {
      OperandSet& set = sets_.emplace_back(places_, stream);
      a.spread(set.a.data(), places_.a.bytes, api::random_bits(seed, next++), stream);
      b.spread(set.b.data(), places_.b.bytes, api::random_bits(seed, next++), stream);
      if (c != nullptr)
        c->spread(set.c.data(), places_.c->bytes, api::random_bits(seed, next++), stream);
      for (std::size_t i = 0; i < set.epilogue.size(); ++i)
        pattern(places_.epilogue[i].type.dtype, seed)
            .spread(set.epilogue[i].data(), places_.epilogue[i].bytes,
                    api::random_bits(seed, next++), stream);
    }
    synchronize(stream);
    for (const OperandSet& set : sets_) arguments_.push_back(make_arguments(set));
  }

  const std::vector<GemmArguments>& arguments() const { return arguments_; }

 private:
  const NumberPattern& pattern(DType dtype, std::uint64_t seed) {
    for (const auto& known : patterns_)
      if (known->dtype() == dtype) return *known;
    const std::size_t bytes = std::min(pattern_bytes, std::max(places_.bytes(), std::size_t{4096}));
    patterns_.push_back(
        std::make_unique<NumberPattern>(dtype, seed + patterns_.size(), bytes, stream_));
    return *patterns_.back();
  }

  GemmArguments make_arguments(const OperandSet& set) const {
    const Device device = stream_.device();
    std::optional<Tensor> c;
    if (places_.c) c = places_.c->view(set.c.data(), device);
    std::vector<Tensor> epilogue;
    for (std::size_t i = 0; i < set.epilogue.size(); ++i)
      epilogue.push_back(places_.epilogue[i].view(set.epilogue[i].data(), device));
    GemmOptions options{
        .c = c, .alpha = line_.alpha, .beta = line_.beta, .math = line_.problem.math};
    options.epilogue = api::bind_epilogue(line_, epilogue);
    return GemmArguments(places_.a.view(set.a.data(), device), places_.b.view(set.b.data(), device),
                         places_.out.view(set.out.data(), device), line_.problem.accumulator,
                         options);
  }

  const ProblemLine& line_;
  Placements places_;
  Stream stream_;
  std::vector<std::unique_ptr<NumberPattern>> patterns_;
  std::vector<OperandSet> sets_;
  std::vector<GemmArguments> arguments_;
};

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

// The runs are captured into a graph where that works, so that gaps between launches are the
// device's and not the host's.
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
  if (problem.math == Math::native || operation::has_three_products(problem.math)) return 0;
  return problem.math == Math::tf32 ? rates.tf32 : rates.half;
}

// Multiply-adds per clock and multiprocessor (or core), by the fastest unit for these types.
int peak_rate(const GemmProblem& problem, const DeviceInfo& device) {
  if (device.target.is_cpu()) return platform::host_product_rate(problem.a.dtype);
  const int cuda_cores = problem.accumulator == DType::float64 ? device.fma_f64_per_clock
                         : is_integer(problem.accumulator)     ? 4 * device.fma_int_per_clock
                                                               : device.fma_f32_per_clock;
  return std::max(cuda_cores, tensor_core_rate(problem, device.target));
}

// The least time by arithmetic units and memory traffic.
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
                 .expected = "a device whose times mean something",
                 .got = to_string(options.device) + ", which is emulated",
                 .hint = "verify and run serve on it; measure on a GPU or on the CPU"});
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
