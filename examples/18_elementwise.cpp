// SPDX-License-Identifier: Apache-2.0
// Elementwise programs without a matrix product are found, run and verified like a GEMM. This one
// runs on the CPU; on a GPU the calls are the same, with tensors in its memory and a stream.
#include <cstdio>
#include <vector>

#include <gemmery/gemmery.hpp>

int main() {
  using namespace gemmery;
  const std::vector<float> gate{-1, 0, 1, 2, 3, 4}, up{1, 2, 3, 4, 5, 6}, bias{10, 20, 30};
  std::vector<float> out(6);
  const auto matrix = [](const std::vector<float>& values) {
    return Tensor(values.data(), DType::float32, {2, 3});
  };

  // A and B are named so in the program; a vector is broadcast.
  const ElementwiseArguments gated(matrix(gate), matrix(up), matrix(out), "D = relu(A) * B + bias",
                                   {{"bias", Tensor(bias.data(), DType::float32, {3})}});
  const auto kernels = get_kernels(gated);
  kernels.at(0).run(gated, {.stream = Stream::cpu()});
  std::printf("%s: %g %g %g / %g %g %g\n", kernels[0].name().c_str(), static_cast<double>(out[0]),
              static_cast<double>(out[1]), static_cast<double>(out[2]), static_cast<double>(out[3]),
              static_cast<double>(out[4]), static_cast<double>(out[5]));

  // It is a GEMM with K = 0, and a problem line writes it as one.
  const ProblemLine line =
      parse_problem("gemm 300x500x0 a=f32 out=bf16 epilogue=\"D = silu(A) * B\" A=bf16 B=bf16");
  const Kernel kernel = get_kernels(line.problem, device_info(Device::cpu())).at(0);
  const VerifyReport report = verify(line, kernel);
  std::printf("verified: %s by %s\n", report.passed ? "yes" : "no", report.method.c_str());
  const bool is_right = out == std::vector<float>{10, 20, 33, 18, 35, 54};
  return is_right && report.passed ? 0 : 1;
}
