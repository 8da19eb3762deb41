// SPDX-License-Identifier: Apache-2.0
// Compares the library's kernels with cuBLASLt's first choice, in interleaved pairs of timed
// batches in one process: JSON lines, then a table.
//
//   gemm_peers [--device 0] [--pairs 7] [--sample-ms 20] [--top N] [--class simt] [--families]
//   [--kernel NAME] … [--rotate] [--announce] [--json FILE] 'gemm 4096x4096x4096 a=f32' …
//
// Compares the first N kernels of discovery (default 1); with --class only those of the class (all
// of them unless N is given); with --families the first of each family; and the kernels that
// --kernel names. With --kernel and without --top only these are compared. By default each kernel
// is raced alone with cuBLASLt. With --rotate all kernels of a problem and cuBLASLt take turns, and
// each one's ratio to the first is printed, too. A ratio is cuBLASLt's time over ours: above 1 we
// are faster. If cuBLASLt does not support a problem, our kernels are timed alone, the reason is
// printed, and results are compared with those of the last kernel of discovery instead. --announce
// prints a problem's name before its race, so that tools/run_races.py knows which one a process
// died of.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <gemmery/gemmery.hpp>

#include "cublaslt_peer.hpp"
#include "device_clock.hpp"

namespace gemmery::peers {
namespace {

constexpr std::size_t workspace_bytes = std::size_t{64} << 20;
constexpr std::size_t pattern_elements = std::size_t{4} << 20;
constexpr int longest_batch = 1000;

struct Options {
  int device = 0;
  int pairs = 7;
  double sample_ms = 20;
  std::vector<std::string> kernels;
  std::string kernel_class;
  bool is_by_family = false;
  std::optional<std::size_t> top;
  bool is_rotation = false;
  bool is_announced = false;
  std::string json;
  std::vector<std::string> problems;
};

Options read_options(int count, char** words) {
  Options options;
  for (int at = 1; at < count; ++at) {
    const std::string word = words[at];
    const auto value = [&] {
      if (at + 1 >= count) throw std::runtime_error(word + " needs a value");
      return std::string(words[++at]);
    };
    if (word == "--device")
      options.device = std::stoi(value());
    else if (word == "--pairs")
      options.pairs = std::max(std::stoi(value()), 1);
    else if (word == "--sample-ms")
      options.sample_ms = std::stod(value());
    else if (word == "--kernel")
      options.kernels.push_back(value());
    else if (word == "--class")
      options.kernel_class = value();
    else if (word == "--top")
      options.top = std::stoul(value());
    else if (word == "--families")
      options.is_by_family = true;
    else if (word == "--rotate")
      options.is_rotation = true;
    else if (word == "--announce")
      options.is_announced = true;
    else if (word == "--json")
      options.json = value();
    else if (word.starts_with("--"))
      throw std::runtime_error("unknown option " + word);
    else
      options.problems.push_back(word);
  }
  if (options.problems.empty())
    throw std::runtime_error("name at least one problem, such as 'gemm 4096x4096x4096 a=f32'");
  return options;
}

// --- numbers ---

// The 16-bit code nearest to `value`, ties rounded up, which suffices for data.
std::uint16_t narrow(float value, DType dtype) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if (dtype == DType::bfloat16) return static_cast<std::uint16_t>((bits + 0x8000u) >> 16);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const float magnitude = std::abs(value);
  if (magnitude < 0x1p-14f) return sign;
  std::memcpy(&bits, &magnitude, sizeof bits);
  return static_cast<std::uint16_t>(sign | (((bits + 0x1000u) >> 13) - (112u << 10)));
}

// The value of a code of at most 16 bits, NaN for infinities and NaN (which poison holds).
double decode(std::uint32_t code, DType dtype) {
  const int bits = facts(dtype).mantissa_bits;
  const int largest = (1 << facts(dtype).exponent_bits) - 1;
  const int exponent = static_cast<int>(code >> bits) & largest;
  const double mantissa = (code & ((1u << bits) - 1)) * std::ldexp(1.0, -bits);
  const bool is_finite =
      dtype == DType::float8_e4m3fn ? (code & 0x7f) != 0x7f : exponent != largest;
  if (!is_finite) return std::nan("");
  const int bias = largest / 2;
  const double size =
      exponent == 0 ? std::ldexp(mantissa, 1 - bias) : std::ldexp(1 + mantissa, exponent - bias);
  return ((code >> (bit_width(dtype) - 1)) & 1) != 0 ? -size : size;
}

double widen(const std::byte* data, DType dtype) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, data, sizeof value);
    return value;
  };
  if (dtype == DType::float64) return as(double{});
  if (dtype == DType::float32) return static_cast<double>(as(float{}));
  if (dtype == DType::int32) return as(std::int32_t{});
  if (dtype == DType::int8) return as(std::int8_t{});
  if (dtype == DType::uint8) return as(std::uint8_t{});
  if (byte_width(dtype) == 2) return decode(as(std::uint16_t{}), dtype);
  return decode(as(std::uint8_t{}), dtype);
}

void append(std::vector<std::byte>& bytes, const void* value, std::size_t size) {
  const auto* const first = static_cast<const std::byte*>(value);
  bytes.insert(bytes.end(), first, first + size);
}

std::vector<std::byte> random_normal(DType dtype, std::mt19937_64& source) {
  std::normal_distribution<float> normal;
  std::vector<std::byte> bytes;
  bytes.reserve(pattern_elements * byte_width(dtype));
  for (std::size_t i = 0; i < pattern_elements; ++i) {
    const float value = normal(source);
    const double wide = static_cast<double>(value);
    if (dtype == DType::float64)
      append(bytes, &wide, 8);
    else if (dtype == DType::float32)
      append(bytes, &value, 4);
    else if (bit_width(dtype) == 16) {
      const std::uint16_t code = narrow(value, dtype);
      append(bytes, &code, 2);
    } else if (is_integer(dtype)) {
      const auto code = static_cast<std::int8_t>(std::clamp(std::lround(32 * value), -127L, 127L));
      append(bytes, &code, 1);
    } else {
      // fp8: sign, a spread of exponents around 1, random mantissa.
      const std::uint64_t bits = source();
      const int mantissa_bits = facts(dtype).mantissa_bits;
      const int bias = (1 << (facts(dtype).exponent_bits - 1)) - 1;
      const auto code = static_cast<std::uint8_t>(
          ((bits & 1) << 7) |
          (static_cast<std::uint64_t>(bias - 2 + static_cast<int>((bits >> 8) % 4))
           << mantissa_bits) |
          ((bits >> 16) & ((1u << mantissa_bits) - 1)));
      append(bytes, &code, 1);
    }
  }
  return bytes;
}

// --- operands ---

struct Placement {
  MatrixType type;
  std::array<std::int64_t, 3> extents;
  std::size_t origin = 0;
  std::size_t bytes = 0;

  Placement(const MatrixType& matrix, std::array<std::int64_t, 3> sizes)
      : type(matrix), extents(sizes) {
    const std::array strides{type.batch_stride, type.row_stride, type.column_stride};
    std::int64_t below = 0;
    std::int64_t above = 0;
    for (std::size_t d = 0; d < 3; ++d) {
      const std::int64_t step = std::max<std::int64_t>(extents[d] - 1, 0) * strides[d];
      (step < 0 ? below : above) += std::abs(step);
    }
    const std::size_t width = byte_width(type.dtype);
    origin = (static_cast<std::size_t>(below) * width + 255) / 256 * 256 +
             (type.alignment < 16 ? type.alignment : 0);
    bytes = origin + static_cast<std::size_t>(above + 1) * width;
  }
  Tensor view(const Buffer& buffer) const {
    return Tensor(static_cast<const std::byte*>(buffer.data()) + origin, type.dtype, extents,
                  std::array{type.batch_stride, type.row_stride, type.column_stride},
                  buffer.device());
  }
};

// Sets of operands that together exceed twice the cache.
class Operands {
 public:
  Operands(const ProblemLine& line, std::int64_t l2_bytes, Stream stream, std::uint64_t seed)
      : a_(line.problem.a, {line.problem.l, line.problem.m, line.problem.k}),
        b_(line.problem.b, {line.problem.l, line.problem.k, line.problem.n}),
        out_(line.problem.out, {line.problem.l, line.problem.m, line.problem.n}) {
    std::mt19937_64 source(seed);
    if (line.problem.c) c_.emplace(*line.problem.c, out_.extents);
    const std::size_t bytes = a_.bytes + b_.bytes + out_.bytes + (c_ ? c_->bytes : 0);
    const std::size_t sets =
        std::clamp<std::size_t>(2 * static_cast<std::size_t>(l2_bytes) / bytes + 1, 2, 256);
    for (std::size_t set = 0; set < sets; ++set) {
      const Tensor a = a_.view(fill(a_, stream, source));
      const Tensor b = b_.view(fill(b_, stream, source));
      std::optional<Tensor> c;
      if (c_) c = c_->view(fill(*c_, stream, source));
      const Tensor out = out_.view(buffers_.emplace_back(out_.bytes, stream));
      arguments_.emplace_back(
          a, b, out, line.problem.accumulator,
          GemmOptions{.c = c, .alpha = line.alpha, .beta = line.beta, .math = line.problem.math});
    }
    synchronize(stream);
  }

  const std::vector<GemmArguments>& arguments() const { return arguments_; }

  // The elements of the first set's out, a few thousand of them spread over it.
  std::vector<double> sample_out(Stream stream) const {
    std::vector<double> values;
    const Tensor& out = arguments_.front().out();
    const std::int64_t count = out.element_count();
    const std::size_t width = byte_width(out.dtype());
    std::vector<std::byte> host(out_.bytes - out_.origin);
    copy(host.data(), Device::cpu(), out.data(), out.device(), host.size(), stream);
    synchronize(stream);
    const std::int64_t step = std::max<std::int64_t>(count / 65536, 1) | 1;
    for (std::int64_t i = 0; i < count; i += step) {
      const std::int64_t n = out.extent(2);
      const std::int64_t m = out.extent(1);
      const std::int64_t index =
          i / (m * n) * out.stride(0) + i / n % m * out.stride(1) + i % n * out.stride(2);
      values.push_back(widen(host.data() + static_cast<std::size_t>(index) * width, out.dtype()));
    }
    return values;
  }
  void poison_out(Stream stream) const {
    gemmery::fill(arguments_.front().out().data(), 0xff, out_.bytes - out_.origin, stream);
  }

 private:
  // One pattern per type is made on the host; operands are filled with copies of it, each from
  // another offset.
  const Buffer& fill(const Placement& place, Stream stream, std::mt19937_64& source) {
    const Buffer& pattern = pattern_of(place.type.dtype, stream, source);
    Buffer& buffer = buffers_.emplace_back(place.bytes, stream);
    std::size_t shift = source() % pattern.bytes() / 16 * 16;
    for (std::size_t done = 0; done < place.bytes;) {
      const std::size_t piece = std::min(place.bytes - done, pattern.bytes() - shift);
      copy(static_cast<std::byte*>(buffer.data()) + done, buffer.device(),
           static_cast<const std::byte*>(pattern.data()) + shift, buffer.device(), piece, stream);
      done += piece;
      shift = 0;
    }
    return buffer;
  }
  const Buffer& pattern_of(DType dtype, Stream stream, std::mt19937_64& source) {
    for (const auto& [known, buffer] : patterns_)
      if (known == dtype) return buffer;
    const std::vector<std::byte> bytes = random_normal(dtype, source);
    Buffer buffer(bytes.size(), stream);
    copy(buffer.data(), buffer.device(), bytes.data(), Device::cpu(), bytes.size(), stream);
    synchronize(stream);
    return patterns_.emplace_back(dtype, std::move(buffer)).second;
  }

  Placement a_, b_, out_;
  std::optional<Placement> c_;
  std::vector<std::pair<DType, Buffer>> patterns_;
  std::vector<Buffer> buffers_;
  std::vector<GemmArguments> arguments_;
};

// --- pairs ---

struct Quantiles {
  double low, median, high, least, most;

  explicit Quantiles(std::vector<double> values) {
    std::ranges::sort(values);
    const auto at = [&](double share) {
      const double position = share * static_cast<double>(values.size() - 1);
      const auto index = static_cast<std::size_t>(position);
      const double next = values[std::min(index + 1, values.size() - 1)];
      return values[index] + (position - std::floor(position)) * (next - values[index]);
    };
    low = at(0.25);
    median = at(0.5);
    high = at(0.75);
    least = values.front();
    most = values.back();
  }
};

// A batch of launches over the sets in turn, long enough to be timed.
struct Contender {
  explicit Contender(std::function<void(std::size_t)> launch_on_set)
      : launch(std::move(launch_on_set)) {}

  std::function<void(std::size_t)> launch;  // on set i
  std::optional<DeviceClock::Recording> recording;
  int runs = 1;
  std::vector<double> times_us;
  std::vector<BoardState> states;

  void record(const DeviceClock& clock, Stream stream, std::size_t sets, double sample_us) {
    const auto batch = [this, sets](int count) {
      return [this, sets, count] {
        for (int run = 0; run < count; ++run) launch(static_cast<std::size_t>(run) % sets);
      };
    };
    recording.emplace(clock, stream.handle(), batch(4));
    recording->elapsed_us();
    const double once = std::max(recording->elapsed_us() / 4, 0.1);
    runs = static_cast<int>(
        std::clamp(std::ceil(sample_us / once), 1.0, static_cast<double>(longest_batch)));
    recording.emplace(clock, stream.handle(), batch(runs));
    recording->elapsed_us();
  }
  void sample(int device) {
    const double elapsed = recording->elapsed_us([&] { states.push_back(read_board(device)); });
    times_us.push_back(elapsed / runs);
  }
};

double relative_difference(const std::vector<double>& ours, const std::vector<double>& theirs) {
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    difference += (ours[i] - theirs[i]) * (ours[i] - theirs[i]);
    size += theirs[i] * theirs[i];
  }
  return size == 0 ? std::sqrt(difference) : std::sqrt(difference / size);
}

double median_of(const std::vector<BoardState>& states, double (*read)(const BoardState&)) {
  std::vector<double> values;
  for (const BoardState& state : states) values.push_back(read(state));
  return Quantiles(values).median;
}

// A family's first kernel takes part if it is predicted to be at most this much slower than the
// first of all.
constexpr double slowest_family = 4;

std::vector<RankedKernel> first_of_families(const std::vector<RankedKernel>& ranking) {
  std::vector<RankedKernel> firsts;
  for (const RankedKernel& kernel : ranking) {
    const auto is_of_its_family = [&](const RankedKernel& other) {
      return other.family().name() == kernel.family().name();
    };
    if (kernel.predicted_us <= slowest_family * ranking.front().predicted_us &&
        std::ranges::none_of(firsts, is_of_its_family))
      firsts.push_back(kernel);
  }
  return firsts;
}

// The first kernels of discovery, of one class if requested.
std::vector<RankedKernel> list_kernels(const Options& options,
                                       const std::vector<RankedKernel>& ranking) {
  if (options.is_by_family) return first_of_families(ranking);
  std::vector<RankedKernel> kernels;
  for (const RankedKernel& kernel : ranking) {
    const bool is_wanted =
        options.kernel_class.empty() || kernel.family().name() == options.kernel_class;
    if (is_wanted) kernels.push_back(kernel);
  }
  const std::size_t limit = options.top.value_or(options.kernel_class.empty() ? 1 : kernels.size());
  if (kernels.size() > limit)
    kernels.erase(kernels.begin() + static_cast<std::ptrdiff_t>(limit), kernels.end());
  return kernels;
}

// A kernel by its name, with its predicted time; NaN if discovery does not list it.
RankedKernel named_kernel(const std::string& name, const std::vector<RankedKernel>& ranking) {
  const auto kernel = find_kernel(name);
  if (!kernel) throw std::runtime_error("no kernel is called " + name);
  const auto place = std::ranges::find_if(ranking, [&](const RankedKernel& other) {
    return static_cast<const Kernel&>(other) == *kernel;
  });
  return place == ranking.end() ? RankedKernel(*kernel, std::nan("")) : *place;
}

std::vector<RankedKernel> choose_kernels(const Options& options,
                                         const std::vector<RankedKernel>& ranking) {
  std::vector<RankedKernel> kernels;
  const bool is_by_name_only = !options.kernels.empty() && !options.top &&
                               options.kernel_class.empty() && !options.is_by_family;
  if (!is_by_name_only) kernels = list_kernels(options, ranking);
  for (const std::string& name : options.kernels) {
    const RankedKernel kernel = named_kernel(name, ranking);
    const auto is_same = [&](const Kernel& other) { return other == kernel; };
    if (std::ranges::none_of(kernels, is_same)) kernels.push_back(kernel);
  }
  if (kernels.empty()) throw std::runtime_error("discovery returns no such kernel");
  return kernels;
}

// Compiles all kernels in parallel, so that later uses find them compiled.
void compile_side_by_side(const std::vector<RankedKernel>& kernels, Device device) {
  std::vector<CompileJob> jobs;
  for (const Kernel& kernel : kernels)
    jobs.push_back({kernel, kernel.family().target_for(kernel, device_info(device))});
  for (const CompileResult& result : compile_all(jobs))
    if (result.error) throw Error(*result.error);
}

struct Row {
  nlohmann::json record;
  std::string text;
};

// A kernel with its launches, one for each operand set.
struct Contestant {
  Contestant(const RankedKernel& its_kernel, const std::vector<GemmArguments>& sets, Stream stream)
      : kernel(its_kernel),
        contender([this, stream](std::size_t set) { prepared[set].launch(stream); }) {
    const Artifact artifact = kernel.compile(sets.front());
    for (const GemmArguments& set : sets) prepared.push_back(artifact.bind(set));
  }
  Contestant(const Contestant&) = delete;
  Contestant& operator=(const Contestant&) = delete;

  RankedKernel kernel;
  std::vector<PreparedLaunch> prepared;
  Contender contender;
};

// cuBLASLt's choice for a problem, or the reason why there is none.
struct Peer {
  std::optional<CublasLtPeer> library;
  std::string refusal;

  explicit Peer(const GemmArguments& arguments) {
    try {
      library.emplace(arguments, workspace_bytes);
    } catch (const std::runtime_error& error) {
      refusal = error.what();
    }
  }
};

// Ratios, round by round.
Quantiles quotients(const std::vector<double>& above, const std::vector<double>& below) {
  std::vector<double> values;
  for (std::size_t at = 0; at < above.size(); ++at) values.push_back(above[at] / below[at]);
  return Quantiles(std::move(values));
}

// Kernels against the peer on one problem.
class Comparison {
 public:
  Comparison(const Options& options, const ProblemLine& line, const Operands& operands,
             Stream stream)
      : options_(options),
        line_(line),
        operands_(operands),
        stream_(stream),
        clock_(options.device),
        workspace_(workspace_bytes, stream),
        peer_(operands.arguments().front()),
        ranking_(get_kernels(operands.arguments().front())) {}

  const std::vector<RankedKernel>& ranking() const { return ranking_; }

  // All kernels and the peer take turns.
  std::vector<Row> run(const std::vector<RankedKernel>& kernels) {
    const auto& arguments = operands_.arguments();
    std::deque<Contestant> ours;
    for (const RankedKernel& kernel : kernels) ours.emplace_back(kernel, arguments, stream_);
    std::vector<double> differences;
    for (Contestant& contestant : ours)
      differences.push_back(compare_results(contestant.prepared.front()));
    Contender theirs([&](std::size_t set) { run_peer(set); });
    std::vector<Contender*> turns;
    if (peer_.library) turns.push_back(&theirs);
    for (Contestant& contestant : ours) turns.push_back(&contestant.contender);
    take_turns(std::move(turns));
    std::vector<Row> rows;
    for (std::size_t at = 0; at < ours.size(); ++at)
      rows.push_back(report(ours[at], ours.front(), theirs, ours.size(), differences[at]));
    return rows;
  }

 private:
  void run_peer(std::size_t set) const {
    peer_.library->run(operands_.arguments()[set], workspace_.data(), stream_.handle());
  }

  // Two contenders alternate in going first; more run in a new random order each time.
  void take_turns(std::vector<Contender*> turns) {
    std::ranges::reverse(turns);  // ours first
    for (Contender* const contender : turns)
      contender->record(clock_, stream_, operands_.arguments().size(), 1000 * options_.sample_ms);
    for (int round = 0; round < options_.pairs; ++round) {
      for (Contender* const contender : turns) contender->sample(options_.device);
      if (turns.size() > 2)
        std::ranges::shuffle(turns, order_);
      else
        std::ranges::reverse(turns);
    }
  }

  double compare_results(PreparedLaunch& prepared) {
    operands_.poison_out(stream_);
    prepared.launch(stream_);
    const std::vector<double> ours = operands_.sample_out(stream_);
    return relative_difference(ours, expected_results());
  }

  // The results of the peer, or of discovery's last kernel, which is the simplest one.
  const std::vector<double>& expected_results() {
    if (!expected_.empty()) return expected_;
    operands_.poison_out(stream_);
    if (peer_.library)
      run_peer(0);
    else
      ranking_.back().run(operands_.arguments().front(), {.stream = stream_});
    return expected_ = operands_.sample_out(stream_);
  }

  Row report(const Contestant& contestant, const Contestant& first, const Contender& theirs,
             std::size_t contestants, double difference) const {
    Row row = report_ours(contestant, first, contestants, difference);
    if (peer_.library) {
      report_theirs(row, contestant.contender, theirs);
    } else {
      row.record.update(
          {{"peer_refusal", peer_.refusal}, {"compared_with", ranking_.back().name()}});
      row.text += fmt::format(" {:>10} {:>7} {:>22}", "-", "-", "");
    }
    row.text +=
        fmt::format(" {:9.1e} {:7.3f}  {}", difference,
                    quotients(first.contender.times_us, contestant.contender.times_us).median,
                    contestant.kernel.name());
    return row;
  }

  Row report_ours(const Contestant& contestant, const Contestant& first, std::size_t contestants,
                  double difference) const {
    const Contender& ours = contestant.contender;
    const Quantiles behind = quotients(first.contender.times_us, ours.times_us);
    const Quantiles us(ours.times_us);
    Row row;
    row.record = {{"problem", to_string(line_)},
                  {"device", device_info(Device::cuda(options_.device)).name},
                  {"kernel", contestant.kernel.name()},
                  {"predicted_us", contestant.kernel.predicted_us},
                  {"pairs", options_.pairs},
                  {"kernels_in_turn", contestants},
                  {"operand_sets", operands_.arguments().size()},
                  {"ours_us", us.median},
                  {"ours_us_quartiles", {us.low, us.high}},
                  {"ours_runs_per_batch", ours.runs},
                  {"ours_tflops", line_.problem.flops() / us.median / 1e6},
                  {"first_over_this_median", behind.median},
                  {"first_over_this_quartiles", {behind.low, behind.high}},
                  {"relative_difference", difference},
                  {"ours_sm_clock_mhz", median_of(ours.states, clock_of)},
                  {"ours_power_w", median_of(ours.states, power_of)},
                  {"gemmery", version()}};
    row.text = fmt::format("{:52} {:10.2f} {:7.1f}", to_string(line_), us.median,
                           line_.problem.flops() / us.median / 1e6);
    return row;
  }

  void report_theirs(Row& row, const Contender& ours, const Contender& theirs) const {
    const Quantiles ratio = quotients(theirs.times_us, ours.times_us);
    const Quantiles us(theirs.times_us);
    row.record.update({{"peer", "cublaslt"},
                       {"peer_version", CublasLtPeer::version()},
                       {"peer_compute", peer_.library->compute()},
                       {"peer_algorithm", peer_.library->algorithm()},
                       {"compared_with", "cublaslt"},
                       {"theirs_us", us.median},
                       {"theirs_runs_per_batch", theirs.runs},
                       {"theirs_tflops", line_.problem.flops() / us.median / 1e6},
                       {"ratio_median", ratio.median},
                       {"ratio_quartiles", {ratio.low, ratio.high}},
                       {"ratio_range", {ratio.least, ratio.most}},
                       {"theirs_sm_clock_mhz", median_of(theirs.states, clock_of)},
                       {"theirs_power_w", median_of(theirs.states, power_of)}});
    row.text +=
        fmt::format(" {:10.2f} {:7.1f} {:7.3f} [{:.3f}, {:.3f}]", us.median,
                    line_.problem.flops() / us.median / 1e6, ratio.median, ratio.least, ratio.most);
  }

  static double clock_of(const BoardState& state) {
    return static_cast<double>(state.sm_clock_mhz);
  }
  static double power_of(const BoardState& state) { return state.power_w; }

  const Options& options_;
  const ProblemLine& line_;
  const Operands& operands_;
  Stream stream_;
  DeviceClock clock_;
  Buffer workspace_;
  Peer peer_;
  std::vector<RankedKernel> ranking_;
  std::vector<double> expected_;
  std::mt19937 order_{std::random_device{}()};
};

void compare(const Options& options, const std::string& text, std::ostream& json,
             std::vector<std::string>& table) {
  const ProblemLine line = parse_problem(text);
  const Device device = Device::cuda(options.device);
  const OwnedStream stream(device);
  const Operands operands(line, device_info(device).l2_bytes, stream, std::random_device{}());
  Comparison comparison(options, line, operands, stream);
  const std::vector<RankedKernel> kernels = choose_kernels(options, comparison.ranking());
  compile_side_by_side(kernels, device);
  const auto run = [&](const std::vector<RankedKernel>& in_turn) {
    for (const Row& row : comparison.run(in_turn)) {
      json << row.record.dump() << std::endl;
      table.push_back(row.text);
    }
  };
  if (options.is_rotation) return run(kernels);
  for (const RankedKernel& kernel : kernels) run({kernel});
}

int run(int count, char** words) {
  const Options options = read_options(count, words);
  device_info(Device::cuda(options.device));  // throws if there is none
  std::ofstream file;
  if (!options.json.empty()) file.open(options.json);
  std::ostream& json = options.json.empty() ? std::cout : file;
  std::vector<std::string> table;
  int failures = 0;
  for (const std::string& problem : options.problems) {
    if (options.is_announced) json << nlohmann::json{{"begins", problem}}.dump() << std::endl;
    try {
      compare(options, problem, json, table);
    } catch (const std::exception& error) {
      json << nlohmann::json{{"problem", problem}, {"error", error.what()}}.dump() << std::endl;
      table.push_back(problem + ": " + error.what());
      ++failures;
    }
  }
  std::cout << fmt::format("{:52} {:>10} {:>7} {:>10} {:>7} {:>7} {:>14} {:>9} {:>7}\n", "problem",
                           "ours us", "TF", "theirs us", "TF", "ratio", "range", "differs",
                           "first/");
  for (const std::string& row : table) std::cout << row << "\n";
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace gemmery::peers

int main(int count, char** words) {
  try {
    return gemmery::peers::run(count, words);
  } catch (const std::exception& error) {
    std::cerr << "gemm_peers: " << error.what() << "\n";
    return 2;
  }
}
