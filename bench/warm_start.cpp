// SPDX-License-Identifier: Apache-2.0
// The time that a process waits for its first kernel: from the call of `compile` until the kernel
// can be launched, including loading, for processes with a warm and with a cold cache. The first
// use of the device, which every library needs, is measured separately. Every process checks its
// result and reports whether the compiler's library is mapped in it. Usage: warm_start [PROCESSES]
// [KERNELS] [DEVICE], with DEVICE cuda:0 or emulated:h200.
#include <gemmery/gemmery.hpp>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using gemmery::Buffer;
using gemmery::Device;
using gemmery::DType;
using Clock = std::chrono::steady_clock;

constexpr const char* child_variable = "GEMMERY_WARM_START_KERNEL";

double milliseconds(Clock::duration elapsed) {
  return std::chrono::duration<double, std::milli>(elapsed).count();
}

// --- one process --------------------------------------------------------------------------------

// The report of a process to the one that started it.
struct Start {
  double launchable_ms = 0;   // compile(arguments), including loading
  double result_ms = 0;       // and the first launch, until its result is available
  double compile_ms = 0;      // of the compiler; 0 with a warm cache
  bool has_compiler = false;  // libnvrtc is mapped after the launch
};

bool is_mapped(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(library) != std::string::npos) return true;
  }
  return false;
}

// Matrices of ones: every accumulator is K, in any order of additions.
class Ones {
 public:
  Ones(DType dtype, gemmery::Stream stream) : stream_(stream), dtype_(dtype) {
    const bool is_wide = dtype == DType::float32;
    const std::size_t count = static_cast<std::size_t>(extent) * extent;
    const std::uint32_t one = is_wide ? 0x3f800000U : 0x3f803f80U;  // of bfloat16 two
    const std::vector<std::uint32_t> values(is_wide ? count : count / 2, one);
    for (Buffer* const input : {&a_, &b_}) {
      *input = Buffer(values.size() * sizeof one, stream);
      gemmery::copy(input->data(), stream.device(), values.data(), Device::cpu(), input->bytes(),
                    stream);
    }
    out_ = Buffer(count * sizeof(float), stream);
    gemmery::fill(out_.data(), 0, out_.bytes(), stream);
    gemmery::synchronize(stream);
  }

  gemmery::GemmArguments arguments() const {
    const Device device = stream_.device();
    return {{a_.data(), dtype_, {extent, extent}, device},
            {b_.data(), dtype_, {extent, extent}, {1, extent}, device},
            {out_.data(), DType::float32, {extent, extent}, device}};
  }

  void check() const {
    std::vector<float> values(out_.bytes() / sizeof(float));
    gemmery::copy(values.data(), Device::cpu(), out_.data(), stream_.device(), out_.bytes(),
                  stream_);
    gemmery::synchronize(stream_);
    const bool is_right = std::ranges::all_of(
        values, [](float value) { return value == static_cast<float>(extent); });
    if (!is_right) throw std::runtime_error("a wrong result");
  }

 private:
  static constexpr std::int64_t extent = 128;

  gemmery::Stream stream_;
  DType dtype_;
  Buffer a_, b_, out_;
};

// Kernels with even numbers are for float32, those with odd ones for bfloat16; they are spread over
// the list of discovery.
Start start_kernel(int number, Device device) {
  const gemmery::OwnedStream stream(device);
  const Ones ones(number % 2 == 0 ? DType::float32 : DType::bfloat16, stream);
  const gemmery::GemmArguments arguments = ones.arguments();
  const auto kernels = gemmery::get_kernels(arguments);
  const std::size_t rank = static_cast<std::size_t>(number / 2) * 7 % kernels.size();
  Start told;
  const auto begin = Clock::now();
  const gemmery::Artifact artifact = kernels[rank].compile(arguments);
  told.launchable_ms = milliseconds(Clock::now() - begin);
  kernels[rank].run(arguments, {.artifact = &artifact, .stream = stream});
  gemmery::synchronize(stream);
  told.result_ms = milliseconds(Clock::now() - begin);
  told.compile_ms = artifact.compile_ms();
  told.has_compiler = is_mapped("libnvrtc");
  ones.check();
  return told;
}

int be_child(int channel, int number, Device device) {
  const Start told = start_kernel(number, device);
  return write(channel, &told, sizeof told) == sizeof told ? 0 : 1;
}

// --- all of them --------------------------------------------------------------------------------

// A fresh process: this program, executed again.
Start start_process(int number, const std::string& device) {
  int channel[2];
  if (pipe(channel) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    setenv(child_variable, fmt::format("{} {}", channel[1], number).c_str(), 1);
    execl("/proc/self/exe", "warm_start", "1", "1", device.c_str(), nullptr);
    _exit(127);
  }
  close(channel[1]);
  Start told;
  const bool is_told = read(channel[0], &told, sizeof told) == sizeof told;
  close(channel[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!is_told || status != 0)
    throw std::runtime_error(fmt::format("the process of kernel {} failed", number));
  return told;
}

void print_times(const char* name, std::vector<double> times) {
  std::ranges::sort(times);
  fmt::print("  {:<34} median {:8.2f} ms   p95 {:8.2f} ms   most {:8.2f} ms\n", name,
             times[times.size() / 2], times[times.size() * 95 / 100], times.back());
}

void print_starts(const std::string& name, const std::vector<Start>& starts) {
  std::vector<double> launchable;
  std::vector<double> result;
  for (const Start& one : starts) {
    launchable.push_back(one.launchable_ms);
    result.push_back(one.result_ms);
  }
  const auto compiled = std::ranges::count_if(starts, [](auto& one) { return one.compile_ms > 0; });
  const auto mapped = std::ranges::count_if(starts, [](auto& one) { return one.has_compiler; });
  fmt::print("{}: {} processes, {} compiled, {} with libnvrtc mapped, all results right\n", name,
             starts.size(), compiled, mapped);
  print_times("from compile to launchable", launchable);
  print_times("from compile to the first result", result);
}

// Uses a cache of its own, which is removed at the end.
void measure(int processes, int kernels, const std::string& device) {
  const std::string folder =
      (std::filesystem::temp_directory_path() / fmt::format("gemmery-warm-start-{}", getpid()))
          .string();
  setenv("GEMMERY_CACHE_DIR", folder.c_str(), 1);
  std::vector<Start> cold;
  std::vector<Start> warm;
  for (int number = 0; number < kernels; ++number) cold.push_back(start_process(number, device));
  for (int turn = 0; turn < processes; ++turn)
    warm.push_back(start_process(turn % kernels, device));
  std::error_code failure;
  std::filesystem::remove_all(folder, failure);
  fmt::print("{}, {} kernels\n", device, kernels);
  print_starts("cold", cold);
  print_starts("warm", warm);
}

Device read_device(const std::string& word) {
  if (const std::optional<Device> device = gemmery::parse_device(word)) return *device;
  throw std::runtime_error("no device: " + word);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string device = argc > 3 ? argv[3] : "cuda:0";
  try {
    if (const char* const words = std::getenv(child_variable)) {
      char* rest = nullptr;
      const long channel = std::strtol(words, &rest, 10);
      return be_child(static_cast<int>(channel), std::atoi(rest), read_device(device));
    }
    if (argc <= 3 && gemmery::devices().empty()) {
      fmt::print("warm_start: no GPU here\n");
      return 0;
    }
    measure(argc > 1 ? std::atoi(argv[1]) : 100, argc > 2 ? std::atoi(argv[2]) : 20, device);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "warm_start: {}\n", error.what());
    return 1;
  }
}
