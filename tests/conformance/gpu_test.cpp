// SPDX-License-Identifier: Apache-2.0
// Every kernel that discovery knows for a GPU, through the suite. GEMMERY_TEST_DEVICE picks the GPU
// (0 unless set); GEMMERY_SOAK=1 asks for 20,000 cases on at most 600 kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include <gemmery/gemmery.hpp>

#include "platform/parallel.hpp"
#include "providers/host/number.hpp"
#include "tests/conformance/suite.hpp"

namespace gemmery::conformance {
namespace {

int test_device_index() {
  const char* const text = std::getenv("GEMMERY_TEST_DEVICE");
  return text != nullptr ? std::atoi(text) : 0;
}

class GpuConformance : public testing::Test {
 protected:
  void SetUp() override {
    const auto gpus = devices();
    if (gpus.empty()) GTEST_SKIP() << "no GPU on this machine";
    const auto index = static_cast<std::size_t>(test_device_index());
    ASSERT_LT(index, gpus.size()) << "GEMMERY_TEST_DEVICE";
    device_ = gpus[index];
  }

  // Kernels that run on the device, a random sample: half of it where A, B and out have one type or
  // out is that of the sums, which are few among all combinations and used most.
  std::vector<Kernel> sample_kernels(std::size_t count) const {
    const Target target = device_info(device_).target;
    std::vector<Kernel> plain;
    std::vector<Kernel> mixed;
    for_each_kernel([&](const Kernel& kernel) {
      if (!kernel.family().availability()) return;
      const auto targets = kernel.family().targets(kernel);
      const auto runs_here = [&](Target code) { return !code.is_cpu() && runs_on(code, target); };
      if (std::ranges::any_of(targets, runs_here)) {
        (is_plain(kernel.operands()) ? plain : mixed).push_back(kernel);
      }
    });
    Choices choices(test_seed());
    std::vector<Kernel> chosen = choose_kernels(std::move(plain), count / 2, choices);
    for (const Kernel& kernel : choose_kernels(std::move(mixed), count - chosen.size(), choices)) {
      chosen.push_back(kernel);
    }
    return chosen;
  }

  static bool is_plain(const OperandRules& rules) {
    const bool keeps_type =
        rules.out.dtype == rules.a.dtype || rules.out.dtype == rules.accumulator;
    return rules.a.dtype == rules.b.dtype && keeps_type;
  }

  Device device_;
};

// Compiles side by side; what fails is reported with the others.
void compile_all(const std::vector<Kernel>& kernels, Device device) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::vector<std::jthread> workers;
  for (int worker = 0; worker < platform::thread_count(); ++worker) {
    workers.emplace_back([&] {
      for (std::size_t index = next++; index < kernels.size(); index = next++) {
        try {
          const Kernel& kernel = kernels[index];
          const Artifact artifact = kernel.family().compile(
              kernel, kernel.family().target_for(kernel, device_info(device)));
          artifact.load(device);
        } catch (const std::exception& error) {
          const std::scoped_lock lock(mutex);
          ADD_FAILURE() << kernels[index].name() << ": " << error.what();
        }
      }
    });
  }
}

TEST_F(GpuConformance, every_kernel_is_right_on_random_problems) {
  const std::vector<Kernel> kernels = sample_kernels(is_soak() ? 600 : 60);
  ASSERT_FALSE(kernels.empty());
  compile_all(kernels, device_);
  if (HasFailure()) return;
  const SuiteReport report = run_suite({.kernels = kernels,
                                        .cases = is_soak() ? 20000 : 2000,
                                        .seed = test_seed(),
                                        .threads = std::min(platform::thread_count(), 16),
                                        .limits = {.products = 1 << 19, .device = device_}});
  std::cout << kernels.size() << " kernels on " << device_info(device_).name << "\n"
            << to_string(report);
  EXPECT_EQ(report.mismatches(), 0);
}

// Problems in which rows, columns or batches are packed so closely that elements which look aligned
// are not, or have no extent at all; in which every fitting kernel once could go wrong.
constexpr const char* degenerate_lines[] = {
    "gemm 64x1x64 a=f32",
    "gemm 1x64x64 a=f32:c",
    "gemm 64x64x1 a=f32",
    "gemm 64x64x1 a=s8 out=s32",
    "gemm 1x1x1 a=bf16 out=f32",
    "gemm 64x64x64x3 a=f32 b=f32/batch=1",
    "gemm 64x64x64 a=f32 b=f32/strides=1,1",
    "gemm 64x64x64 a=bf16/strides=1,1 out=f32",
    "gemm 32x32x32x5 a=bf16/batch=1 out=f32",
    "gemm 64x64x64x2 a=f32 c=f32/batch=1 beta=1",
    "gemm 64x64x64 a=s8/strides=1,1 out=s32",
    "gemm 33x17x1x4 a=f64 b=f64/batch=0",
    "gemm 16x16x0 a=f32 c=f32[n] beta=0.5",
    "gemm 64x8x8 a=f16/strides=0,0 out=f32",
};

TEST_F(GpuConformance, degenerate_problems_are_right_on_every_layout_that_fits) {
  const std::size_t per_line = is_soak() ? 200 : 8;
  for (const char* const text : degenerate_lines) {
    const ProblemLine line = parse_problem(text);
    std::vector<Kernel> kernels;
    for (const RankedKernel& kernel : get_kernels(line.problem, device_info(device_))) {
      if (kernels.size() < per_line) kernels.push_back(kernel);
    }
    ASSERT_FALSE(kernels.empty()) << text;
    compile_all(kernels, device_);
    for (const Kernel& kernel : kernels) {
      const VerifyReport report =
          verify(line, kernel, {.seed = test_seed(), .guard_bands = true, .device = device_});
      EXPECT_TRUE(report.passed) << text << " " << kernel.name() << ": " << report.first_failure;
    }
  }
}

// --- one bit pattern ----------------------------------------------------------------------------

// A, B and out of a problem on the device, A and B filled.
struct DeviceOperands {
  Buffer a, b, out;
  GemmArguments arguments;

  static DeviceOperands make(const ProblemLine& line, std::uint64_t seed, Stream stream) {
    const GemmProblem& p = line.problem;
    api::Trial trial{.line = line,
                     .options = {.seed = seed, .guard_bands = false, .device = stream.device()}};
    OperandRules rules;
    rules.accumulator = p.accumulator;
    rules.math = p.math;
    api::TrialOperands host(trial, rules);
    Buffer a = upload(host.a, stream);
    Buffer b = upload(host.b, stream);
    Buffer out(host.out.bytes().size(), stream);
    synchronize(stream);
    GemmArguments arguments(host.a.at(a.data(), stream.device()),
                            host.b.at(b.data(), stream.device()),
                            host.out.at(out.data(), stream.device()), p.accumulator,
                            {.alpha = line.alpha, .math = p.math});
    return {std::move(a), std::move(b), std::move(out), std::move(arguments)};
  }

 private:
  static Buffer upload(const api::GuardedOperand& operand, Stream stream) {
    Buffer buffer(operand.bytes().size(), stream);
    copy(buffer.data(), stream.device(), operand.bytes().data(), Device::cpu(),
         operand.bytes().size(), stream);
    synchronize(stream);
    return buffer;
  }
};

std::vector<std::byte> download(const Buffer& buffer, Stream stream) {
  std::vector<std::byte> bytes(buffer.bytes());
  copy(bytes.data(), Device::cpu(), buffer.data(), stream.device(), bytes.size(), stream);
  synchronize(stream);
  return bytes;
}

TEST_F(GpuConformance, a_thousand_runs_on_eight_streams_give_one_bit_pattern) {
  const std::uint64_t seed = test_seed();
  for (const char* const text :
       {"gemm 517x389x1031 a=f32", "gemm 256x256x4096 a=f16 out=f32", "gemm 200x300x500 a=f64"}) {
    const ProblemLine line = parse_problem(text);
    std::vector<OwnedStream> streams;
    std::vector<DeviceOperands> operands;
    for (int index = 0; index < 8; ++index) {
      streams.emplace_back(device_);
      operands.push_back(DeviceOperands::make(line, seed, streams.back()));
    }
    const Kernel kernel = get_kernels(operands.front().arguments).front();
    ASSERT_TRUE(kernel.metadata().deterministic);
    for (std::size_t index = 0; index < 8; ++index)
      fill(operands[index].out.data(), 0xff, operands[index].out.bytes(), streams[index]);
    kernel.run(operands[0].arguments, {.stream = streams[0]});
    const std::vector<std::byte> first = download(operands[0].out, streams[0]);
    int patterns = 1;
    for (int round = 0; round < 125; ++round) {
      for (std::size_t index = 0; index < 8; ++index)
        kernel.run(operands[index].arguments, {.stream = streams[index]});
      for (std::size_t index = 0; index < 8; ++index)
        patterns += download(operands[index].out, streams[index]) == first ? 0 : 1;
    }
    EXPECT_EQ(patterns, 1) << kernel.name() << " on " << text << ", seed " << seed;
  }
}

// --- beyond 2^31 elements -----------------------------------------------------------------------

// A is a column of ones of 2^31 + 96 rows, or has a stride that reaches as far; rows are sampled at
// both ends and in between.
struct FarCase {
  const char* name;
  std::int64_t rows;
  std::int64_t a_row_stride;
  std::int64_t out_row_stride;
};

void check_far_rows(const FarCase& far, Device device, std::uint64_t seed) {
  SCOPED_TRACE(fmt::format("{}, seed {}", far.name, seed));
  constexpr std::int64_t n = 8;
  constexpr std::int64_t k = 4;
  const OwnedStream stream(device);
  const auto a_bytes = static_cast<std::size_t>((far.rows - 1) * far.a_row_stride + k);
  const auto out_bytes = static_cast<std::size_t>((far.rows - 1) * far.out_row_stride + n);
  Buffer a(a_bytes, stream);
  Buffer b(static_cast<std::size_t>(k * n), stream);
  Buffer out(4 * out_bytes, stream);
  fill(a.data(), 0, a_bytes, stream);
  fill(out.data(), 0xff, 4 * out_bytes, stream);
  std::vector<std::int8_t> b_host;
  for (std::int64_t i = 0; i < k * n; ++i)
    b_host.push_back(static_cast<std::int8_t>(i * 7 % 19 - 9));
  copy(b.data(), device, b_host.data(), Device::cpu(), b_host.size(), stream);

  Choices choices(seed);
  std::vector<std::int64_t> rows{0,
                                 far.rows - 1,
                                 far.rows / 2,
                                 (std::int64_t{1} << 31) / far.a_row_stride,
                                 (std::int64_t{1} << 31) / far.out_row_stride,
                                 (std::int64_t{1} << 32) / far.out_row_stride};
  for (int sample = 0; sample < 50; ++sample) rows.push_back(choices.between(0, far.rows - 1));
  std::vector<std::array<std::int8_t, k>> values;
  for (std::int64_t& row : rows) {
    row = std::min(row, far.rows - 1);
    std::array<std::int8_t, k> value{};
    for (std::size_t column = 0; column < k; ++column)
      value[column] = static_cast<std::int8_t>(row * 31 % 101 + static_cast<std::int64_t>(column));
    values.push_back(value);
    copy(static_cast<std::byte*>(a.data()) + row * far.a_row_stride, device, values.back().data(),
         Device::cpu(), k, stream);
    synchronize(stream);
  }

  const GemmArguments arguments(
      Tensor(a.data(), DType::int8, {far.rows, k}, {far.a_row_stride, 1}, device),
      Tensor(b.data(), DType::int8, {k, n}, device),
      Tensor(out.data(), DType::int32, {far.rows, n}, {far.out_row_stride, 1}, device));
  for (const RankedKernel& kernel : get_kernels(arguments)) {
    SCOPED_TRACE(kernel.name());
    kernel.run(arguments, {.stream = stream});
    synchronize(stream);
    for (std::size_t sample = 0; sample < rows.size(); ++sample) {
      std::array<std::int32_t, n> got{};
      copy(got.data(), Device::cpu(),
           static_cast<std::int32_t*>(out.data()) + rows[sample] * far.out_row_stride, device,
           sizeof got, stream);
      synchronize(stream);
      for (std::size_t column = 0; column < n; ++column) {
        std::int32_t expected = 0;
        for (std::size_t i = 0; i < k; ++i) expected += values[sample][i] * b_host[i * n + column];
        ASSERT_EQ(got[column], expected) << "row " << rows[sample] << ", column " << column;
      }
    }
    if (!is_soak()) break;
  }
}

TEST_F(GpuConformance, offsets_beyond_31_bits_are_reached) {
  if (device_info(device_).memory_bytes < (std::int64_t{40} << 30))
    GTEST_SKIP() << "needs 40 GB of device memory";
  const std::uint64_t seed = test_seed();
  // More than 2^31 elements in A and in out; then few rows that are far apart.
  check_far_rows({"many rows", (std::int64_t{1} << 29) + 1000, 5, 8}, device_, seed);
  check_far_rows({"far rows", 5000, 1000003, 500009}, device_, seed);
}

TEST_F(GpuConformance, a_second_device_gives_the_same_bits) {
  const auto gpus = devices();
  if (gpus.size() < 2) GTEST_SKIP() << "one GPU on this machine";
  const std::uint64_t seed = test_seed();
  const ProblemLine line = parse_problem("gemm 333x222x111 a=f32");
  std::vector<std::vector<std::byte>> results;
  for (const Device device : {gpus[0], gpus[1]}) {
    const OwnedStream stream(device);
    DeviceOperands operands = DeviceOperands::make(line, seed, stream);
    fill(operands.out.data(), 0xff, operands.out.bytes(), stream);
    get_kernels(operands.arguments).front().run(operands.arguments, {.stream = stream});
    results.push_back(download(operands.out, stream));
  }
  EXPECT_TRUE(results[0] == results[1]) << "seed " << seed;
}

}  // namespace
}  // namespace gemmery::conformance
