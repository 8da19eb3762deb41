// SPDX-License-Identifier: Apache-2.0
// On a GPU: random problems with scales, codes, quantised results and programs of operands. Their
// kernels are made for problems, and the list of all kernels, from which conformance draws, lacks
// them. GEMMERY_SOAK=1 runs up to 5,000 problems of each kind by 500 kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <iostream>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <gemmery/gemmery.hpp>

#include "jit/nvrtc.hpp"
#include "platform/parallel.hpp"
#include "tests/conformance/random_source.hpp"
#include "tests/support/random_scaled.hpp"

namespace gemmery::conformance {
namespace {

struct Kind {
  const char* name;
  const char* family;
  std::function<std::string(std::uint64_t seed)> line;
};

// Float64 accumulates float64 alone on CUDA cores.
std::string without_doubles(std::string line) {
  constexpr std::string_view doubles = " acc=f64";
  if (const std::size_t at = line.find(doubles); at != std::string::npos)
    line.erase(at, doubles.size());
  return line;
}

std::string draw_programs(std::uint64_t seed) {
  tests::RandomOperandPrograms problems(seed);
  return without_doubles(seed % 3 == 0 ? problems.grouped_line() : problems.line(90));
}

std::string draw_scales(std::uint64_t seed, tests::ScaleDraw from,
                        const std::vector<std::string>& operands) {
  return to_string(tests::RandomScales(seed, std::move(from)).next(operands));
}

std::vector<Kind> all_kinds() {
  return {{"scales_by_simt", "simt",
           [](std::uint64_t seed) {
             return draw_scales(
                 seed, {.most_rows = 150, .most_k = 300},
                 {"e4m3", "e5m2", "s8", "u8", "f16", "bf16", "f32", "e2m1", "s4", "e3m2"});
           }},
          {"scales_by_sm90", "sm90",
           [](std::uint64_t seed) {
             return draw_scales(seed, tests::scales_for_wgmma(), {"e4m3", "e5m2"});
           }},
          {"codes_by_sm80", "sm80",
           [](std::uint64_t seed) {
             std::mt19937_64 random(seed);
             return tests::draw_codes(random, true);
           }},
          {"codes_by_sm90", "sm90",
           [](std::uint64_t seed) {
             std::mt19937_64 random(seed);
             return tests::draw_codes(random, false);
           }},
          {"quantised_by_sm90", "sm90",
           [](std::uint64_t seed) {
             std::mt19937_64 random(seed);
             return tests::draw_quantised(random);
           }},
          {"programs_by_simt", "simt", draw_programs}};
}

class GpuScaled : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (const auto status = jit::compiler_status(); !status.found) GTEST_SKIP() << status.searched;
    const auto gpus = devices();
    if (gpus.empty()) GTEST_SKIP() << "no GPU on this machine";
    device_ = gpus.front();
    if (std::string_view(GetParam().family) == "sm90" &&
        !runs_on(Target{90, 'a'}, device_info(device_).target))
      GTEST_SKIP() << "sm90 kernels need sm_90a";
  }

  // A kernel of the family for a line; none if the family refuses it.
  std::optional<Kernel> draw_kernel(const ProblemLine& line, Choices& choices) const {
    std::vector<Kernel> kernels;
    for (const Kernel& kernel : get_kernels(line.problem, device_info(device_)))
      if (kernel.family().name() == GetParam().family) kernels.push_back(kernel);
    if (kernels.empty()) return std::nullopt;
    return kernels[static_cast<std::size_t>(
        choices.between(0, static_cast<std::int64_t>(kernels.size()) - 1))];
  }

  // The line with other extents, each a multiple of the same power of two up to 32 (batches and
  // groups stay).
  static std::string resized(const std::string& text, Choices& choices) {
    static const std::regex extents("(\\d+)x(\\d+)x(\\d+)");
    std::smatch found;
    std::regex_search(text, found, extents);
    std::string other;
    for (std::size_t axis = 1; axis <= 3; ++axis) {
      const std::int64_t unit = std::gcd(std::stoll(found[axis]), std::int64_t{32});
      const std::int64_t extent =
          unit * choices.between(1, std::max<std::int64_t>(1, (axis == 3 ? 700 : 260) / unit));
      other += (axis == 1 ? "" : "x") + std::to_string(extent);
    }
    return found.prefix().str() + other + found.suffix().str();
  }

  void try_line(std::uint64_t seed) {
    Choices choices(seed);
    const std::string text = GetParam().line(seed);
    const ProblemLine line = parse_problem(text);
    const std::optional<Kernel> kernel = draw_kernel(line, choices);
    if (!kernel) {
      const std::scoped_lock lock(mutex_);
      ADD_FAILURE() << GetParam().family << " has no kernel for " << text;
      return;
    }
    check(line, *kernel, choices);
    for (int size = 1; size < sizes_; ++size) try_resized(resized(text, choices), *kernel, choices);
  }

  // Extents may not suit a line's leading dimension or the kernel's alignment.
  void try_resized(const std::string& text, const Kernel& kernel, Choices& choices) {
    std::optional<ProblemLine> line;
    try {
      line = parse_problem(text);
    } catch (const Error&) {
      return;
    }
    if (kernel.supports(line->problem, device_info(device_))) check(*line, kernel, choices);
  }

  void check(const ProblemLine& line, const Kernel& kernel, Choices& choices) {
    const VerifyReport report =
        verify(line, kernel, {.seed = choices.bits() | 1, .device = device_});
    ++ran_;
    elements_ += report.elements;
    if (report.passed) return;
    const std::scoped_lock lock(mutex_);
    ADD_FAILURE() << to_string(line) << " by " << kernel.name() << ", seed " << report.seed << ": "
                  << report.first_failure;
  }

  Device device_;
  const int lines_ = is_soak() ? 500 : 16;
  const int sizes_ = is_soak() ? 10 : 4;
  std::atomic<std::int64_t> ran_ = 0;
  std::atomic<std::int64_t> elements_ = 0;

 private:
  std::mutex mutex_;
};

TEST_P(GpuScaled, random_problems_are_within_their_bounds) {
  const std::uint64_t seed = test_seed();
  std::atomic<int> next = 0;
  {
    std::vector<std::jthread> workers;
    for (int worker = 0; worker < std::min(platform::thread_count(), 16); ++worker)
      workers.emplace_back([&] {
        for (int at = next++; at < lines_; at = next++) {
          SCOPED_TRACE(fmt::format("seed {}", seed));
          try {
            try_line(seed + 1000003 * static_cast<std::uint64_t>(at));
          } catch (const std::exception& error) {
            ADD_FAILURE() << error.what();
          }
        }
      });
  }
  std::cout << fmt::format("{}: {} problems by {} kernels, {} elements, seed {}\n", GetParam().name,
                           ran_.load(), lines_, elements_.load(), seed);
  EXPECT_GE(ran_, 2 * lines_);
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuScaled, testing::ValuesIn(all_kinds()),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace gemmery::conformance
