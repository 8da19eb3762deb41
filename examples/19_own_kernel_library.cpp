// SPDX-License-Identifier: Apache-2.0
// Your own kernels for the command line: a shared library that registers them.
//
//   g++ -std=c++20 -fPIC -shared 19_own_kernel_library.cpp -o libown.so -lgemmery
//   gemmery verify gemm 64x64x64 a=f32 --load ./libown.so --provider user
#include <cstdint>

#include <gemmery/gemmery.hpp>

namespace {

using namespace gemmery;

// Rows of A times columns of B, one element after the other.
void multiply(const UserCall& call) {
  const GemmArguments& arguments = call.arguments;
  const GemmProblem& problem = arguments.problem();
  const auto* const a = static_cast<const float*>(arguments.a().data());
  const auto* const b = static_cast<const float*>(arguments.b().data());
  auto* const out = static_cast<float*>(arguments.out().data());
  const auto alpha = static_cast<float>(arguments.alpha());
  // With alpha = 0, A and B are not read.
  const std::int64_t depth = alpha == 0 ? 0 : problem.k;
  for (std::int64_t row = 0; row < problem.m; ++row) {
    for (std::int64_t column = 0; column < problem.n; ++column) {
      float sum = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += a[row * arguments.a().stride(1) + k] * b[k * arguments.b().stride(1) + column];
      out[row * arguments.out().stride(1) + column] = alpha * sum;
    }
  }
}

}  // namespace

extern "C" void gemmery_register_kernels() {
  const OperandRule rows{.dtype = DType::float32, .layout = LayoutRule::row};
  UserKernel kernel;
  kernel.name = "rows_times_columns";
  kernel.operands = {.a = rows, .b = rows, .c = {}, .out = rows};
  kernel.code = UserCallable{multiply};
  kernel.supports = [](const Query& query) {
    if (query.problem.l == 1) return Status::success();
    return Status::fail("L: expected 1, got " + std::to_string(query.problem.l));
  };
  register_kernel(std::move(kernel));
}
