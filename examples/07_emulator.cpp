// SPDX-License-Identifier: Apache-2.0
// A kernel of your own on the emulator. It needs NVRTC but no GPU. The kernel has a fault; the
// report says what it is and in which line. Exits with 77 without NVRTC.
#include <cstdio>
#include <string>
#include <vector>

#include <gemmery/gemmery.hpp>

namespace {

constexpr int skipped = 77;

// Each block sums 256 numbers. One line is missing.
const std::string source = R"(
extern "C" __global__ void sum(const float* numbers, float* sums) {
  __shared__ float partial[256];
  const unsigned thread = threadIdx.x;
  partial[thread] = numbers[blockIdx.x * 256 + thread];
  __syncthreads();
  for (unsigned step = 128; step > 0; step /= 2) {
    if (thread < step) partial[thread] += partial[thread + step];
    // missing: __syncthreads();
  }
  if (thread == 0) sums[blockIdx.x] = partial[0];
}
)";

// Returns the report of the fault, or nothing if the kernel is correct.
std::string run_on_emulator(const std::string& text) {
  const gemmery::Device device = *gemmery::parse_device("emulated:h200");
  const gemmery::OwnedStream stream(device);
  const std::vector<float> ones(4 * 256, 1.0F);
  const gemmery::Buffer numbers(4 * ones.size(), stream);
  const gemmery::Buffer sums(4 * sizeof(float), stream);
  copy(numbers.data(), device, ones.data(), gemmery::Device::cpu(), numbers.bytes(), stream);

  const auto module = gemmery::EmulatedModule::compile(text, device);
  try {
    module.launch("sum", {.grid = {4, 1, 1}, .block = {256, 1, 1}}, numbers.data(), sums.data());
  } catch (const gemmery::EmulatorFault& error) {
    return error.fault().report;
  }
  std::vector<float> result(4);
  copy(result.data(), gemmery::Device::cpu(), sums.data(), device, sums.bytes(), stream);
  std::printf("sums: %g %g %g %g\n", result[0], result[1], result[2], result[3]);
  return {};
}

std::string repaired(std::string text) {
  const std::string gap = "// missing: ";
  return text.erase(text.find(gap), gap.size());
}

}  // namespace

int main() {
  try {
    const std::string report = run_on_emulator(source);
    std::printf("%s\n\n", report.c_str());
    const bool is_sound = run_on_emulator(repaired(source)).empty();
    return !report.empty() && is_sound ? 0 : 1;
  } catch (const gemmery::Error& error) {
    std::printf("%s\n", error.what());
    return error.kind() == gemmery::ErrorKind::unavailable ? skipped : 1;
  }
}
