// SPDX-License-Identifier: Apache-2.0
// Runs the suite on kernels of users: CUDA C++ on an emulated H200, a callable on the CPU.
#include <gemmery/discovery.hpp>
#include <gemmery/user_kernel.hpp>

#include <gtest/gtest.h>

#include <cstdio>

#include "jit/nvrtc.hpp"
#include "tests/conformance/suite.hpp"
#include "tests/providers/user/tiled_kernel.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::conformance {
namespace {

void expect_conformance(const std::vector<Kernel>& kernels, std::int64_t cases, Device device) {
  const SuiteReport report =
      run_suite({.kernels = kernels,
                 .cases = cases,
                 .seed = tests::random_seed(),
                 .limits = {.products = 1 << 16, .depth = 200, .device = device},
                 .asks_others = false});
  std::printf("%s", to_string(report).c_str());
  EXPECT_EQ(report.mismatches(), 0);
  for (const std::string& failure : report.failures) ADD_FAILURE() << failure;
  for (const auto& [family, tally] : report.of_family) EXPECT_GT(tally.runs, 0) << family;
}

TEST(UserKernels, in_cuda_conform) {
  const jit::CompilerStatus status = jit::compiler_status();
  if (!status.found) GTEST_SKIP() << status.searched;
  UserKernel scaled = tests::tiled_kernel("conforming_without_c");
  scaled.operands.c = {};
  scaled.operands.has_c = false;
  scaled.code = UserSource{R"cuda(
extern "C" __global__ void dot(const float* a, const float* b, float* out, int m, int n, int k,
                               long long a_row, long long a_column, long long b_row,
                               long long b_column, long long out_row, long long out_column,
                               long long a_batch, long long b_batch, long long out_batch,
                               float alpha) {
  const long long row = blockIdx.y * blockDim.y + threadIdx.y;
  const long long column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  a += blockIdx.z * a_batch + row * a_row;
  b += blockIdx.z * b_batch + column * b_column;
  float sum = 0;
  for (int step = 0; step < k; ++step) sum = fmaf(a[step * a_column], b[step * b_row], sum);
  out[blockIdx.z * out_batch + row * out_row + column * out_column] = alpha * sum;
}
)cuda"};
  const OperandRule any{.dtype = DType::float32, .layout = LayoutRule::any};
  scaled.operands.a = scaled.operands.b = scaled.operands.out = any;
  scaled.launch.entry = "dot";
  scaled.launch.parameters = {"A",
                              "B",
                              "out",
                              "m",
                              "n",
                              "k",
                              "A.row_stride",
                              "A.column_stride",
                              "B.row_stride",
                              "B.column_stride",
                              "out.row_stride",
                              "out.column_stride",
                              "A.batch_stride",
                              "B.batch_stride",
                              "out.batch_stride",
                              "alpha"};
  const std::vector<Kernel> kernels{register_kernel(std::move(scaled)),
                                    register_kernel(tests::tiled_kernel("conforming"))};
  expect_conformance(kernels, 60, *parse_device("emulated:h200"));
  for (const Kernel& kernel : kernels) withdraw_kernel(kernel);
}

TEST(UserKernels, that_are_called_conform) {
  const Kernel kernel = register_kernel(tests::host_kernel("conforming_callable"));
  expect_conformance({kernel}, 100, Device::cpu());
  withdraw_kernel(kernel);
}

}  // namespace
}  // namespace gemmery::conformance
