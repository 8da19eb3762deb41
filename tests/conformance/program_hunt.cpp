// SPDX-License-Identifier: Apache-2.0
// Runs trials of mutants with programs.
#include "tests/conformance/program_hunt.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <gemmery/gemmery.hpp>

#include "api/trial.hpp"
#include "tests/conformance/device_mutants.hpp"
#include "tests/conformance/random_source.hpp"

namespace gemmery::conformance {
namespace {

// Mostly several tiles for a consumer, with one or two blocks. K is few blocks, since the ring of
// stages continues from tile to tile.
Extents draw_extents(Choices& choices) {
  return {.m = choices.between(130, 420),
          .n = choices.between(17, 52) * 8,
          .k = choices.between(1, 24) * 8,
          .l = choices.between(1, 2)};
}

std::string hunt_in_trial(const Kernel& kernel, Device device, Choices& choices) {
  const std::string line = program_line(fault_of(kernel).kernel, draw_extents(choices));
  try {
    const VerifyReport report = api::run_trial(
        {.line = parse_problem(line),
         .options = {.fill = Fill::normal, .seed = choices.bits() | 1, .device = device},
         .repeats = 2,
         .max_multiprocessors = static_cast<int>(choices.between(1, 2))},
        kernel);
    return report.passed ? "" : line + ": " + report.first_failure;
  } catch (const Error& error) {
    return fmt::format("threw: {}", error.what());
  }
}

// --- launches of one workspace ------------------------------------------------------------------

// A kernel of reductions, prepared once and launched with new operands each time. Numbers are -1, 0
// and 1, and few enough for sums to be exact in any order.
class BoundReductions {
 public:
  BoundReductions(const Kernel& kernel, const Extents& extents, Device device)
      : extents_(extents),
        device_(device),
        stream_(device),
        a_(static_cast<std::size_t>(extents.m * extents.k)),
        b_(static_cast<std::size_t>(extents.k * extents.n)),
        device_a_(a_.size() * sizeof a_[0], stream_),
        device_b_(b_.size() * sizeof b_[0], stream_),
        bias_(static_cast<std::size_t>(extents.n) * sizeof(float), stream_),
        out_(static_cast<std::size_t>(extents.m * extents.n) * sizeof(float), stream_),
        results_(2 * sizeof(float), stream_),
        launch_(kernel.compile(arguments()).bind(arguments())) {
    fill(bias_.data(), 0, bias_.bytes(), stream_);
  }

  // Launches once more. Returns a description of wrong results, or "".
  std::string launch(Choices& choices) {
    draw(a_, device_a_, choices);
    draw(b_, device_b_, choices);
    launch_.launch(stream_);
    float got[2];
    copy(got, Device::cpu(), results_.data(), device_, sizeof got, stream_);
    synchronize(stream_);
    std::int64_t total = 0, peak = 0;
    for (std::int64_t row = 0; row < extents_.m; ++row) {
      for (const std::int64_t sum : sums_of(row)) {
        total += sum;
        peak = std::max(peak, std::abs(sum));
      }
    }
    if (got[0] == static_cast<float>(total) && got[1] == static_cast<float>(peak)) return {};
    return fmt::format("total is {}, exactly {}; peak is {}, exactly {}", got[0], total, got[1],
                       peak);
  }

 private:
  // bfloat16: the upper half of a float's bits.
  using Code = std::uint16_t;
  static std::int64_t whole_of(Code code) {
    return static_cast<std::int64_t>(std::bit_cast<float>(std::uint32_t{code} << 16));
  }

  GemmArguments arguments() const {
    const auto& [m, n, k, l] = extents_;
    const auto result = [&](int at) {
      return Tensor(static_cast<float*>(results_.data()) + at, DType::float32, {1}, device_);
    };
    GemmOptions options;
    options.epilogue =
        EpilogueArguments(std::string(program_of(SoundKernel::reduction).text),
                          {{"bias", Tensor(bias_.data(), DType::float32, {n}, device_)},
                           {"total", result(0)},
                           {"peak", result(1)}});
    return GemmArguments(Tensor(device_a_.data(), DType::bfloat16, {m, k}, device_),
                         Tensor(device_b_.data(), DType::bfloat16, {k, n}, device_),
                         Tensor(out_.data(), DType::float32, {m, n}, device_), options);
  }

  void draw(std::vector<Code>& codes, const Buffer& buffer, Choices& choices) const {
    for (Code& code : codes) code = choices.one_of<Code>({0xbf80, 0, 0x3f80});
    copy(buffer.data(), device_, codes.data(), Device::cpu(), buffer.bytes(), stream_);
    synchronize(stream_);
  }

  // A row of A B.
  std::vector<std::int64_t> sums_of(std::int64_t row) const {
    std::vector<std::int64_t> sums(static_cast<std::size_t>(extents_.n));
    for (std::int64_t k = 0; k < extents_.k; ++k) {
      const std::int64_t factor = whole_of(a_[static_cast<std::size_t>(row * extents_.k + k)]);
      const Code* const b = b_.data() + k * extents_.n;
      for (std::size_t column = 0; column < sums.size(); ++column)
        sums[column] += factor * whole_of(b[column]);
    }
    return sums;
  }

  Extents extents_;
  Device device_;
  OwnedStream stream_;
  std::vector<Code> a_, b_;
  Buffer device_a_, device_b_, bias_, out_, results_;
  PreparedLaunch launch_;
};

std::string hunt_in_bound_launches(const Kernel& kernel, Device device, Choices& choices) {
  try {
    BoundReductions reductions(
        kernel, {.m = choices.between(65, 300), .n = choices.between(9, 37) * 8, .k = 8, .l = 1},
        device);
    const int launches = device.type == DeviceType::emulated ? 3 : 8;
    for (int launch = 1; launch <= launches; ++launch) {
      const std::string wrong = reductions.launch(choices);
      if (!wrong.empty()) return fmt::format("launch {} of one workspace: {}", launch, wrong);
    }
  } catch (const Error& error) {
    return fmt::format("threw: {}", error.what());
  }
  return {};
}

}  // namespace

std::string hunt_with_program(const Kernel& kernel, const Hunt& hunt) {
  Choices choices(hunt.seed + static_cast<std::uint64_t>(hunt.first_cases));
  const bool makes_values = fault_of(kernel).kernel == SoundKernel::reduction;
  for (std::int64_t cases = hunt.first_cases; cases <= hunt.most_cases; ++cases) {
    std::string found = hunt_in_trial(kernel, hunt.device, choices);
    if (found.empty() && makes_values) found = hunt_in_bound_launches(kernel, hunt.device, choices);
    if (!found.empty()) return fmt::format("within {} cases: {}", cases, found);
  }
  return {};
}

}  // namespace gemmery::conformance
