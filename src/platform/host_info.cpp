// SPDX-License-Identifier: Apache-2.0
// Reads /proc and sysconf. The one place in this room that names x86 features.
#include "platform/host_info.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace gemmery::platform {
namespace {

// Defaults if the system reports nothing: the clock of a server core under load, and a core's share
// of memory bandwidth.
constexpr double usual_clock_ghz = 2.5;
constexpr double usual_bandwidth_per_core = 10e9;

// The value of the first line "KEY : value" of /proc/cpuinfo; empty if there is none.
std::string cpuinfo_value(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
}

// A chain of dependent steps: a shift and an exclusive or, one clock each.
std::uint64_t run_dependent_steps(int steps) {
  std::uint64_t state = 1;
  for (int step = 0; step < steps; ++step) {
    state ^= state << 1;
    asm volatile("" : "+r"(state));
  }
  return state;
}

// Measures the core's present clock, which the system tables of a virtual machine do not have.
// Takes about 0.2 ms.
double measure_clock_ghz() {
  constexpr int steps = 100'000;
  constexpr int clocks_per_step = 2;
  double best = 0;
  for (int trial = 0; trial < 4; ++trial) {
    const auto start = std::chrono::steady_clock::now();
    run_dependent_steps(steps);
    const std::chrono::duration<double, std::nano> elapsed =
        std::chrono::steady_clock::now() - start;
    if (elapsed.count() > 0) best = std::max(best, clocks_per_step * steps / elapsed.count());
  }
  return best > 0 ? best : usual_clock_ghz;
}

// Two vector units of this many lanes.
int fma_f32_per_clock() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 32;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 16;
#endif
  return 8;
}

// Multiply-adds per clock for products of narrow types, by the processor's features.
struct NarrowRates {
  int bfloat16 = 0;  // 0: as float32
  int float16 = 0;
  int integer8 = 0;
};

// Matrix units multiply 16x16 tiles with 64 bytes of k in 16 clocks. Dot products do two or four
// products per lane on two units (Intel's and AMD's optimization manuals).
NarrowRates read_narrow_rates() {
  const std::string flags = " " + cpuinfo_value("flags") + " ";
  const auto has = [&](const char* flag) {
    return flags.find(" " + std::string(flag) + " ") != std::string::npos;
  };
  const int lanes = fma_f32_per_clock();
  NarrowRates rates;
  if (has("avx512_bf16")) rates.bfloat16 = 2 * lanes;
  if (has("amx_bf16")) rates.bfloat16 = 512;
  if (has("avx512_fp16")) rates.float16 = 2 * lanes;
  // Without dot-product instructions, three instructions add up pairs of products.
  rates.integer8 = has("avx512_vnni") || has("avx_vnni") ? 4 * lanes : 2 * lanes;
  if (has("amx_int8")) rates.integer8 = 1024;
  return rates;
}

std::int64_t positive(long value) { return std::max<std::int64_t>(value, 0); }

DeviceInfo read_host() {
  const int cores = usable_cores();
  const int fma_f32 = fma_f32_per_clock();
  const std::string model = cpuinfo_value("model name");
  return {.name = model.empty() ? "CPU" : model,
          .target = Target::cpu(),
          .multiprocessors = cores,
          .shared_bytes_per_block = 0,
          .shared_bytes_per_multiprocessor = 0,
          .l2_bytes = positive(sysconf(_SC_LEVEL3_CACHE_SIZE)),
          .memory_bytes = positive(sysconf(_SC_PHYS_PAGES)) * positive(sysconf(_SC_PAGESIZE)),
          .clock_ghz = measure_clock_ghz(),
          .bandwidth_bytes_per_second = usual_bandwidth_per_core * cores,
          .fma_f32_per_clock = fma_f32,
          .fma_f64_per_clock = fma_f32 / 2,
          .fma_int_per_clock = fma_f32};
}

}  // namespace

const DeviceInfo& host_device_info() {
  static const auto* const info = new DeviceInfo(read_host());
  return *info;
}

int host_product_rate(DType dtype) noexcept {
  static const NarrowRates rates = read_narrow_rates();
  const int lanes = fma_f32_per_clock();
  if (dtype == DType::float64) return lanes / 2;
  if (is_integer(dtype)) return rates.integer8;
  if (dtype == DType::bfloat16 && rates.bfloat16 > 0) return rates.bfloat16;
  if (dtype == DType::float16 && rates.float16 > 0) return rates.float16;
  return lanes;
}

const char* host_vector_sets() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    return __builtin_cpu_supports("avx512bf16") ? "avx512f avx512_bf16" : "avx512f";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "avx2 fma";
  return "sse2";
#elif defined(__aarch64__)
  return "neon";
#else
  return "none";
#endif
}

}  // namespace gemmery::platform
