// SPDX-License-Identifier: Apache-2.0
// Elementwise programs without a matrix product on an emulated H200: types, layouts, broadcasts,
// partial tiles, further results; the ranking of kernels; refusals.
#include <gtest/gtest.h>
#include <gemmery/buffer.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/elementwise.hpp>
#include <gemmery/verify.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "api/trial.hpp"
#include "tests/providers/templates/on_emulated_h200.hpp"

namespace gemmery {
namespace {

class ElementwiseEmulated : public tests::OnEmulatedH200 {};

const Kernel* find_elementwise(const std::vector<RankedKernel>& kernels) {
  const auto found = std::ranges::find_if(
      kernels, [](const RankedKernel& kernel) { return kernel.family().name() == "elementwise"; });
  return found == kernels.end() ? nullptr : &*found;
}

std::string refusal(const std::string& line, const DeviceInfo& device) {
  for (const Reason& reason : explain(parse_problem(line).problem, device).reasons) {
    if (reason.family == "elementwise") return reason.failed;
  }
  return "no reason";
}

// Problems with K = 0: whole and partial tiles and patches, rows out of bounds.
constexpr const char* problems[] = {
    "16x2048x0 a=f32 out=bf16 epilogue=\"D = A + B\" A=bf16 B=bf16",
    "37x1003x0 a=f32 out=bf16 epilogue=\"D = A + B\" A=bf16 B=bf16",
    "5x9000x0 a=f32 out=f16 epilogue=\"D = silu(A) * B\" A=f16 B=f32",
    "300x6x0 a=f32 out=f32 epilogue=\"D = A - B\" A=f32 B=f16",
    "1x777x0 a=f32 out=f32 epilogue=\"D = x * s\" x=f32 s=0.75",
    "777x1x0 a=f32 out=f32 epilogue=\"D = x * s\" x=f32 s=0.75",
    "40x136x0 a=f32 out=f16:c epilogue=\"D = A + B\" A=f16:c B=f16",
    "33x70x0 a=f32 out=f32:c epilogue=\"D = A + row\" A=f32:c row=f32[n]",
    "33x70x0 a=f32 out=f32/ld=96 epilogue=\"D = A * column + row\" A=f32/ld=80 column=f16[m] "
    "row=f32[n]",
    "21x34x0x3 a=f32 out=bf16 epilogue=\"D = A + B + z\" A=bf16 B=bf16[l,n] z=f32[1]",
    "33x70x0 a=f32 out=f32/strides=210,3 epilogue=\"D = A + B\" A=f32/strides=1,33 "
    "B=f32/strides=-70,1",
    "29x64x0 a=f64 out=f64 epilogue=\"D = A * B\" A=f64 B=f32",
    "29x65x0 a=s8 acc=s32 out=s32 epilogue=\"D = A + B\" A=s32 B=s32",
    "29x64x0 a=s8 acc=s32 out=s8 epilogue=\"D = A + B\" A=s8 B=u8",
    "40x72x0 a=f32 out=e4m3 epilogue=\"D = A * s\" A=bf16 s=0.25",
    "40x72x0 a=f32 out=bf16 epilogue=\"D = relu(A); kept = A > 0; wide = A + 1\" A=bf16 kept=u8 "
    "wide=f32",
};

TEST_F(ElementwiseEmulated, programs_are_within_their_bounds_and_the_same_twice) {
  for (const char* const problem : problems) {
    const ProblemLine line = parse_problem(std::string("gemm ") + problem);
    const auto kernels = get_kernels(line.problem, device_info(h200_));
    const Kernel* const kernel = find_elementwise(kernels);
    ASSERT_NE(kernel, nullptr) << problem << ": "
                               << to_string(explain(line.problem, device_info(h200_)));
    const std::uint64_t seed = random_();
    const VerifyReport report = api::run_trial(
        {.line = line, .options = {.seed = seed, .device = h200_}, .repeats = 2}, *kernel);
    EXPECT_TRUE(report.passed) << problem << " seed " << seed << ": " << report.first_failure;
    EXPECT_EQ(find_kernel(kernel->name()), *kernel) << kernel->name();
  }
}

TEST_F(ElementwiseEmulated, a_large_one_is_served_by_the_elementwise_kernel_first) {
  const auto line =
      parse_problem("gemm 8192x8192x0 a=f32 out=bf16 epilogue=\"D = A + B\" A=bf16 B=bf16");
  const auto kernels = get_kernels(line.problem, device_info(h200_));
  ASSERT_FALSE(kernels.empty());
  EXPECT_EQ(kernels.front().family().name(), "elementwise");
  EXPECT_EQ(kernels.front().operands().out.alignment, 16);
}

TEST_F(ElementwiseEmulated, arguments_run_in_place_and_by_prepared_launches) {
  const OwnedStream stream(h200_);
  constexpr std::int64_t rows = 9, columns = 130;
  std::vector<float> a(rows * columns), b(rows * columns), result(rows * columns);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(random_() % 1000);
    b[i] = static_cast<float>(random_() % 1000);
  }
  const std::size_t bytes = a.size() * sizeof(float);
  const Buffer device_a(bytes, stream), device_b(bytes, stream), other(bytes, stream);
  copy(device_a.data(), h200_, a.data(), Device::cpu(), bytes, stream);
  copy(device_b.data(), h200_, b.data(), Device::cpu(), bytes, stream);
  copy(other.data(), h200_, b.data(), Device::cpu(), bytes, stream);
  const Tensor out(device_a.data(), DType::float32, {rows, columns}, h200_);
  const ElementwiseArguments sum(
      out, Tensor(device_b.data(), DType::float32, {rows, columns}, h200_), out);
  const auto kernels = get_kernels(sum);
  const Kernel* const kernel = find_elementwise(kernels);
  ASSERT_NE(kernel, nullptr);
  kernel->run(sum, {.stream = stream, .max_multiprocessors = 1});
  PreparedLaunch prepared = kernel->compile(sum).bind(sum);
  prepared.set_data("epilogue.B", other.data());
  prepared.launch(stream);
  copy(result.data(), Device::cpu(), device_a.data(), h200_, bytes, stream);
  synchronize(stream);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(result[i], a[i] + 2 * b[i]) << i;
}

TEST_F(ElementwiseEmulated, what_is_not_elementwise_is_refused_with_the_reason) {
  const DeviceInfo& device = device_info(h200_);
  EXPECT_NE(
      refusal("gemm 8x8x8 a=f32 epilogue=\"D = A + accum\" A=f32", device).find("K: expected 0"),
      std::string::npos);
  EXPECT_NE(refusal("gemm 8x8x0 a=f32", device).find("a program other than"), std::string::npos);
  EXPECT_NE(refusal("gemm 8x8x0 a=f32 epilogue=\"D = A; s = sum(A)\" A=f32 s=f32[1]", device)
                .find("without reductions"),
            std::string::npos);
}

// The fallback computes reductions.
TEST_F(ElementwiseEmulated, reductions_without_a_product_have_a_kernel) {
  const ProblemLine line =
      parse_problem("gemm 40x50x0 a=f32 epilogue=\"D = A; s = sum(A)\" A=f32 s=f32[m]");
  const auto kernels = get_kernels(line.problem, device_info(h200_));
  ASSERT_FALSE(kernels.empty());
  const VerifyReport report = verify(line, kernels.front(), {.device = h200_});
  EXPECT_TRUE(report.passed) << report.first_failure;
}

}  // namespace
}  // namespace gemmery
