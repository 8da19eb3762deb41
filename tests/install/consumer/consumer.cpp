// SPDX-License-Identifier: Apache-2.0
// A user's first program: the best kernel for three matrices in host memory. Prints the version;
// fails if the product is wrong.
#include <cstdio>
#include <vector>

#include <gemmery/gemmery.hpp>

int main() {
  using gemmery::DType;
  std::vector<float> a(24 * 40, 0.5F), b(40 * 16, 2.0F);
  std::vector<float> out(24 * 16);
  const gemmery::GemmArguments arguments({a.data(), DType::float32, {24, 40}},
                                         {b.data(), DType::float32, {40, 16}},
                                         {out.data(), DType::float32, {24, 16}});
  const auto kernels = gemmery::get_kernels(arguments);
  if (kernels.empty()) return 1;
  kernels.front().run(arguments, {.stream = gemmery::Stream::cpu()});
  for (const float value : out) {
    if (value != 40.0F) return 2;
  }
  std::printf("gemmery %s\n", gemmery::version());
  return 0;
}
