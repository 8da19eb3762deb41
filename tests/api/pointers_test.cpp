// SPDX-License-Identifier: Apache-2.0
// Runs batches by pointers on the CPU and on emulated devices, where arrays may change between
// launches.
#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "driver/graph.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery {
namespace {

using tests::error_of;

constexpr std::int64_t batches = 3;
constexpr std::int64_t size = 16;
constexpr std::int64_t count = size * size;

// Small separate matrices of float32. Elements of matrix l of A are l + 1, those of B 2.
struct Matrices {
  Stream stream;
  Buffer memory;
  std::array<Buffer, 3> arrays;  // for A, B and out
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

// The best kernel of a family.
Kernel best_of(const std::string& family, const std::vector<RankedKernel>& kernels) {
  const auto found = std::ranges::find_if(
      kernels, [&](const Kernel& kernel) { return kernel.family().name() == family; });
  if (found == kernels.end()) throw std::runtime_error("no kernel of " + family);
  return *found;
}

struct FamilyOn {
  const char* family;
  const char* device;
};

class PointersEmulated : public tests::WithNvrtc, public testing::WithParamInterface<FamilyOn> {
 protected:
  const Device device_ = parse_device(GetParam().device).value();

  // In TF32 if the family has no other kernel for float32.
  static GemmArguments arguments_of(const Matrices& x) {
    GemmOptions options;
    if (GetParam().family != std::string("simt")) options.math = Math::tf32;
    return {x.view(0), x.view(1), x.view(2), options};
  }
  static Kernel kernel_for(const GemmArguments& arguments) {
    return best_of(GetParam().family, get_kernels(arguments));
  }
  // Writes other addresses of results into the array.
  static void move_results(Matrices& x) {
    for (std::size_t l = 0; l < batches; ++l) x.pointers[2][l] = x.slot(20 + l);
    x.put(2);
  }
};
INSTANTIATE_TEST_SUITE_P(Families, PointersEmulated,
                         testing::Values(FamilyOn{"simt", "emulated:a100"},
                                         FamilyOn{"sm80", "emulated:a100"},
                                         FamilyOn{"sm90", "emulated:h200"}),
                         [](const auto& row) { return std::string(row.param.family); });

TEST_P(PointersEmulated, may_change_between_launches) {
  Matrices x(device_);
  const GemmArguments arguments = arguments_of(x);
  PreparedLaunch launch = kernel_for(arguments).compile(arguments).bind(arguments);
  launch.launch(x.stream);
  expect_products(x);
  move_results(x);
  launch.launch(x.stream);
  expect_products(x);
}

TEST_P(PointersEmulated, may_change_between_replays_of_a_graph) {
  Matrices x(device_);
  const GemmArguments arguments = arguments_of(x);
  PreparedLaunch launch = kernel_for(arguments).compile(arguments).bind(arguments);
  const OwnedStream stream(device_);
  driver::GraphCapture capture(stream);
  launch.launch(stream);
  const driver::Graph graph = capture.end();
  const auto replay = [&] {
    graph.launch(stream);
    synchronize(stream);
    expect_products(x);
  };
  replay();
  move_results(x);
  for (std::size_t l = 0; l < batches; ++l) std::swap(x.pointers[1][l], x.pointers[1][0]);
  x.put(1);
  replay();
}

TEST_P(PointersEmulated, a_broken_promise_is_a_fault_there) {
  Matrices x(device_);
  x.pointers[1][1] += 1;
  x.put(1);
  const GemmArguments arguments = arguments_of(x);
  const Error error = error_of([&] {
    kernel_for(arguments).run(arguments, {.stream = x.stream});
    synchronize(x.stream);
  });
  const std::string kind = GetParam().family == std::string("sm90") ? "trap" : "misaligned";
  EXPECT_NE(std::string(error.what()).find(kind), std::string::npos) << error.what();
}

TEST(Pointers, kernels_of_sm90_that_do_not_take_them_name_the_operand) {
  const DeviceInfo h200 = *find_device_info("h200");
  const GemmProblem problem =
      parse_problem("gemm 256x256x256x4 a=bf16 b=bf16/pointers out=bf16/pointers").problem;
  const GemmProblem strided = parse_problem("gemm 256x256x256x4 a=bf16").problem;
  const Kernel kernel = best_of("sm90", get_kernels(strided, h200));
  EXPECT_EQ(kernel.supports(problem, h200).error(),
            "B: expected matrices one batch stride apart, got pointers");
  const Kernel taking = best_of("sm90", get_kernels(problem, h200));
  EXPECT_TRUE(taking.name().ends_with("_pointers")) << taking.name();
  EXPECT_EQ(taking.metadata().design_value("batches"), "pointers");
  EXPECT_EQ(find_kernel(taking.name()), taking);
  EXPECT_TRUE(taking.supports(strided, h200));
}

TEST(Pointers, less_than_16_bytes_are_copied_for_sm90) {
  const DeviceInfo h200 = *find_device_info("h200");
  const GemmProblem problem =
      parse_problem("gemm 256x256x256x4 a=bf16/pointers/align=2 out=bf16/pointers/align=4").problem;
  const Kernel kernel = best_of("sm90", get_kernels(problem, h200));
  EXPECT_EQ(kernel.metadata().design_value("repacked"), "a");
  EXPECT_EQ(kernel.operands().out.alignment, 4);
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
