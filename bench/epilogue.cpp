// SPDX-License-Identifier: Apache-2.0
// The cost of a fused epilogue. For each problem and program it races the best plain kernel, the
// kernel that discovery ranks first for the program, the best of several, and that one's tile
// without a program, in rotation; and prints the time for the program's own bytes and the goal.
// Usage:
//
//   epilogue [--designs N] [--pairs P] [--sample-ms M] [--line NAME] [--device DEVICE]
//            [--extents MxNxK] [--list]
//
// --line: programs whose name begins with NAME. --extents: replaces the three problems. --list:
// prints the kernels that an H200 would be offered, without a device. bench/peers/torch_epilogue.py
// times torch on the same programs.
#include <gemmery/gemmery.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using gemmery::Buffer;
using gemmery::DType;
using gemmery::Kernel;
using gemmery::PreparedLaunch;
using gemmery::Stream;
using gemmery::Tensor;
using Clock = std::chrono::steady_clock;

constexpr double bytes_per_us = 4.2e6;  // of copies on an H200

struct Extents {
  std::int64_t m, n, k;
};

struct ProgramRow {
  std::string_view name;
  std::string_view text;
  bool has_bias, has_matrix, has_amax;
  double goal_percent;  // at a K below 1024; 5 from there on
};
constexpr ProgramRow programs[] = {
    {"gelu", "D = gelu(accum)", false, false, false, 12},
    {"bias + gelu", "D = gelu(accum + bias)", true, false, false, 12},
    {"bias + gelu_tanh", "D = gelu_tanh(accum + bias)", true, false, false, 8},
    {"residual add", "D = accum + aux", false, true, false, 12},
    {"sigmoid * aux", "D = sigmoid(accum) * aux", false, true, false, 12},
    {"bias + gelu, amax", "D = gelu(accum + bias); amax = amax(D)", true, false, true, 12},
};

double goal_percent(const ProgramRow& program, const Extents& extents) {
  return extents.k >= 1024 ? 5 : program.goal_percent;
}

struct Options {
  std::size_t designs = 8;
  int pairs = 7;
  double sample_ms = 5;
  std::string line;
  std::string device;
  std::vector<Extents> problems = {{4096, 4096, 4096}, {8192, 8192, 1024}, {8192, 4096, 512}};
  bool lists = false;
};

[[noreturn]] void refuse(std::string_view what, std::string_view expected, std::string_view got) {
  fmt::print(stderr, "epilogue: {}: expected {}, got {}\n", what, expected, got);
  std::exit(2);
}

double read_number(std::string_view option, const std::string& word) {
  char* end = nullptr;
  const double number = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0' || !(number > 0)) refuse(option, "a positive number", word);
  return number;
}

Extents read_extents(const std::string& word) {
  Extents extents{};
  char rest = 0;
  const int found =
      std::sscanf(word.c_str(), "%ldx%ldx%ld%c", &extents.m, &extents.n, &extents.k, &rest);
  if (found != 3 || std::min({extents.m, extents.n, extents.k}) < 1)
    refuse("--extents", "MxNxK", word);
  return extents;
}

Options read_options(std::span<char*> words) {
  Options options;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string_view option = words[at];
    if (option == "--list") {
      options.lists = true;
      continue;
    }
    const std::string value = at + 1 < words.size() ? words[at + 1] : "";
    if (option == "--designs")
      options.designs = static_cast<std::size_t>(std::max(1.0, read_number(option, value)));
    else if (option == "--pairs")
      options.pairs = std::max(1, static_cast<int>(read_number(option, value)));
    else if (option == "--sample-ms")
      options.sample_ms = read_number(option, value);
    else if (option == "--line")
      options.line = value;
    else if (option == "--device")
      options.device = value;
    else if (option == "--extents")
      options.problems = {read_extents(value)};
    else
      refuse("option", "--designs, --pairs, --sample-ms, --line, --device, --extents or --list",
             option);
    ++at;
  }
  return options;
}

std::vector<const ProgramRow*> chosen_programs(const Options& options) {
  std::vector<const ProgramRow*> chosen;
  for (const ProgramRow& program : programs)
    if (program.name.starts_with(options.line)) chosen.push_back(&program);
  if (chosen.empty()) refuse("--line", "the beginning of a program's name", options.line);
  return chosen;
}

std::vector<std::uint16_t> random_bfloat16(std::size_t count) {
  std::mt19937 random(20261121);
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> values(count);
  for (std::uint16_t& value : values) {
    const float number = normal(random);
    std::uint32_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    value = static_cast<std::uint16_t>(bits >> 16);
  }
  return values;
}

// A matrix on the device, filled with the same million random numbers again and again.
class Matrix {
 public:
  Matrix(std::int64_t rows, std::int64_t columns, Stream stream)
      : rows_(rows),
        columns_(columns),
        buffer_(static_cast<std::size_t>(rows * columns) * 2, stream) {
    static const std::vector<std::uint16_t> numbers = random_bfloat16((1 << 20) + 17);
    char* const data = static_cast<char*>(buffer_.data());
    const std::size_t period = numbers.size() * 2 / 16 * 16;
    for (std::size_t at = 0; at < buffer_.bytes(); at += period)
      gemmery::copy(data + at, buffer_.device(), numbers.data(), gemmery::Device::cpu(),
                    std::min(period, buffer_.bytes() - at), stream);
  }
  Tensor view() const {
    return Tensor(buffer_.data(), DType::bfloat16, {rows_, columns_}, buffer_.device());
  }
  Tensor transposed() const {
    return Tensor(buffer_.data(), DType::bfloat16, {columns_, rows_}, {1, columns_},
                  buffer_.device());
  }

 private:
  std::int64_t rows_, columns_;
  Buffer buffer_;
};

// A kernel bound to the operands of a race.
struct Contestant {
  std::string name;
  PreparedLaunch launch;
};

// "..._128x192x64_1x1_pingpong_m8" of a kernel's name: all but stages and program.
std::string_view tile_of(std::string_view name) { return name.substr(0, name.rfind("_s")); }

class Race {
 public:
  Race(const Extents& extents, Stream stream, const Options& options)
      : stream_(stream),
        sample_ms_(options.sample_ms),
        designs_(options.designs),
        a_(extents.m, extents.k, stream),
        b_(extents.n, extents.k, stream),
        out_(extents.m, extents.n, stream),
        aux_(extents.m, extents.n, stream),
        bias_(1, extents.n, stream),
        amax_(256, stream) {
    gemmery::synchronize(stream_);
  }

  gemmery::GemmArguments arguments(const ProgramRow* program) const {
    gemmery::GemmOptions options;
    if (program != nullptr) {
      std::vector<gemmery::EpilogueOperand> operands;
      if (program->has_bias) operands.push_back({"bias", bias_.view()});
      if (program->has_matrix) operands.push_back({"aux", aux_.view()});
      if (program->has_amax)
        operands.push_back({"amax", Tensor(amax_.data(), DType::float32, {1}, amax_.device())});
      options.epilogue = gemmery::EpilogueArguments(program->text, std::move(operands));
    }
    return gemmery::GemmArguments(a_.view(), b_.transposed(), out_.view(), options);
  }

  // The first few kernels of discovery, in its order, compiled in parallel.
  std::vector<Contestant> contestants(const ProgramRow* program) const {
    const auto kernels = gemmery::get_kernels(arguments(program));
    return bind_all({kernels.begin(), kernels.begin() + static_cast<std::ptrdiff_t>(
                                                            std::min(kernels.size(), designs_))},
                    program);
  }

  // The plain kernel with the same tile, if there is one.
  std::optional<Contestant> plain_with_tile_of(std::string_view name) const {
    for (const Kernel& kernel : gemmery::get_kernels(arguments(nullptr)))
      if (tile_of(kernel.name()) == tile_of(name))
        return std::move(bind_all({kernel}, nullptr).front());
    return std::nullopt;
  }

  // The mean of a batch that lasts `sample_ms`.
  double time_us(PreparedLaunch& launch) const {
    launch.launch(stream_);
    gemmery::synchronize(stream_);
    const double one = batch_us(launch, 4);
    return batch_us(launch, std::max(4, static_cast<int>(1000 * sample_ms_ / one)));
  }

 private:
  std::vector<Contestant> bind_all(const std::vector<Kernel>& kernels,
                                   const ProgramRow* program) const {
    const gemmery::GemmArguments bound = arguments(program);
    std::vector<std::optional<gemmery::Artifact>> compiled(kernels.size());
    {
      std::atomic<std::size_t> next{0};
      std::vector<std::jthread> threads;
      for (unsigned count = std::max(1U, std::thread::hardware_concurrency()); count > 0; --count) {
        threads.emplace_back([&] {
          for (std::size_t at; (at = next++) < kernels.size();)
            compiled[at] = kernels[at].compile(bound);
        });
      }
    }
    std::vector<Contestant> contestants;
    for (std::size_t at = 0; at < kernels.size(); ++at)
      contestants.push_back({kernels[at].name(), compiled[at]->bind(bound)});
    return contestants;
  }

  double batch_us(PreparedLaunch& launch, int runs) const {
    const auto start = Clock::now();
    for (int run = 0; run < runs; ++run) launch.launch(stream_);
    gemmery::synchronize(stream_);
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / runs;
  }

  Stream stream_;
  double sample_ms_;
  std::size_t designs_;
  Matrix a_, b_, out_, aux_, bias_;
  Buffer amax_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Times of one contestant, round by round.
using Times = std::vector<double>;

std::vector<Times> time_in_rotation(const Race& race, std::span<Contestant* const> contestants,
                                    int rounds) {
  std::vector<Times> times(contestants.size());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t at = 0; at < contestants.size(); ++at)
      times[at].push_back(race.time_us(contestants[at]->launch));
  return times;
}

// The index of the fastest, by the medians of rounds: the board's clock changes within a round by
// more than kernels differ, so the least time would belong to whichever ran when it was cool.
std::size_t find_best(const Race& race, std::vector<Contestant>& contestants) {
  constexpr int rounds = 7;
  std::vector<Contestant*> all;
  for (Contestant& contestant : contestants) all.push_back(&contestant);
  std::vector<double> medians;
  for (const Times& times : time_in_rotation(race, all, rounds)) medians.push_back(median(times));
  return static_cast<std::size_t>(std::ranges::min_element(medians) - medians.begin());
}

// The time of a program's kernel beyond a plain one and the extra bytes, in percent of the plain
// one: the median of all rounds, the least and the largest.
struct Cost {
  double median, least, most;
};
Cost cost_of(const Times& fused, const Times& plain, double extra_us) {
  std::vector<double> percent;
  for (std::size_t round = 0; round < fused.size(); ++round)
    percent.push_back(100 * ((fused[round] - extra_us) / plain[round] - 1));
  const auto [least, most] = std::ranges::minmax(percent);
  return {median(percent), least, most};
}

void print_cost(std::string_view role, const Contestant& fused, const Times& fused_us,
                const Contestant& plain, const Times& plain_us, double extra_us) {
  const Cost cost = cost_of(fused_us, plain_us, extra_us);
  fmt::print(
      "    {:6} {:7.1f} us, plain {:7.1f}: {:+6.1f} % beyond its bytes ({:+.1f} to {:+.1f}) {}, "
      "{}\n",
      role, median(fused_us), median(plain_us), cost.median, cost.least, cost.most, fused.name,
      plain.name);
}

void compare(const Race& race, const Extents& extents, Contestant& plain, const ProgramRow& program,
             int pairs) {
  std::vector<Contestant> fused = race.contestants(&program);
  const std::size_t best = find_best(race, fused);
  std::optional<Contestant> same = race.plain_with_tile_of(fused[best].name);
  std::vector<Contestant*> contestants{&plain, &fused.front(), &fused[best]};
  if (same) contestants.push_back(&*same);
  const std::vector<Times> times = time_in_rotation(race, contestants, pairs);
  const double bytes = program.has_matrix
                           ? 2.0 * static_cast<double>(extents.m) * static_cast<double>(extents.n)
                           : 0.0;
  const double extra_us = bytes / bytes_per_us;
  const double goal = goal_percent(program, extents);
  const double reached = cost_of(times[2], times[0], extra_us).median;
  fmt::print("  {}: bytes {:.1f} us, goal {:.0f} %: {}\n", program.name, extra_us, goal,
             reached <= goal ? "met" : "missed");
  print_cost("best", fused[best], times[2], plain, times[0], extra_us);
  print_cost("first", fused.front(), times[1], plain, times[0], extra_us);
  if (same) print_cost("alike", fused[best], times[2], *same, times[3], extra_us);
  std::fflush(stdout);
}

void race_all(const gemmery::Device& device, const Options& options) {
  const gemmery::OwnedStream stream(device);
  for (const Extents& extents : options.problems) {
    const Race race(extents, stream, options);
    std::vector<Contestant> plain = race.contestants(nullptr);
    Contestant& best = plain[find_best(race, plain)];
    fmt::print("bf16 {}x{}x{}, plain by {}\n", extents.m, extents.n, extents.k, best.name);
    for (const ProgramRow* program : chosen_programs(options))
      compare(race, extents, best, *program, options.pairs);
  }
}

void list_all(const Options& options) {
  const gemmery::DeviceInfo device = *gemmery::find_device_info("h200");
  for (const Extents& extents : options.problems) {
    for (const ProgramRow* program : chosen_programs(options)) {
      const std::string line = fmt::format(
          "gemm {}x{}x{} a=bf16 b=bf16:c epilogue=\"{}\"{}{}{}", extents.m, extents.n, extents.k,
          program->text, program->has_bias ? " bias=bf16[n]" : "",
          program->has_matrix ? " aux=bf16" : "", program->has_amax ? " amax=f32[1]" : "");
      fmt::print("{}\n", line);
      const auto kernels = gemmery::get_kernels(gemmery::parse_problem(line).problem, device);
      for (std::size_t at = 0; at < std::min(kernels.size(), options.designs); ++at)
        fmt::print("  {:7.1f} us predicted: {}\n", kernels[at].predicted_us, kernels[at].name());
    }
  }
}

}  // namespace

int main(int count, char** words) {
  const Options options = read_options({words + 1, words + count});
  if (options.lists) {
    list_all(options);
    return 0;
  }
  const auto named = gemmery::parse_device(options.device);
  if (!options.device.empty() && !named) refuse("--device", "a device", options.device);
  if (!named && gemmery::devices().empty()) {
    fmt::print("no GPU\n");
    return 0;
  }
  race_all(named ? *named : gemmery::devices().front(), options);
}
