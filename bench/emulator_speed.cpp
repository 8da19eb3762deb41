// SPDX-License-Identifier: Apache-2.0
// The speed of the emulator: lane-instructions per second of ordinary code, GFLOP/s of mma and
// wgmma, and a small product by a kernel of the library. Needs NVRTC, no GPU. Usage: emulator_speed
// [REPETITIONS [KERNEL]]
#include <gemmery/gemmery.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace {

using gemmery::Buffer;
using gemmery::Device;
using gemmery::EmulatedLaunch;
using gemmery::EmulatedModule;
using gemmery::EmulatedRun;
using Clock = std::chrono::steady_clock;

// --- kernels -------------------------------------------------------------------------------------

// Registers only: the cost of dispatch, definedness and the loops over lanes.
const std::string arithmetic = R"(
extern "C" __global__ void arithmetic(float* out, int rounds) {
  float x = threadIdx.x, y = 1.5f;
  unsigned bits = threadIdx.x * 2654435761u;
  for (int round = 0; round < rounds; ++round) {
    x = x * 0.999f + y;
    bits = (bits ^ (bits >> 13)) * 5u + 0xe6546b64u;
    y = bits & 1 ? y + x : y - 0.5f;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = x + y + bits;
})";

// A product by tiles of 32 x 32 in shared memory, four outputs a thread.
const std::string tiles = R"(
extern "C" __global__ void tiles(const float* a, const float* b, float* d, int n) {
  __shared__ float left[32][32], right[32][32];
  const int row = threadIdx.y, column = threadIdx.x;
  a += blockIdx.y * 32 * n, b += blockIdx.x * 32;
  float sum[4] = {};
  for (int k = 0; k < n; k += 32) {
    for (int part = 0; part < 4; ++part) {
      left[row + 8 * part][column] = a[(row + 8 * part) * n + k + column];
      right[row + 8 * part][column] = b[(k + row + 8 * part) * n + column];
    }
    __syncthreads();
    for (int step = 0; step < 32; ++step)
      for (int part = 0; part < 4; ++part)
        sum[part] += left[row + 8 * part][step] * right[step][column];
    __syncthreads();
  }
  for (int part = 0; part < 4; ++part)
    d[(blockIdx.y * 32 + row + 8 * part) * n + blockIdx.x * 32 + column] = sum[part];
})";

const std::string mma = R"(
extern "C" __global__ void mma(float* out, int rounds) {
  float d[4] = {};
  unsigned a[4], b[2];
  for (int part = 0; part < 4; ++part) a[part] = 0x3f803f81u + 0x10007u * (threadIdx.x + part);
  for (int part = 0; part < 2; ++part) b[part] = 0x3f82bf80u + 0x20003u * (threadIdx.x + part);
  for (int round = 0; round < rounds; ++round)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  out[blockIdx.x * blockDim.x + threadIdx.x] = d[0] + d[1] + d[2] + d[3];
})";

// 64 x 256 x 16 from shared memory without swizzle: blocks of 8 rows x 16 bytes, two along K.
std::string wgmma() {
  std::string registers, operands;
  for (int index = 0; index < 128; ++index) {
    registers += fmt::format("{}%{}", index == 0 ? "" : ",", index);
    operands += fmt::format("{}\"+f\"(d[{}])", index == 0 ? "" : ",", index);
  }
  return R"(
extern "C" __global__ void __launch_bounds__(128) wgmma(float* out, int rounds) {
  __shared__ alignas(128) unsigned tile[(64 + 256) * 16 / 2];
  for (int at = threadIdx.x; at < (64 + 256) * 8; at += 128)
    tile[at] = 0x3f803f80u ^ (at * 2654435761u & 0x80ff80ffu);
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  const unsigned base = (unsigned)__cvta_generic_to_shared(tile);
  const unsigned long long steps = (128ull >> 4) << 16 | (256ull >> 4) << 32;
  const unsigned long long a = (base & 0x3ffff) >> 4 | steps;
  const unsigned long long b = ((base + 2048) & 0x3ffff) >> 4 | steps;
  float d[128];
  for (int index = 0; index < 128; ++index) d[index] = 0;
  for (int round = 0; round < rounds; ++round) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {)" +
         registers + R"(}, %128, %129, 1, 1, 1, 0, 0;" : )" + operands + R"( : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  float sum = 0;
  for (int index = 0; index < 128; ++index) sum += d[index];
  out[blockIdx.x * 128 + threadIdx.x] = sum;
})";
}

// --- measuring -----------------------------------------------------------------------------------

struct Sample {
  double seconds;
  double cpu_seconds;  // of all threads, independent of other load
  EmulatedRun run;
};

// The median of `repetitions` launches by time.
template <class Launch>
Sample median_of(int repetitions, Launch&& launch) {
  std::vector<Sample> samples;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const auto start = Clock::now();
    const std::clock_t cpu_start = std::clock();
    const EmulatedRun run = launch();
    samples.push_back({std::chrono::duration<double>(Clock::now() - start).count(),
                       static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC, run});
  }
  const auto middle = samples.begin() + repetitions / 2;
  std::nth_element(
      samples.begin(), middle, samples.end(),
      [](const Sample& left, const Sample& right) { return left.seconds < right.seconds; });
  return *middle;
}

void print(const char* name, const Sample& sample, double flops) {
  const double nanoseconds = sample.seconds * 1e9;
  fmt::print("{:<12} {:>9.3f} {:>9.3f} {:>12} {:>14.1f} {:>10.1f} {:>9.2f}\n", name, sample.seconds,
             sample.cpu_seconds, sample.run.warp_instructions,
             1e9 * sample.cpu_seconds / static_cast<double>(sample.run.warp_instructions),
             1e3 * static_cast<double>(sample.run.lane_instructions) / nanoseconds,
             flops / nanoseconds);
}

struct Bench {
  Device device;
  gemmery::OwnedStream stream;
  int repetitions;

  void loop(const std::string& source, const char* entry, std::uint32_t threads, int rounds,
            double flops_per_block_and_round) const {
    constexpr std::uint32_t blocks = 8;
    const Buffer out(blocks * threads * sizeof(float), stream);
    const EmulatedModule module = EmulatedModule::compile(source, device);
    const EmulatedLaunch shape{.grid = {blocks, 1, 1}, .block = {threads, 1, 1}};
    const Sample sample =
        median_of(repetitions, [&] { return module.launch(entry, shape, out.data(), rounds); });
    print(entry, sample, flops_per_block_and_round * rounds * blocks);
  }

  void shared_tiles() const {
    constexpr int n = 256;
    const std::vector<float> ones(n * n, 1.0F);
    const std::size_t bytes = ones.size() * sizeof(float);
    const Buffer a(bytes, stream), b(bytes, stream), d(bytes, stream);
    for (const Buffer* const buffer : {&a, &b})
      copy(buffer->data(), device, ones.data(), Device::cpu(), bytes, stream);
    const EmulatedModule module = EmulatedModule::compile(tiles, device);
    const EmulatedLaunch shape{.grid = {n / 32, n / 32, 1}, .block = {32, 8, 1}};
    const Sample sample = median_of(repetitions, [&] {
      return module.launch("tiles", shape, a.data(), b.data(), d.data(), n);
    });
    print("tiles", sample, 2.0 * n * n * n);
  }

  // A kernel of the library, as in the conformance tests.
  void library_kernel() const {
    using gemmery::DType;
    constexpr std::int64_t n = 256;
    const std::size_t bytes = n * n * sizeof(float);
    const std::vector<float> ones(n * n, 1.0F);
    const Buffer a(bytes, stream), b(bytes, stream), d(bytes, stream);
    for (const Buffer* const buffer : {&a, &b})
      copy(buffer->data(), device, ones.data(), Device::cpu(), bytes, stream);
    const auto tensor = [&](const Buffer& buffer) {
      return gemmery::Tensor(buffer.data(), DType::float32, {n, n}, device);
    };
    const gemmery::GemmArguments arguments(tensor(a), tensor(b), tensor(d));
    const auto kernels = gemmery::get_kernels(arguments);
    if (kernels.empty()) return;
    const auto run_once = [&] {
      const auto before = gemmery::emulator_statistics(device);
      kernels.front().run(arguments, {.stream = stream});
      const auto after = gemmery::emulator_statistics(device);
      return EmulatedRun{after.warp_instructions - before.warp_instructions,
                         after.lane_instructions - before.lane_instructions};
    };
    run_once();  // compiles it
    print("library", median_of(repetitions, run_once), 2.0 * n * n * n);
    fmt::print("  library: {}\n", kernels.front().name());
  }
};

}  // namespace

int main(int count, char** words) {
  try {
    const Device device = *gemmery::parse_device("emulated:h200");
    const Bench bench{device, gemmery::OwnedStream(device), count > 1 ? std::atoi(words[1]) : 5};
    const auto is_asked = [&](std::string_view name) { return count <= 2 || words[2] == name; };
    fmt::print("{:<12} {:>9} {:>9} {:>12} {:>14} {:>10} {:>9}\n", "kernel", "seconds", "CPU s",
               "warp instr.", "CPU ns/instr.", "Mlane/s", "GFLOP/s");
    if (is_asked("arithmetic")) bench.loop(arithmetic, "arithmetic", 256, 2000, 0);
    if (is_asked("tiles")) bench.shared_tiles();
    if (is_asked("mma")) bench.loop(mma, "mma", 128, 2000, 4 * 2.0 * 16 * 8 * 16);
    if (is_asked("wgmma")) bench.loop(wgmma(), "wgmma", 128, 50, 2.0 * 64 * 256 * 16);
    if (is_asked("library")) bench.library_kernel();
  } catch (const std::exception& error) {
    fmt::print(stderr, "emulator_speed: {}\n", error.what());
    return 1;
  }
  return 0;
}
