// SPDX-License-Identifier: Apache-2.0
// What a fused epilogue costs: for each problem the best plain kernel against the best one with the
// program, in interleaved pairs, beside the time of the program's own bytes. Usage: epilogue
// [PAIRS] [SAMPLE_MS]
#include <gemmery/gemmery.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>
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
constexpr Extents problems[] = {{4096, 4096, 4096}, {8192, 8192, 1024}, {8192, 4096, 512}};

struct ProgramRow {
  std::string_view name;
  std::string_view text;
  bool has_bias, has_matrix, has_amax;
};
constexpr ProgramRow programs[] = {
    {"bias + gelu", "D = gelu(accum + bias)", true, false, false},
    {"bias + gelu_tanh", "D = gelu_tanh(accum + bias)", true, false, false},
    {"residual add", "D = accum + aux", false, true, false},
    {"sigmoid * aux", "D = sigmoid(accum) * aux", false, true, false},
    {"bias + gelu, amax", "D = gelu(accum + bias); amax = amax(D)", true, false, true},
};

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

// A matrix on the device, the same million random numbers again and again.
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

class Race {
 public:
  Race(const Extents& extents, Stream stream, double sample_ms)
      : stream_(stream),
        sample_ms_(sample_ms),
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

  // The fastest of the first few that discovery offers, compiled and bound.
  PreparedLaunch best(const ProgramRow* program, std::string& name) const {
    const gemmery::GemmArguments bound = arguments(program);
    const auto kernels = gemmery::get_kernels(bound);
    std::optional<PreparedLaunch> fastest;
    double least = 1e30;
    for (std::size_t at = 0; at < std::min<std::size_t>(kernels.size(), 8); ++at) {
      PreparedLaunch launch = kernels[at].compile(bound).bind(bound);
      const double us = std::min(time_us(launch), time_us(launch));
      if (us >= least) continue;
      least = us;
      name = kernels[at].name();
      fastest = std::move(launch);
    }
    return std::move(*fastest);
  }

  // The mean of a batch that lasts `sample_ms`.
  double time_us(PreparedLaunch& launch) const {
    launch.launch(stream_);
    gemmery::synchronize(stream_);
    const double one = batch_us(launch, 4);
    return batch_us(launch, std::max(4, static_cast<int>(1000 * sample_ms_ / one)));
  }

 private:
  double batch_us(PreparedLaunch& launch, int runs) const {
    const auto start = Clock::now();
    for (int run = 0; run < runs; ++run) launch.launch(stream_);
    gemmery::synchronize(stream_);
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / runs;
  }

  Stream stream_;
  double sample_ms_;
  Matrix a_, b_, out_, aux_, bias_;
  Buffer amax_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void compare(const Race& race, const Extents& extents, PreparedLaunch& plain,
             const ProgramRow& program, int pairs) {
  std::string name;
  PreparedLaunch fused = race.best(&program, name);
  std::vector<double> plain_us, fused_us, ratio;
  for (int pair = 0; pair < pairs; ++pair) {
    plain_us.push_back(race.time_us(plain));
    fused_us.push_back(race.time_us(fused));
    ratio.push_back(fused_us.back() / plain_us.back());
  }
  const double bytes = program.has_matrix
                           ? 2.0 * static_cast<double>(extents.m) * static_cast<double>(extents.n)
                           : 0.0;
  const double extra_us = bytes / bytes_per_us;
  const auto [low, high] = std::ranges::minmax(ratio);
  fmt::print(
      "  {:18} {:7.1f} us, plain {:7.1f}, bytes {:5.1f}: {:+.1f} % beyond them ({:.3f} to "
      "{:.3f} of plain) {}\n",
      program.name, median(fused_us), median(plain_us), extra_us,
      100 * (median(ratio) - 1 - extra_us / median(plain_us)), low, high, name);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
  const int pairs = count > 1 ? std::atoi(words[1]) : 5;
  const double sample_ms = count > 2 ? std::atof(words[2]) : 10;
  if (gemmery::devices().empty()) {
    fmt::print("no GPU\n");
    return 0;
  }
  const gemmery::OwnedStream stream(gemmery::devices().front());
  for (const Extents& extents : problems) {
    const Race race(extents, stream, sample_ms);
    std::string name;
    PreparedLaunch plain = race.best(nullptr, name);
    fmt::print("bf16 {}x{}x{}, plain by {}\n", extents.m, extents.n, extents.k, name);
    for (const ProgramRow& program : programs) compare(race, extents, plain, program, pairs);
  }
}
