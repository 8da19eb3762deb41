// SPDX-License-Identifier: Apache-2.0
// Batches by pointers, run: on the CPU, and on emulated devices, whose arrays may change between
// launches.
#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tests/support/error_of.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery {
namespace {

using tests::error_of;

constexpr std::int64_t batches = 3;
constexpr std::int64_t size = 16;
constexpr std::int64_t count = size * size;

// Small matrices of float32, apart from each other; matrix l of A is l + 1 everywhere, of B 2.
struct Matrices {
  Stream stream;
  Buffer memory;
  std::array<Buffer, 3> arrays;  // of A, B and out
  std::array<std::array<float*, batches>, 3> pointers{};

  explicit Matrices(Device device) : stream(Stream::of(nullptr, device)) {
    memory = Buffer(static_cast<std::size_t>(count) * 32 * sizeof(float), stream);
    for (std::size_t operand = 0; operand < 3; ++operand) {
      arrays[operand] = Buffer(batches * sizeof(void*), stream);
      for (std::size_t l = 0; l < batches; ++l) {
        pointers[operand][l] = slot(3 * (batches - l) + operand);
        write(pointers[operand][l], operand == 0 ? static_cast<float>(l + 1) : 2.0F);
      }
      put(operand);
    }
  }
  float* slot(std::size_t index) const {
    return static_cast<float*>(memory.data()) + index * (count + 16);
  }
  void write(float* to, float value) const {
    const std::vector<float> values(count, value);
    copy(to, stream.device(), values.data(), Device::cpu(), count * sizeof(float), stream);
    synchronize(stream);
  }
  std::vector<float> read(const float* from) const {
    std::vector<float> values(count);
    copy(values.data(), Device::cpu(), from, stream.device(), count * sizeof(float), stream);
    synchronize(stream);
    return values;
  }
  void put(std::size_t operand) const {
    copy(arrays[operand].data(), stream.device(), pointers[operand].data(), Device::cpu(),
         batches * sizeof(void*), stream);
    synchronize(stream);
  }
  Tensor view(std::size_t operand, int alignment = 16) const {
    return Tensor(PointerArray{static_cast<const void* const*>(arrays[operand].data()), alignment},
                  DType::float32, {batches, size, size}, stream.device());
  }
  GemmArguments arguments() const { return {view(0), view(1), view(2)}; }
};

void expect_products(const Matrices& x) {
  for (std::size_t l = 0; l < batches; ++l)
    EXPECT_EQ(x.read(x.pointers[2][l]),
              std::vector<float>(count, static_cast<float>(2 * size * (static_cast<int>(l) + 1))));
}

class OnCpu : public testing::Test {};

TEST_F(OnCpu, every_family_takes_pointers) {
  for (const RankedKernel& kernel : get_kernels(Matrices(Device::cpu()).arguments())) {
    const Matrices x(Device::cpu());
    kernel.run(x.arguments(), {.stream = Stream::cpu()});
    expect_products(x);
  }
}

TEST_F(OnCpu, addresses_are_looked_at_when_it_runs) {
  Matrices x(Device::cpu());
  const GemmArguments arguments = x.arguments();
  const Kernel kernel = get_kernels(arguments).front();
  const auto refusal = [&] {
    return error_of([&] { kernel.run(arguments, {.stream = Stream::cpu()}); });
  };
  const auto with = [&](std::size_t operand, std::size_t l, float* pointer) {
    float* const before = std::exchange(x.pointers[operand][l], pointer);
    x.put(operand);
    const Error error = refusal();
    x.pointers[operand][l] = before;
    x.put(operand);
    return error;
  };
  EXPECT_EQ(with(0, 1, nullptr).operand(), "gemm: A[1]");
  EXPECT_EQ(with(1, 2, x.pointers[1][2] + 1).operand(), "gemm: B[2]");
  EXPECT_EQ(with(2, 2, x.pointers[2][0]).operand(), "gemm: out[2]");
  kernel.run(arguments, {.stream = Stream::cpu()});
  expect_products(x);
}

class PointersEmulated : public tests::WithNvrtc {
 protected:
  const Device device_ = parse_device("emulated:a100").value();
};

TEST_F(PointersEmulated, may_change_between_launches) {
  Matrices x(device_);
  const GemmArguments arguments = x.arguments();
  for (const char* const family : {"simt", "sm80"}) {
    GemmOptions options;
    if (family == std::string("sm80")) options.math = Math::tf32;
    const GemmArguments wanted(x.view(0), x.view(1), x.view(2), options);
    const auto kernels = get_kernels(wanted);
    const auto found = std::ranges::find_if(
        kernels, [&](const Kernel& kernel) { return kernel.family().name() == family; });
    ASSERT_NE(found, kernels.end()) << family;
    PreparedLaunch launch = found->compile(wanted).bind(wanted);
    launch.launch(x.stream);
    expect_products(x);
    // The same array, with other addresses in it.
    for (std::size_t l = 0; l < batches; ++l) x.pointers[2][l] = x.slot(20 + l);
    x.put(2);
    launch.launch(x.stream);
    expect_products(x);
    for (std::size_t l = 0; l < batches; ++l) x.write(x.pointers[2][l], 0);
  }
}

TEST_F(PointersEmulated, a_broken_promise_is_a_fault_there) {
  Matrices x(device_);
  x.pointers[1][1] += 1;
  x.put(1);
  const GemmArguments arguments = x.arguments();
  const Kernel kernel = get_kernels(arguments).front();
  const Error error = error_of([&] {
    kernel.run(arguments, {.stream = x.stream});
    synchronize(x.stream);
  });
  EXPECT_NE(std::string(error.what()).find("misaligned"), std::string::npos) << error.what();
}

TEST(Pointers, families_that_do_not_take_them_name_the_operand) {
  const DeviceInfo h200 = *find_device_info("h200");
  const GemmProblem problem =
      parse_problem("gemm 256x256x256x4 a=bf16 b=bf16/pointers out=bf16/pointers").problem;
  for (const RankedKernel& kernel : get_kernels(problem, h200))
    EXPECT_NE(kernel.family().name(), "sm90");
  const Explanation explanation = explain(problem, h200);
  const auto sm90 = std::ranges::find(explanation.reasons, "sm90", &Reason::family);
  ASSERT_NE(sm90, explanation.reasons.end());
  EXPECT_EQ(sm90->failed, "B: expected matrices one batch stride apart, got pointers");
  const GemmProblem strided = parse_problem("gemm 256x256x256x4 a=bf16").problem;
  const auto kernels = get_kernels(strided, h200);
  const auto found = std::ranges::find_if(
      kernels, [](const Kernel& kernel) { return kernel.family().name() == "sm90"; });
  ASSERT_NE(found, kernels.end());
  EXPECT_EQ(found->supports(problem, h200).error(), sm90->failed);
}

TEST(Pointers, verify_and_bench_make_them) {
  const ProblemLine line = parse_problem("gemm 20x30x40x3 a=f32/pointers out=f32:c/pointers");
  for (const RankedKernel& kernel : get_kernels(line.problem, device_info(Device::cpu()))) {
    const VerifyReport report = verify(line, kernel, {});
    EXPECT_TRUE(report.passed) << kernel.name() << ": " << report.first_failure;
  }
  const Kernel best = get_kernels(line.problem, device_info(Device::cpu())).front();
  EXPECT_GT(measure(line, best, {.device = Device::cpu()}).median_us, 0);
}

}  // namespace
}  // namespace gemmery
