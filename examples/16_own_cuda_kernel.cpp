// SPDX-License-Identifier: Apache-2.0
// Bring your own kernel, as CUDA C++: a tiled product in shared memory becomes one of the kernels
// that are discovered, compiled, cached, run and verified. It runs on the first GPU, or else on an
// emulated one, where every access is checked.
#include <cstdio>
#include <string>
#include <vector>

#include <gemmery/gemmery.hpp>

namespace {

using namespace gemmery;

// Blocks of 16 x 16 threads, each thread one element of out; A and B pass through shared memory.
constexpr const char* source = R"cuda(
constexpr int tile = 16;

extern "C" __global__ void __launch_bounds__(tile * tile)
tiled(const float* a, const float* b, float* out, int m, int n, int k, long long lda, long long ldb,
      long long ldout, float alpha) {
  __shared__ float a_tile[tile][tile], b_tile[tile][tile];
  const int row = blockIdx.y * tile + threadIdx.y;
  const int column = blockIdx.x * tile + threadIdx.x;
  float sum = 0;
  for (int begin = 0; begin < k; begin += tile) {
    const int a_column = begin + threadIdx.x;
    const int b_row = begin + threadIdx.y;
    a_tile[threadIdx.y][threadIdx.x] = row < m && a_column < k ? a[row * lda + a_column] : 0;
    b_tile[threadIdx.y][threadIdx.x] = b_row < k && column < n ? b[b_row * ldb + column] : 0;
    __syncthreads();
    for (int step = 0; step < tile; ++step)
      sum = fmaf(a_tile[threadIdx.y][step], b_tile[step][threadIdx.x], sum);
    __syncthreads();
  }
  if (row < m && column < n) out[row * ldout + column] = alpha * sum;
}
)cuda";

UserKernel make_kernel() {
  const OperandRule rows{.dtype = DType::float32, .layout = LayoutRule::row};
  UserKernel kernel;
  kernel.name = "tiled";
  kernel.operands = {.a = rows, .b = rows, .c = {}, .out = rows};
  kernel.design = {{"tile", "16x16x16"}};
  kernel.code = UserSource{source};
  kernel.launch.entry = "tiled";
  kernel.launch.parameters = {"A", "B",         "out",       "m",           "n",
                              "k", "A.leading", "B.leading", "out.leading", "alpha"};
  kernel.launch.grid = {"n/16", "m/16", "1"};
  kernel.launch.block = {16, 16, 1};
  // Two operations of 4 bytes of shared memory for a product, 128 bytes a clock and multiprocessor.
  kernel.predicted_us = [](const Query& query) {
    const double clocks = query.problem.flops() / 2 * 8 / 128 / query.device.multiprocessors;
    return clocks / (query.device.clock_ghz * 1e3);
  };
  return kernel;
}

}  // namespace

int main() {
  const Kernel own = register_kernel(make_kernel());
  const Device device = devices().empty() ? *parse_device("emulated:h200") : devices().front();

  // Discovery lists it among the others, and it gives reasons for what it does not support.
  const ProblemLine line = parse_problem("gemm 200x130x90 a=f32");
  for (const RankedKernel& kernel :
       get_kernels(line.problem, device_info(device), {.providers = {"user"}}))
    std::printf("%s: predicted %.1f us\n", kernel.name().c_str(), kernel.predicted_us);
  const ProblemLine batched = parse_problem("gemm 200x130x90x3 a=f32");
  std::printf("a batch: %s\n", own.supports(batched.problem, device_info(device)).error().c_str());

  // Random inputs with NaN around them, guard bands, every element checked against its bound.
  const VerifyReport report = verify(line, own, {.device = device});
  std::printf("verified on %s: %s, worst error %.0f %% of its bound\n", to_string(device).c_str(),
              report.passed ? "yes" : "no", report.worst_ratio * 100);
  return report.passed && find_kernel(own.name()) == own ? 0 : 1;
}
