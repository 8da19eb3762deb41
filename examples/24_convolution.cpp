// SPDX-License-Identifier: Apache-2.0
// A convolution with bias, activation and a sum per channel in one kernel, and the gradient of its
// images. Tensors are channels last. This one runs on the CPU; on a GPU the calls are the same.
#include <cstdint>
#include <cstdio>
#include <vector>

#include <gemmery/gemmery.hpp>

int main() {
  using namespace gemmery;
  constexpr std::int64_t N = 1, H = 4, W = 4, C = 2, K = 3, R = 3, S = 3;
  const std::vector<float> x(N * H * W * C, 1), w(K * R * S * C, 1), bias{0, 1, -10};
  std::vector<float> y(N * H * W * K), sums(K), dx(N * H * W * C);
  const Tensor images(x.data(), DType::float32, {N, H, W, C});
  const Tensor filters(w.data(), DType::float32, {K, R, S, C});
  const Tensor outputs(y.data(), DType::float32, {N, H, W, K});

  const ConvArguments forward(
      ConvKind::fprop, images, filters, outputs, {.padding = 1},
      {.epilogue = EpilogueArguments("D = relu(accum + bias); sums = sum(D)",
                                     {{"bias", Tensor(bias.data(), DType::float32, {K})},
                                      {"sums", Tensor(sums.data(), DType::float32, {K})}})});
  get_kernels(forward).at(0).run(forward, {.stream = Stream::cpu()});
  // 4 corners of 8, 8 edges of 12 and 4 inner pixels of 18, with the bias.
  std::printf("a corner: %g %g %g; sums: %g %g %g\n", static_cast<double>(y[0]),
              static_cast<double>(y[1]), static_cast<double>(y[2]), static_cast<double>(sums[0]),
              static_cast<double>(sums[1]), static_cast<double>(sums[2]));
  const bool is_right =
      y[0] == 8 && y[1] == 9 && y[2] == 0 && sums == std::vector<float>{200, 216, 8 * 2 + 4 * 8};

  const Tensor gradient(y.data(), DType::float32, {N, H, W, K});
  const ConvArguments backward(ConvKind::dgrad, gradient, filters,
                               Tensor(dx.data(), DType::float32, {N, H, W, C}), {.padding = 1});
  get_kernels(backward).at(0).run(backward, {.stream = Stream::cpu()});
  std::printf("dx of a corner: %g\n", static_cast<double>(dx[0]));
  // The corner's taps are itself, two edges and an inner pixel, in three channels each.
  const bool is_gradient = dx[0] == (8 + 9 + 0) + 2 * (12 + 13 + 2) + (18 + 19 + 8);

  const ProblemLine line =
      parse_problem("conv2d_wgrad 2x9x8x6 k=5 r=3 s=3 pad=1 stride=2 a=bf16 out=f32");
  const Kernel kernel = get_kernels(line.problem, device_info(Device::cpu())).at(0);
  const VerifyReport report = verify(line, kernel);
  std::printf("verified: %s by %s\n", report.passed ? "yes" : "no", report.method.c_str());
  return is_right && is_gradient && report.passed ? 0 : 1;
}
