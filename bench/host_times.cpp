// SPDX-License-Identifier: Apache-2.0
// What the host pays before anything runs: arguments, discovery, explanations, names. Medians over
// repetitions of 10,000 calls; no device is needed.
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <gemmery/gemmery.hpp>

namespace gemmery {
namespace {

alignas(64) std::array<std::byte, 1 << 16> memory;

Tensor matrix(std::size_t offset, std::int64_t rows, std::int64_t columns) {
  return Tensor(memory.data() + offset, DType::float32, {rows, columns});
}

GemmArguments small_arguments() {
  return GemmArguments(matrix(0, 32, 32), matrix(8192, 32, 32), matrix(16384, 32, 32));
}

const DeviceInfo& h200() {
  static const DeviceInfo info = *find_device_info("h200");
  return info;
}

GemmProblem problem_of(std::size_t which) {
  static const std::array problems{
      parse_problem("gemm 4096x4096x4096 a=f32").problem,
      parse_problem("gemm 4096x4096x8192 a=bf16 b=bf16:c out=bf16").problem,
      parse_problem("gemm 512x512x512x8 a=s8 b=s8:c out=s32").problem};
  return problems[which % problems.size()];
}

void make_tensors(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(matrix(0, 32, 32));
}

void make_arguments(benchmark::State& state) {
  const Tensor a = matrix(0, 32, 32);
  const Tensor b = matrix(8192, 32, 32);
  const Tensor out = matrix(16384, 32, 32);
  for (auto _ : state) {
    const GemmArguments arguments(a, b, out);
    benchmark::DoNotOptimize(&arguments);
  }
}

void patch_arguments(benchmark::State& state) {
  GemmArguments arguments = small_arguments();
  std::size_t turn = 0;
  for (auto _ : state) arguments.set_data("A", memory.data() + 32768 * (turn++ % 2));
}

void get_kernels_for_a_gpu(benchmark::State& state) {
  const GemmProblem problem = problem_of(static_cast<std::size_t>(state.range(0)));
  std::size_t count = 0;
  for (auto _ : state) {
    const auto kernels = get_kernels(problem, h200());
    count = kernels.size();
    benchmark::DoNotOptimize(kernels.data());
  }
  state.SetLabel(std::to_string(count) + " kernels fit " + to_string(problem));
}

void get_kernels_for_the_cpu(benchmark::State& state) {
  const GemmArguments arguments = small_arguments();
  for (auto _ : state) benchmark::DoNotOptimize(get_kernels(arguments).data());
}

void supports_a_problem(benchmark::State& state) {
  const GemmArguments arguments = small_arguments();
  const Kernel kernel = get_kernels(arguments).front();
  for (auto _ : state) benchmark::DoNotOptimize(kernel.supports(arguments).is_success());
}

void explain_for_a_gpu(benchmark::State& state) {
  const GemmProblem problem = problem_of(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(explain(problem, h200()).reasons.data());
  state.SetLabel(to_string(problem));
}

void find_a_kernel_by_name(benchmark::State& state) {
  const auto kernels = get_kernels(problem_of(0), h200());
  if (kernels.empty()) return state.SkipWithError("no kernel");
  const std::string name = kernels.front().name();
  for (auto _ : state) benchmark::DoNotOptimize(find_kernel(name).has_value());
}

void parse_a_problem(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(
        parse_problem("gemm 4096x4096x8192 a=bf16 b=bf16:c out=bf16").problem.k);
}

void list_all_kernels_with_names(benchmark::State& state) {
  std::size_t count = 0;
  std::size_t letters = 0;
  for (auto _ : state) {
    for_each_kernel([&](const Kernel& kernel) {
      ++count;
      letters += kernel.name().size();
    });
  }
  benchmark::DoNotOptimize(letters);
  state.counters["kernels_per_second"] =
      benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsRate);
}

void call_ten_thousand_times(benchmark::internal::Benchmark* benchmark) {
  benchmark->Iterations(10000)->Repetitions(11)->ReportAggregatesOnly(true)->Unit(
      benchmark::kMicrosecond);
}

BENCHMARK(make_tensors)->Apply(call_ten_thousand_times);
BENCHMARK(make_arguments)->Apply(call_ten_thousand_times);
BENCHMARK(patch_arguments)->Apply(call_ten_thousand_times);
BENCHMARK(get_kernels_for_a_gpu)->DenseRange(0, 2)->Apply(call_ten_thousand_times);
BENCHMARK(get_kernels_for_the_cpu)->Apply(call_ten_thousand_times);
BENCHMARK(supports_a_problem)->Apply(call_ten_thousand_times);
BENCHMARK(explain_for_a_gpu)
    ->DenseRange(0, 2)
    ->Iterations(1000)
    ->Repetitions(11)
    ->ReportAggregatesOnly(true)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(find_a_kernel_by_name)->Apply(call_ten_thousand_times);
BENCHMARK(parse_a_problem)->Apply(call_ten_thousand_times);
BENCHMARK(list_all_kernels_with_names)
    ->Repetitions(5)
    ->ReportAggregatesOnly(true)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gemmery

BENCHMARK_MAIN();
