// SPDX-License-Identifier: Apache-2.0
// A user's small GEMM in CUDA C++, and a callable, for tests.
#pragma once

#include <gemmery/user_kernel.hpp>

#include <functional>
#include <string>

namespace gemmery::tests {

// The device that runs the kernels; each test program defines it.
Device device_under_test();

// out = alpha * A * B + beta * C in float32, every matrix row major with a stride between rows and
// batches.
inline constexpr const char* tiled_source = R"cuda(
#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void __launch_bounds__(TILE * TILE)
tiled(const float* a, const float* b, const float* c, float* out, int m, int n, int k,
      long long lda, long long ldb, long long ldc, long long ldout, long long batch_a,
      long long batch_b, long long batch_c, long long batch_out, float alpha, double beta) {
  __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
  a += blockIdx.z * batch_a;
  b += blockIdx.z * batch_b;
  c += blockIdx.z * batch_c;
  out += blockIdx.z * batch_out;
  const int row = blockIdx.y * TILE + threadIdx.y;
  const int column = blockIdx.x * TILE + threadIdx.x;
  float sum = 0;
  for (int begin = 0; begin < k; begin += TILE) {
    const int a_column = begin + threadIdx.x;
    const int b_row = begin + threadIdx.y;
    a_tile[threadIdx.y][threadIdx.x] = row < m && a_column < k ? a[row * lda + a_column] : 0;
    b_tile[threadIdx.y][threadIdx.x] = b_row < k && column < n ? b[b_row * ldb + column] : 0;
    __syncthreads();
    for (int step = 0; step < TILE; ++step)
      sum = fmaf(a_tile[threadIdx.y][step], b_tile[step][threadIdx.x], sum);
    __syncthreads();
  }
  if (row < m && column < n) {
    const float addend = beta == 0 ? 0.0f : static_cast<float>(beta) * c[row * ldc + column];
    out[row * ldout + column] = fmaf(alpha, sum, addend);
  }
}

// The same without C, batches and strides.
extern "C" __global__ void packed(const float* a, const float* b, float* out, int m, int n, int k) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int step = 0; step < k; ++step)
    sum = fmaf(a[static_cast<long long>(row) * k + step],
               b[static_cast<long long>(step) * n + column], sum);
  out[static_cast<long long>(row) * n + column] = sum;
}
)cuda";

inline OperandRule rows_of(DType dtype) { return {.dtype = dtype, .layout = LayoutRule::row}; }

inline UserKernel tiled_kernel(std::string name) {
  const OperandRule rows = rows_of(DType::float32);
  UserKernel kernel;
  kernel.name = std::move(name);
  kernel.operands = {.a = rows, .b = rows, .c = rows, .out = rows, .has_c = true};
  kernel.design = {{"tile", "16x16x16"}};
  kernel.code = UserSource{tiled_source};
  kernel.launch.entry = "tiled";
  kernel.launch.parameters = {"A",
                              "B",
                              "C",
                              "out",
                              "m",
                              "n",
                              "k",
                              "A.leading",
                              "B.leading",
                              "C.leading",
                              "out.leading",
                              "A.batch_stride",
                              "B.batch_stride",
                              "C.batch_stride",
                              "out.batch_stride",
                              "alpha",
                              "beta:f64"};
  kernel.launch.grid = {"n/16", "m/16", "l"};
  kernel.launch.block = {16, 16, 1};
  return kernel;
}

inline UserKernel packed_kernel(std::string name) {
  UserKernel kernel = tiled_kernel(std::move(name));
  kernel.operands.c = {};
  kernel.operands.has_c = false;
  kernel.launch.entry = "packed";
  kernel.launch.parameters = {"A", "B", "out", "m", "n", "k"};
  kernel.launch.grid = {"n/16", "m/16", "1"};
  return kernel;
}

// Plain loops with float32 sums, for any strides.
inline void multiply_on_host(const UserCall& call) {
  const GemmArguments& arguments = call.arguments;
  const GemmProblem& problem = arguments.problem();
  const auto at = [](const Tensor& tensor, std::int64_t l, std::int64_t row, std::int64_t column) {
    return static_cast<float*>(tensor.data()) + l * tensor.stride(0) + row * tensor.stride(1) +
           column * tensor.stride(2);
  };
  for (std::int64_t l = 0; l < problem.l; ++l) {
    for (std::int64_t row = 0; row < problem.m; ++row) {
      for (std::int64_t column = 0; column < problem.n; ++column) {
        float sum = 0;
        for (std::int64_t k = 0; arguments.alpha() != 0 && k < problem.k; ++k)
          sum += *at(arguments.a(), l, row, k) * *at(arguments.b(), l, k, column);
        *at(arguments.out(), l, row, column) = static_cast<float>(arguments.alpha()) * sum;
      }
    }
  }
}

inline UserKernel host_kernel(std::string name,
                              std::function<void(const UserCall&)> run = multiply_on_host) {
  const OperandRule any{.dtype = DType::float32, .layout = LayoutRule::any};
  UserKernel kernel;
  kernel.name = std::move(name);
  kernel.operands = {.a = any, .b = any, .c = {}, .out = any};
  kernel.code = UserCallable{std::move(run)};
  return kernel;
}

// The kernel with a name among the results of a discovery; nullptr if it is not among them.
template <class Kernels>
const Kernel* find_in(const Kernels& kernels, const Kernel& wanted) {
  for (const Kernel& kernel : kernels)
    if (kernel == wanted) return &kernel;
  return nullptr;
}

}  // namespace gemmery::tests
