// SPDX-License-Identifier: Apache-2.0
// Host time of calls before a launch: arguments, discovery, explanations, names. Medians over 11
// repetitions of many calls (3 of the one that lists all kernels); no device is needed. Usage:
// host_times [CALLS]
#include <gemmery/gemmery.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gemmery {
namespace {

// --- measuring ----------------------------------------------------------------------------------

// Keeps the compiler from removing a value or the reads for it.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

struct Spread {
  double least, median, most;  // of the repetitions, microseconds per call
};

template <int repetitions = 11, class Call>
Spread time_calls(int calls, const Call& call) {
  using Clock = std::chrono::steady_clock;
  call();  // warm-up: tables, first use of a page
  std::array<double, repetitions> us{};
  for (double& each : us) {
    const Clock::time_point start = Clock::now();
    for (int turn = 0; turn < calls; ++turn) call();
    each = std::chrono::duration<double, std::micro>(Clock::now() - start).count() / calls;
  }
  std::ranges::sort(us);
  return {us.front(), us[repetitions / 2], us.back()};
}

// `allowed_us`: the design's goal, if there is one.
void report(const std::string& name, const Spread& spread, std::optional<double> allowed_us,
            const std::string& remark = {}) {
  const std::string allowed = allowed_us
                                  ? fmt::format(", allowed {:.1f}: {}", *allowed_us,
                                                spread.median <= *allowed_us ? "held" : "missed")
                                  : "";
  fmt::print("{:<24} {:9.3f} us ({:.3f} to {:.3f}){}{}{}\n", name, spread.median, spread.least,
             spread.most, allowed, remark.empty() ? "" : "; ", remark);
  fmt::print("{{\"bench\": \"host_times\", \"call\": \"{}\", \"us\": {:.4f}, \"on\": \"{}\"}}\n",
             name, spread.median, remark);
}

// --- what is called -----------------------------------------------------------------------------

alignas(64) std::array<std::byte, 1 << 16> memory;

Tensor matrix(std::size_t offset, std::int64_t rows, std::int64_t columns) {
  return Tensor(memory.data() + offset, DType::float32, {rows, columns});
}

GemmArguments small_arguments() {
  return GemmArguments(matrix(0, 32, 32), matrix(8192, 32, 32), matrix(16384, 32, 32));
}

// Problems for simt only; for sm90 and simt; with C; with integers; with a program.
constexpr const char* problem_lines[] = {
    "gemm 4096x4096x4096 a=f32", "gemm 4096x4096x8192 a=bf16 b=bf16:c out=bf16",
    "gemm 4096x4096x4096 a=f16 c=f16 beta=1", "gemm 512x512x512x8 a=s8 b=s8:c out=s32",
    "gemm 4096x4096x4096 a=bf16 b=bf16:c epilogue=\"D = gelu(accum + bias); peak = amax(D)\" "
    "bias=bf16[n] peak=f32[1]"};

void time_arguments(int calls) {
  report("tensor", time_calls(calls, [] { keep(matrix(0, 32, 32)); }), {});
  const Tensor a = matrix(0, 32, 32);
  const Tensor b = matrix(8192, 32, 32);
  const Tensor out = matrix(16384, 32, 32);
  report("arguments", time_calls(calls, [&] { keep(GemmArguments(a, b, out)); }), {});
  GemmArguments arguments = small_arguments();
  std::size_t turn = 0;
  report("arguments, new pointer",
         time_calls(calls, [&] { arguments.set_data("A", memory.data() + 32768 * (turn++ % 2)); }),
         {});
}

// The cost of a program in discovery, as a ratio, which does not depend on other load of the
// machine.
void compare_program(int calls, const DeviceInfo& device) {
  const std::string product = "gemm 4096x4096x4096 a=bf16 b=bf16:c";
  const GemmProblem plain = parse_problem(product).problem;
  const GemmProblem with_program =
      parse_problem(product + " epilogue=\"D = gelu(accum + bias)\" bias=bf16[n]").problem;
  constexpr int rounds = 21;
  std::array<double, rounds> ratios{};
  for (double& ratio : ratios) {
    const int calls_each = std::max(calls / rounds, 1);
    const Spread none = time_calls<1>(calls_each, [&] { keep(get_kernels(plain, device)); });
    const Spread one = time_calls<1>(calls_each, [&] { keep(get_kernels(with_program, device)); });
    ratio = one.median / none.median;
  }
  std::ranges::sort(ratios);
  fmt::print(
      "get_kernels with a program takes {:.2f} times as long as without ({:.2f} to {:.2f})\n",
      ratios[rounds / 2], ratios.front(), ratios.back());
}

void time_discovery(int calls, const DeviceInfo& device) {
  for (const char* const line : problem_lines) {
    const GemmProblem problem = parse_problem(line).problem;
    const std::size_t count = get_kernels(problem, device).size();
    const Spread spread = time_calls(calls, [&] { keep(get_kernels(problem, device)); });
    report("get_kernels", spread, 10 + 0.1 * static_cast<double>(count),
           fmt::format("{} kernels fit {}", count, line));
  }
  compare_program(calls, device);
  for (const char* const line : problem_lines) {
    const GemmProblem problem = parse_problem(line).problem;
    report("explain", time_calls(std::max(calls / 10, 1), [&] { keep(explain(problem, device)); }),
           5000, line);
  }
  const GemmArguments arguments = small_arguments();
  report("get_kernels of the CPU", time_calls(calls, [&] { keep(get_kernels(arguments)); }), {});
  const Kernel on_cpu = get_kernels(arguments).front();
  report("supports", time_calls(calls, [&] { keep(on_cpu.supports(arguments)); }), {});
}

void time_names(int calls, const DeviceInfo& device) {
  for (const char* const line : problem_lines) {
    const std::string name = get_kernels(parse_problem(line).problem, device).front().name();
    report("find_kernel", time_calls(calls, [&] { keep(find_kernel(name)); }), {}, name);
  }
  report("parse_problem", time_calls(calls, [] { keep(parse_problem(problem_lines[1])); }), {});
  std::size_t count = 0;
  const Spread spread = time_calls<3>(1, [&] {
    count = 0;
    for_each_kernel([&](const Kernel& kernel) {
      keep(kernel.name());
      ++count;
    });
  });
  report("all kernels, named", spread, {}, fmt::format("{} kernels", count));
}

}  // namespace
}  // namespace gemmery

int main(int argument_count, char** arguments) {
  const int calls = std::max(argument_count > 1 ? std::atoi(arguments[1]) : 10'000, 1);
  const gemmery::DeviceInfo h200 = *gemmery::find_device_info("h200");
  gemmery::time_arguments(calls);
  gemmery::time_discovery(calls, h200);
  gemmery::time_names(std::max(calls / 10, 1), h200);
  return 0;
}
