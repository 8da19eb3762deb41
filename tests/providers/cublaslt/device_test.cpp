// SPDX-License-Identifier: Apache-2.0
// cuBLASLt on a GPU: every kernel that its heuristics name, compared with the bound over types,
// layouts and epilogues; capture, threads, special values.
#include <gemmery/artifact.hpp>
#include <gemmery/buffer.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/error.hpp>
#include <gemmery/verify.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "driver/graph.hpp"
#include "providers/cublaslt/library.hpp"
#include "tests/providers/cublaslt/scaled_operands.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery {
namespace {

const Filter only_cublaslt{.providers = {"cublaslt"}};

std::size_t wanted_gpu() {
  const char* const text = std::getenv("GEMMERY_TEST_DEVICE");
  return static_cast<std::size_t>(text != nullptr ? std::atoi(text) : 0);
}

class CublasltDevice : public testing::Test {
 protected:
  void SetUp() override {
    const auto gpus = devices();
    if (gpus.empty()) GTEST_SKIP() << "no GPU on this machine";
    ASSERT_LT(wanted_gpu(), gpus.size()) << "GEMMERY_TEST_DEVICE";
    device_ = gpus[wanted_gpu()];
    const cublaslt::FoundLibrary& found = cublaslt::process_library();
    if (!found.library) GTEST_SKIP() << found.reason;
    std::cout << "cuBLASLt " << to_string(found.library->version) << " at " << found.library->path
              << "\n";
  }

  std::vector<RankedKernel> kernels_for(const std::string& line) const {
    return get_kernels(parse_problem(line).problem, device_info(device_), only_cublaslt);
  }
  std::string refusal_of(const std::string& line) const {
    const auto explanation =
        explain(parse_problem(line).problem, device_info(device_), only_cublaslt);
    return explanation.reasons.empty() ? "" : explanation.reasons[0].failed;
  }

  // Verifies every kernel for a line. A line that cuBLASLt does not run here is told and counted.
  void verify_all(const std::string& line) {
    const auto kernels = kernels_for(line);
    if (kernels.empty()) {
      std::cout << "  not run: " << line << ": " << refusal_of(line) << "\n";
      ++refused_;
      return;
    }
    double worst = 0;
    for (const RankedKernel& kernel : kernels) {
      for (const Fill fill : {Fill::normal, Fill::integers}) {
        const VerifyReport report =
            verify(parse_problem(line), kernel,
                   {.fill = fill, .seed = tests::random_seed(), .device = device_});
        worst = std::max(worst, report.worst_ratio);
        EXPECT_TRUE(report.passed)
            << line << "\n"
            << kernel.name() << "\nseed " << report.seed << ": " << report.first_failure;
      }
    }
    verified_ += static_cast<int>(kernels.size());
    std::cout << fmt::format("  {} kernels, worst {:.3f} of the bound: {}\n", kernels.size(), worst,
                             line);
  }

  void TearDown() override {
    if (verified_ + refused_ > 0)
      std::cout << verified_ << " kernels verified, " << refused_ << " lines not run\n";
  }

  Device device_;
  int verified_ = 0;
  int refused_ = 0;
};

// The line with each pair of layouts of A and B.
std::vector<std::string> with_layouts(const std::string& sizes, const std::string& types,
                                      const std::string& rest) {
  std::vector<std::string> lines;
  for (const char* const a : {"", ":c"})
    for (const char* const b : {"", ":c"})
      lines.push_back(fmt::format("gemm {} a={}{} b={}{} {}", sizes, types, a, types, b, rest));
  return lines;
}

// --- results ------------------------------------------------------------------------------------

TEST_F(CublasltDevice, every_kernel_is_within_the_bound_in_every_type_and_layout) {
  struct Row {
    const char* types;
    const char* rest;
  };
  const Row rows[] = {{"f32", ""},
                      {"f32", "math=tf32"},
                      {"f32", "math=bf16"},
                      {"f32", "math=f16"},
                      {"f32", "math=bf16x9"},
                      {"f64", ""},
                      {"f16", ""},
                      {"f16", "out=f32"},
                      {"f16", "acc=f16"},
                      {"bf16", ""},
                      {"bf16", "out=f32"},
                      {"bf16", "out=bf16:c"},
                      {"int8", "out=int32"},
                      {"e4m3", "out=bf16"},
                      {"e4m3", "out=f32"},
                      {"e4m3", "out=f16 math=fp8_fast"}};
  for (const Row& row : rows)
    for (const std::string& line : with_layouts("272x144x208", row.types, row.rest))
      verify_all(line);
  verify_all("gemm 272x144x208 a=e4m3 b=e5m2:c out=bf16");
  verify_all("gemm 272x144x208 a=e5m2 b=e4m3:c out=bf16");
  EXPECT_GT(verified_, 0);
}

TEST_F(CublasltDevice, every_kernel_is_within_the_bound_in_other_shapes) {
  for (const char* const line :
       {"gemm 1x512x1024 a=bf16 b=bf16:c", "gemm 512x1x1024 a=bf16", "gemm 16x4096x4096 a=bf16",
        "gemm 128x128x16384 a=bf16", "gemm 64x64x8192 a=f16 out=f32", "gemm 129x257x65 a=bf16",
        "gemm 129x257x65 a=f32", "gemm 127x126x125 a=f16/align=2 b=f16/align=2",
        "gemm 96x80x112x5 a=bf16 b=bf16:c", "gemm 96x80x112x5 a=bf16 b=bf16/batch=0",
        "gemm 96x80x112 a=bf16/ld=128 b=bf16/ld=96 out=bf16/ld=88",
        "gemm 96x80x112 a=bf16 c=bf16 beta=0.5 alpha=2", "gemm 96x80x112 a=f32 c=f32 beta=0",
        "gemm 96x80x112 a=f16 c=f16/ld=88 beta=1", "gemm 96x80x112 a=f64 c=f64 beta=-1"})
    verify_all(line);
  EXPECT_GT(verified_, 0);
}

// The program with its operands, in several types and both layouts of out.
std::vector<std::string> with_program(const std::string& program) {
  const auto has = [&](const char* text) { return program.find(text) != std::string::npos; };
  std::vector<std::string> lines;
  for (const std::string types : {"a=bf16 b=bf16:c", "a=f16 b=f16:c out=f32", "a=f32",
                                  "a=f32 math=tf32", "a=bf16 out=bf16:c"}) {
    const bool is_column = types.ends_with("out=bf16:c");
    const std::string dtype = types.starts_with("a=bf16") ? "bf16" : "f32";
    const std::string matrix = dtype + (is_column ? ":c" : "");
    std::string operands;
    if (has("b1")) operands += fmt::format(" b1={}[{}]", dtype, is_column ? "m" : "n");
    if (has("R")) operands += " R=" + matrix;
    lines.push_back(fmt::format("gemm 160x96x128 {} epilogue=\"{}\"{}", types, program, operands));
  }
  return lines;
}

TEST_F(CublasltDevice, epilogues_are_within_the_bound) {
  for (const char* const program :
       {"D = accum + b1", "D = 2 * accum + b1 + R", "D = relu(accum + b1)", "D = relu(accum)"})
    for (const std::string& line : with_program(program)) verify_all(line);
  verify_all(R"_(gemm 160x96x128 a=e4m3 b=e4m3:c out=bf16 epilogue="D = accum + b1" b1=bf16[n])_");
  verify_all(R"_(gemm 160x96x128x3 a=bf16 b=bf16:c epilogue="D = accum + b1" b1=bf16[l,n])_");
  EXPECT_GT(verified_, 0);
}

// --- runs ----------------------------------------------------------------------------------------

// float32 operands on the GPU: A of `value`, B of ones, out of 16 x 16.
struct Operands {
  static constexpr std::int64_t size = 16;

  OwnedStream own;
  Stream stream;
  Buffer a, b, c, out;

  Operands(Device device, float value, float added = 0)
      : own(device),
        stream(own.get()),
        a(filled(value)),
        b(filled(1)),
        c(filled(added)),
        out(filled(-1)) {}

  Buffer filled(float value) const {
    const std::vector<float> values(size * size, value);
    Buffer buffer(values.size() * sizeof(float), stream);
    copy(buffer.data(), stream.device(), values.data(), Device::cpu(),
         values.size() * sizeof(float), stream);
    synchronize(stream);
    return buffer;
  }
  Tensor of(const Buffer& memory) const {
    return Tensor(memory.data(), DType::float32, {size, size}, stream.device());
  }
  GemmArguments arguments(GemmOptions options = {}) const {
    return GemmArguments(of(a), of(b), of(out), options);
  }
  float value() const {
    std::vector<float> values(size * size);
    copy(values.data(), Device::cpu(), out.data(), stream.device(), values.size() * sizeof(float),
         stream);
    synchronize(stream);
    for (const float one : values)
      EXPECT_TRUE(one == values[0] || (std::isnan(one) && std::isnan(values[0])));
    return values[0];
  }
};

TEST_F(CublasltDevice, a_kernel_is_captured_at_its_first_run) {
  const Operands operands(device_, 2);
  const GemmArguments arguments = operands.arguments();
  const auto kernels = get_kernels(arguments, only_cublaslt);
  ASSERT_FALSE(kernels.empty());
  for (const RankedKernel& kernel : kernels) {
    (void)kernel.compile(arguments);
    const Buffer memory(std::max<std::size_t>(kernel.get_workspace_size(arguments), 256),
                        operands.stream);
    driver::GraphCapture capture(operands.stream);
    kernel.run(arguments,
               {.stream = operands.stream, .workspace = {memory.data(), memory.bytes()}});
    const driver::Graph graph = capture.end();
    EXPECT_EQ(operands.value(), -1) << "it ran while it was captured";
    graph.launch(operands.stream);
    EXPECT_EQ(operands.value(), 32) << kernel.name();
    fill(operands.out.data(), 0, operands.out.bytes(), operands.stream);
    graph.launch(operands.stream);
    EXPECT_EQ(operands.value(), 32) << kernel.name();
    copy(operands.out.data(), device_, operands.filled(-1).data(), device_, operands.out.bytes(),
         operands.stream);
  }
}

TEST_F(CublasltDevice, prepared_launches_and_names_run) {
  const Operands operands(device_, 2, 5);
  const GemmArguments arguments =
      operands.arguments({.c = operands.of(operands.c), .alpha = 1, .beta = 1});
  for (const RankedKernel& found : get_kernels(arguments, only_cublaslt)) {
    const auto kernel = find_kernel(found.name());
    ASSERT_TRUE(kernel.has_value()) << found.name();
    EXPECT_EQ(*kernel, static_cast<const Kernel&>(found));
    PreparedLaunch launch = kernel->compile(arguments).bind(arguments);
    launch.launch(operands.stream);
    EXPECT_EQ(operands.value(), 37);
    launch.set_scalars(2, 0);
    launch.launch(operands.stream);
    EXPECT_EQ(operands.value(), 64);
  }
}

// The heuristics' own data and data made from the identifiers in a name are the same kernel.
TEST_F(CublasltDevice, kernels_made_from_their_identifiers_run) {
  const auto found = kernels_for("gemm 512x512x512 a=bf16 b=bf16:c");
  ASSERT_FALSE(found.empty());
  int ran = 0;
  for (const RankedKernel& kernel : found) {
    const ProblemLine other = parse_problem("gemm 256x384x320 a=bf16 b=bf16:c");
    const Status status = kernel.supports(other.problem, device_info(device_));
    if (!status) {
      std::cout << "  not run: " << kernel.name() << ": " << status.error() << "\n";
      continue;
    }
    const VerifyReport report = verify(other, kernel, {.device = device_});
    EXPECT_TRUE(report.passed) << kernel.name() << ": " << report.first_failure;
    ++ran;
  }
  std::cout << ran << " of " << found.size() << " ran another problem of their class\n";
}

TEST_F(CublasltDevice, threads_share_a_handle) {
  std::vector<std::thread> threads;
  for (int thread = 1; thread <= 4; ++thread)
    threads.emplace_back([this, thread] {
      const Operands operands(device_, static_cast<float>(thread));
      const GemmArguments arguments = operands.arguments();
      const auto kernels = get_kernels(arguments, only_cublaslt);
      ASSERT_FALSE(kernels.empty());
      for (int round = 0; round < 50; ++round)
        for (const RankedKernel& kernel : kernels)
          kernel.run(arguments, {.stream = operands.stream, .assume_supported = true});
      EXPECT_EQ(operands.value(), static_cast<float>(16 * thread));
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CublasltDevice, scales_of_float8_are_those_of_tensors_and_of_rows) {
  for (const ScaleBlock block : {scale_block::tensor, scale_block::row}) {
    const tests::ScaledOnes ones(device_, block);
    const GemmArguments arguments = ones.arguments();
    const auto kernels = get_kernels(arguments, only_cublaslt);
    std::cout << "  " << kernels.size() << " kernels with scales of " << to_string(block) << "\n";
    for (const RankedKernel& kernel : kernels) {
      kernel.run(arguments, {.stream = ones.stream()});
      EXPECT_EQ(ones.count_wrong(), 0) << kernel.name();
    }
  }
}

// --- special values ------------------------------------------------------------------------------

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST_F(CublasltDevice, a_c_is_not_read_with_beta_0) {
  const Operands operands(device_, 2, nan);
  const GemmArguments arguments =
      operands.arguments({.c = operands.of(operands.c), .alpha = 1, .beta = 0});
  for (const RankedKernel& kernel : get_kernels(arguments, only_cublaslt)) {
    kernel.run(arguments, {.stream = operands.stream});
    EXPECT_EQ(operands.value(), 32) << kernel.name();
  }
}

TEST_F(CublasltDevice, nan_passes_through) {
  const Operands operands(device_, nan);
  const GemmArguments plain = operands.arguments();
  for (const RankedKernel& kernel : get_kernels(plain, only_cublaslt)) {
    kernel.run(plain, {.stream = operands.stream});
    EXPECT_TRUE(std::isnan(operands.value())) << kernel.name();
  }
}

TEST_F(CublasltDevice, alpha_0_is_refused_by_name) {
  const Operands operands(device_, 2);
  const GemmArguments arguments = operands.arguments();
  const auto kernels = get_kernels(arguments, only_cublaslt);
  ASSERT_FALSE(kernels.empty());
  const Status status = kernels[0].supports(operands.arguments({.alpha = 0}));
  EXPECT_NE(status.error().find("alpha: expected another number than 0"), std::string::npos);
}

TEST_F(CublasltDevice, kernels_come_after_all_others) {
  const auto all = get_kernels(parse_problem("gemm 1024x1024x1024 a=bf16 b=bf16:c").problem,
                               device_info(device_));
  bool is_last = false;
  for (const RankedKernel& kernel : all) {
    const bool is_cublaslt = kernel.family().provider() == "cublaslt";
    EXPECT_TRUE(is_cublaslt || !is_last || kernel.is_measured) << kernel.name();
    is_last = is_last || is_cublaslt;
  }
  EXPECT_TRUE(is_last);
}

}  // namespace
}  // namespace gemmery
