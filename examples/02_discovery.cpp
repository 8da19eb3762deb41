// SPDX-License-Identifier: Apache-2.0
// Discovery: which kernels support a problem on a device, best first, and why the others do not.
// The device need not be present.
#include <cstdio>

#include <gemmery/gemmery.hpp>

namespace {

void print_best(const gemmery::GemmProblem& problem, const gemmery::DeviceInfo& device,
                const gemmery::Filter& filter) {
  const auto kernels = gemmery::get_kernels(problem, device, filter);
  std::printf("%zu kernels on %s\n", kernels.size(), device.name.c_str());
  for (std::size_t rank = 0; rank < kernels.size() && rank < 3; ++rank) {
    std::printf("  %10.1f us predicted  %s\n", kernels[rank].predicted_us,
                kernels[rank].name().c_str());
  }
}

}  // namespace

int main() {
  const gemmery::GemmProblem problem =
      gemmery::parse_problem("gemm 4096x4096x1024 a=f32 b=f32:c").problem;
  const gemmery::DeviceInfo h200 = gemmery::find_device_info("h200").value();

  print_best(problem, h200, {});
  // A filter sees the metadata: operands, design, targets, epilogue.
  print_best(problem, h200, {.metadata = [](const gemmery::Metadata& kernel) {
               return kernel.operands.b.alignment < 16;
             }});

  // Every family answers: how many of its kernels fit, or the first constraint that failed.
  std::printf("%s\n", to_string(explain(problem, h200)).c_str());
  return 0;
}
