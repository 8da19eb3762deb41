// SPDX-License-Identifier: Apache-2.0
// The first GEMM: find the kernels for three matrices in host memory and run the best.
#include <cstdio>
#include <vector>

#include <gemmery/gemmery.hpp>

int main() {
  using gemmery::DType;
  std::vector<float> a(256 * 128, 0.5F), b(128 * 192, 2.0F), out(256 * 192);
  const gemmery::GemmArguments arguments({a.data(), DType::float32, {256, 128}},  // A is M x K
                                         {b.data(), DType::float32, {128, 192}},  // B is K x N
                                         {out.data(), DType::float32, {256, 192}});
  const auto kernels = gemmery::get_kernels(arguments);  // best first
  kernels.front().run(arguments, {.stream = gemmery::Stream::cpu()});
  std::printf("%s: out[0] = %g, expected 128\n", kernels.front().name().c_str(),
              static_cast<double>(out[0]));
  return out[0] == 128.0F ? 0 : 1;
}
