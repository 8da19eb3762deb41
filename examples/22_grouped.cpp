// SPDX-License-Identifier: Apache-2.0
// GEMMs of groups whose sizes differ: the experts of a mixture layer. The sizes are read when the
// work runs, so one prepared launch works for all sizes. This one runs on the CPU; on a GPU the
// calls are the same, with tensors and sizes in its memory and a stream.
#include <cstdint>
#include <cstdio>
#include <vector>

#include <gemmery/gemmery.hpp>

int main() {
  using namespace gemmery;
  constexpr std::int64_t T = 6, G = 3, K = 4, N = 2;  // rows of all groups, groups
  const std::vector<float> tokens(T * K, 1), bias{0, 0, 10, 10, 20, 20};
  std::vector<float> weights(G * K * N), out(T * N, -1);
  for (std::size_t i = 0; i < weights.size(); ++i)  // group g's are g + 1
    weights[i] = static_cast<float>(i / (K * N) + 1);
  std::vector<std::int32_t> ends{2, 2, 5};  // rows 0 and 1, none, rows 2 to 4; row 5 has no group

  const GroupedGemmArguments arguments(
      {tokens.data(), DType::float32, {T, K}}, {weights.data(), DType::float32, {G, K, N}},
      {out.data(), DType::float32, {T, N}}, DType::float32,
      {.sizes = std::span<const std::int32_t>(ends)},
      {.epilogue = EpilogueArguments("D = accum + bias",
                                     {{"bias", Tensor(bias.data(), DType::float32, {G, 1, N})}})});
  const auto kernels = get_kernels(arguments);
  PreparedLaunch launch = kernels.at(0).compile(arguments).bind(arguments);
  const auto run = [&] {
    launch.launch();
    std::printf("first column:");
    for (std::int64_t row = 0; row < T; ++row)
      std::printf(" %g", static_cast<double>(out[static_cast<std::size_t>(row * N)]));
    std::printf("\n");
  };
  run();
  const bool first = out == std::vector<float>{4, 4, 4, 4, 32, 32, 32, 32, 32, 32, -1, -1};
  ends = {0, 6, 6};  // all rows belong to the second group
  run();
  const bool second = out == std::vector<float>(T * N, 18);

  // For a problem line the sizes are random: equal, skewed or mostly empty groups.
  const ProblemLine line = parse_problem("grouped_gemm 200x32x48 groups=7 a=bf16 counts=i64");
  const Kernel kernel = get_kernels(line.problem, device_info(Device::cpu())).at(0);
  const VerifyReport report = verify(line, kernel);
  std::printf("verified: %s by %s\n", report.passed ? "yes" : "no", report.method.c_str());
  return first && second && report.passed ? 0 : 1;
}
