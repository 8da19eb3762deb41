// SPDX-License-Identifier: Apache-2.0
// The family on a fake library and a fake driver: answers, names, runs, failures, devices.
#include "providers/cublaslt/family.hpp"

#include <gemmery/artifact.hpp>
#include <gemmery/buffer.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/error.hpp>
#include <gemmery/verify.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "driver/graph.hpp"
#include "kernel/plain_gemm.hpp"
#include "kernel/rank.hpp"
#include "tests/driver/fake_driver.hpp"
#include "tests/providers/cublaslt/scaled_operands.hpp"
#include "tests/providers/cublaslt/with_fake.hpp"
#include "tests/support/error_of.hpp"

namespace gemmery::cublaslt {
namespace {

using tests::error_of;
using tests::fake_cublaslt;
using tests::fake_device;
using tests::fake_library;
using tests::FakeAlgorithm;

const FoundLibrary& absent_library() {
  static const auto* const found = new FoundLibrary{nullptr, "unavailable: cuBLASLt: not found"};
  return *found;
}

// The family lives as long as the process.
const CublasltFamily& family() {
  static const auto* const one = [] {
    tests::install_fake_driver();
    return new CublasltFamily(fake_library, DeviceType::emulated);
  }();
  return *one;
}

const DeviceInfo& device() { return driver::open_device(fake_device()).info(); }

std::vector<RankedKernel> kernels_for(const std::string& line,
                                      const CublasltFamily& asked = family()) {
  const GemmProblem problem = parse_problem(line).problem;
  std::vector<RankedKernel> kernels;
  asked.match({*kernel::AsFamiliesSee(problem), device()}, kernels);
  return kernels;
}

std::string refusal_of(const std::string& line, const CublasltFamily& asked = family(),
                       const DeviceInfo& info = device()) {
  std::vector<Reason> reasons;
  asked.explain({parse_problem(line).problem, info}, reasons);
  return reasons.at(0).failed;
}

class Cublaslt : public testing::Test {
 protected:
  void SetUp() override {
    tests::install_fake_driver();
    tests::reset_fake_counts();
    tests::FakeCublasLt& fake = fake_cublaslt();
    fake.algorithms = {FakeAlgorithm{.id = 66, .tile = 23, .waves = 0.9F},
                       FakeAlgorithm{.id = 21, .tile = 20, .workspace_bytes = 4096, .waves = 1.5F},
                       FakeAlgorithm{.id = 7, .splits = 4, .reduction = 2, .waves = 3}};
    fake.failures.clear();
    fake.calls.clear();
    fake.matmuls.clear();
    fake.on_call = [] {
      EXPECT_NE(tests::fake_current_context(), nullptr) << "no context is current";
    };
  }
  void TearDown() override { fake_cublaslt().on_call = nullptr; }
};

// Operands on a fake device: A of ones, B of twos, C of threes.
struct Operands {
  static constexpr std::int64_t M = 24, N = 16, K = 8;

  OwnedStream own;
  Stream stream;
  Buffer a, b, c, out;

  explicit Operands(Device device = fake_device())
      : own(device),
        stream(own.get()),
        a(filled(M * K, 1)),
        b(filled(K * N, 2)),
        c(filled(M * N, 3)),
        out(filled(M * N, -1)) {}

  Buffer filled(std::int64_t count, float value) const {
    const std::vector<float> values(static_cast<std::size_t>(count), value);
    Buffer buffer(values.size() * sizeof(float), stream);
    copy(buffer.data(), stream.device(), values.data(), Device::cpu(),
         values.size() * sizeof(float), stream);
    synchronize(stream);
    return buffer;
  }
  Tensor of(const Buffer& memory, std::int64_t rows, std::int64_t columns) const {
    return Tensor(memory.data(), DType::float32, {rows, columns}, stream.device());
  }
  GemmArguments arguments(double alpha = 1, double beta = 0, bool has_c = false) const {
    GemmOptions options{.alpha = alpha, .beta = beta};
    if (has_c) options.c = of(c, M, N);
    return GemmArguments(of(a, M, K), of(b, K, N), of(out, M, N), options);
  }
  std::set<float> values() const {
    std::vector<float> read(M * N);
    copy(read.data(), Device::cpu(), out.data(), stream.device(), read.size() * sizeof(float),
         stream);
    synchronize(stream);
    return {read.begin(), read.end()};
  }
};

Kernel kernel_of(const GemmArguments& arguments, std::size_t place = 0) {
  std::vector<RankedKernel> kernels;
  family().match({arguments.problem(), device(), &arguments}, kernels);
  return kernels.at(place);
}

// --- answers ------------------------------------------------------------------------------------

TEST_F(Cublaslt, kernels_are_the_algorithms_of_the_heuristics_in_their_order) {
  const auto kernels = kernels_for("gemm 64x64x64 a=bf16 b=bf16:c");
  ASSERT_EQ(kernels.size(), 3U);
  EXPECT_EQ(kernels[0].metadata().design_value("algorithm"), "66");
  EXPECT_EQ(kernels[0].metadata().design_value("tile"), "128x256");
  EXPECT_EQ(kernels[0].metadata().design_value("library"), "13.1.2");
  EXPECT_EQ(kernels[0].metadata().design_value("instruction"), "mma");
  EXPECT_EQ(kernels[2].metadata().design_value("split_k"), "4");
  EXPECT_EQ(kernels[2].metadata().design_value("reduction"), "compute_type");
  EXPECT_GT(kernels[0].predicted_us, 0);
  EXPECT_LE(kernels[0].predicted_us, kernels[1].predicted_us);
  EXPECT_LE(kernels[1].predicted_us, kernels[2].predicted_us);
  EXPECT_EQ(refusal_of("gemm 64x64x64 a=bf16 b=bf16:c"), "");
}

TEST_F(Cublaslt, equal_problems_are_asked_once) {
  (void)kernels_for("gemm 65x64x64 a=bf16 b=bf16:c");
  (void)kernels_for("gemm 65x64x64 a=bf16 b=bf16:c");
  EXPECT_EQ(fake_cublaslt().calls["cublasLtMatmulAlgoGetHeuristic"], 1);
}

TEST_F(Cublaslt, sums_of_splits_in_the_type_of_out_are_never_asked_for) {
  fake_cublaslt().algorithms = {FakeAlgorithm{.id = 1, .splits = 2, .reduction = 4},
                                FakeAlgorithm{.id = 2, .splits = 2, .reduction = 1},
                                FakeAlgorithm{.id = 3, .splits = 2, .reduction = 2}};
  const auto kernels = kernels_for("gemm 66x64x64 a=bf16");
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].metadata().design_value("algorithm"), "3");
}

TEST_F(Cublaslt, algorithms_with_a_failed_state_or_beyond_the_design_are_left_out) {
  fake_cublaslt().algorithms = {FakeAlgorithm{.id = 1, .state = Result::not_supported},
                                FakeAlgorithm{.id = 2, .tile = 70000}, FakeAlgorithm{.id = 3},
                                FakeAlgorithm{.id = 3}};
  EXPECT_EQ(kernels_for("gemm 67x64x64 a=bf16").size(), 1U);
  fake_cublaslt().algorithms.clear();
  EXPECT_TRUE(kernels_for("gemm 68x64x64 a=bf16").empty());
  EXPECT_EQ(refusal_of("gemm 68x64x64 a=bf16"),
            "heuristics: expected an algorithm for this problem, got none");
}

TEST_F(Cublaslt, a_refusal_of_the_heuristics_is_a_reason) {
  fake_cublaslt().failures["cublasLtMatmulAlgoGetHeuristic"] = Result::not_supported;
  const std::string refusal = refusal_of("gemm 69x64x64 a=bf16");
  EXPECT_NE(refusal.find("CUBLAS_STATUS_NOT_SUPPORTED (15): as the test asked"), std::string::npos)
      << refusal;
}

TEST_F(Cublaslt, a_failing_call_is_a_reason_and_is_tried_again) {
  for (const char* const function :
       {"cublasLtMatmulDescCreate", "cublasLtMatrixLayoutCreate", "cublasLtMatmulPreferenceCreate",
        "cublasLtMatmulDescSetAttribute", "cublasLtMatmulPreferenceSetAttribute",
        "cublasLtMatmulAlgoConfigGetAttribute"}) {
    const int live = fake_cublaslt().live_objects;
    fake_cublaslt().failures[function] = Result::alloc_failed;
    const std::string refusal = refusal_of("gemm 70x64x64 a=bf16");
    EXPECT_NE(refusal.find(function), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("CUBLAS_STATUS_ALLOC_FAILED"), std::string::npos) << refusal;
    EXPECT_EQ(fake_cublaslt().live_objects, live) << function << " leaks descriptors";
  }
  EXPECT_EQ(refusal_of("gemm 70x64x64 a=bf16"), "");
}

TEST_F(Cublaslt, known_faults_are_left_out_with_the_reason) {
  // The fake library says 13.1.2 and the fake devices are sm_90: no row applies, so the row's own
  // test is in library_test.cpp. Here: nothing is left out needlessly.
  EXPECT_EQ(kernels_for("gemm 71x64x64 a=bf16").size(), 3U);
}

TEST_F(Cublaslt, an_absent_library_is_a_reason) {
  static const CublasltFamily without(absent_library, DeviceType::emulated);
  EXPECT_TRUE(kernels_for("gemm 64x64x64 a=bf16", without).empty());
  EXPECT_EQ(refusal_of("gemm 64x64x64 a=bf16", without), "unavailable: cuBLASLt: not found");
  const Error error = error_of([] { (void)without.open(fake_device()); });
  EXPECT_EQ(error.kind(), ErrorKind::unavailable);
}

TEST_F(Cublaslt, other_devices_are_refused_by_name_without_opening_the_library) {
  static int opened = 0;
  static const CublasltFamily counting(
      +[]() -> const FoundLibrary& {
        ++opened;
        return fake_library();
      },
      DeviceType::cuda);
  EXPECT_NE(refusal_of("gemm 64x64x64 a=bf16", counting, device_info(Device::cpu()))
                .find("expected a GPU"),
            std::string::npos);
  EXPECT_NE(refusal_of("gemm 64x64x64 a=bf16", counting, device_info("a100"))
                .find("expected a GPU of this machine"),
            std::string::npos);
  const Operands operands;
  const GemmArguments arguments = operands.arguments();
  std::vector<Reason> reasons;
  counting.explain({arguments.problem(), device(), &arguments}, reasons);
  EXPECT_NE(reasons[0].failed.find("got emulated:"), std::string::npos) << reasons[0].failed;
  EXPECT_EQ(counting.device_info(fake_device()), nullptr);
  EXPECT_EQ(opened, 0);
}

TEST_F(Cublaslt, groups_convolutions_and_pointers_are_refused_by_name) {
  const std::vector<const Family*> families{&family()};
  for (const auto& [line, part] :
       {std::pair{"grouped_gemm 64x32x16 groups=4 a=bf16 ends=i32", "groups: "},
        std::pair{"conv2d_fprop 1x8x8x16 k=16 r=3 s=3 a=f16", "operation: "}}) {
    const auto reasons = kernel::collect_reasons({parse_problem(line).problem, device()}, families);
    ASSERT_EQ(reasons.size(), 1U);
    EXPECT_TRUE(reasons[0].failed.starts_with(part)) << reasons[0].failed;
  }
}

TEST_F(Cublaslt, numbers_make_it_refuse_and_never_change_the_list) {
  const Operands operands;
  const GemmArguments arguments = operands.arguments(0);
  std::vector<Reason> reasons;
  family().explain({arguments.problem(), device(), &arguments}, reasons);
  EXPECT_EQ(reasons.at(0).failed, "alpha: expected another number than 0, got 0");
  const Kernel kernel = kernel_of(arguments);
  EXPECT_EQ(kernel.supports(arguments).error(), reasons[0].failed);
  EXPECT_EQ(kernel, kernel_of(operands.arguments(1)));
  const Error error = error_of(
      [&] { kernel.run(arguments, {.stream = operands.stream, .assume_supported = true}); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
}

TEST_F(Cublaslt, an_algorithm_without_a_shape_of_clusters_is_taken) {
  fake_cublaslt().algorithms = {FakeAlgorithm{.id = 5, .has_shapes = false}};
  const auto kernels = kernels_for("gemm 73x64x64 a=bf16");
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].metadata().design_value("cluster"), "auto");
  const auto read = family().parse_name(kernels[0].name());
  EXPECT_TRUE(read.value().supports(parse_problem("gemm 74x64x64 a=bf16").problem, device()));
}

// --- names --------------------------------------------------------------------------------------

TEST_F(Cublaslt, names_are_read_back) {
  for (const char* const line :
       {"gemm 64x64x64 a=bf16 b=bf16:c", "gemm 64x64x64 a=e4m3 b=e4m3:c out=f32",
        "gemm 64x64x64 a=f16/align=2 c=f16 beta=1", "gemm 64x64x64 a=tf32 out=f32:c",
        R"_(gemm 64x64x64 a=bf16 epilogue="D = accum + bias" bias=bf16[n])_"}) {
    for (const Kernel& kernel : kernels_for(line)) {
      const auto read = family().parse_name(kernel.name());
      ASSERT_TRUE(read.has_value()) << kernel.name();
      EXPECT_EQ(*read, kernel) << kernel.name();
    }
  }
  const std::string name = kernels_for("gemm 64x64x64 a=bf16 b=bf16:c").at(0).name();
  EXPECT_EQ(name,
            "cublaslt_v1_13.1.2_sm90_bf16r16_bf16c16_bf16r16_none_f32_native_id66_tile23_stages36_"
            "cluster0_splits1_reduction0_swizzle0_inner0_option0_mma");
  for (std::size_t end = 0; end < name.size(); ++end)
    EXPECT_EQ(family().parse_name(name.substr(0, end)), std::nullopt) << end;
  EXPECT_EQ(family().parse_name(name + "_"), std::nullopt);
  EXPECT_EQ(family().parse_name("cublaslt_v1_13.1.2_sm999_" + name.substr(24)), std::nullopt);
}

TEST_F(Cublaslt, a_kernel_by_name_is_configured_from_its_identifiers) {
  const Operands operands;
  const GemmArguments arguments = operands.arguments();
  std::string name = kernel_of(arguments).name();
  name.replace(name.find("cluster0"), 8, "cluster2");  // the heuristics do not name this one
  const auto kernel = family().parse_name(name);
  ASSERT_TRUE(kernel.has_value());
  EXPECT_TRUE(kernel->supports(arguments)) << kernel->supports(arguments).error();
  kernel->run(arguments, {.stream = operands.stream});
  EXPECT_TRUE(fake_cublaslt().matmuls.back().is_configured);
  EXPECT_EQ(operands.values(), std::set<float>{16});
}

TEST_F(Cublaslt, a_kernel_of_another_version_device_or_algorithm_is_refused) {
  const Operands operands;
  const GemmArguments arguments = operands.arguments();
  const std::string name = kernel_of(arguments).name();
  const auto refusal = [&](std::string from, const std::string& to) {
    std::string changed = name;
    changed.replace(changed.find(from), from.size(), to);
    return family().parse_name(changed).value().supports(arguments).error();
  };
  EXPECT_NE(refusal("13.1.2", "13.2.0").find("version: expected cuBLASLt 13.2.0, got 13.1.2"),
            std::string::npos);
  EXPECT_NE(refusal("_sm90_", "_sm80_").find("target: expected one of sm_80"), std::string::npos);
  EXPECT_NE(refusal("_id66_", "_id99_").find("cublasLtMatmulAlgoInit"), std::string::npos);
  EXPECT_NE(refusal("_tile23_", "_tile5_").find("cublasLtMatmulAlgoCheck"), std::string::npos);
}

// --- running ------------------------------------------------------------------------------------

TEST_F(Cublaslt, results_are_verified) {
  for (
      const char* const line :
      {"gemm 33x17x19 a=f32", "gemm 33x17x19 a=f32:c b=f32:c out=f32:c",
       "gemm 24x32x40 a=bf16 b=bf16:c", "gemm 24x32x40 a=f16 out=f32", "gemm 20x12x28 a=f64",
       "gemm 32x16x64 a=int8 b=int8:c out=int32", "gemm 32x16x64 a=e4m3 b=e5m2:c out=bf16",
       "gemm 9x8x7x3 a=f32", "gemm 9x8x7x3 a=f32 b=f32/batch=0", "gemm 1x5x7 a=f32",
       "gemm 5x1x7 a=f32", "gemm 16x16x1 a=bf16", "gemm 16x8x8 a=f32 c=f32 beta=2 alpha=0.5",
       "gemm 16x8x8 a=f32/ld=11 b=f32/ld=9 out=f32/ld=12 c=f32/ld=10 beta=1",
       R"_(gemm 16x24x32 a=bf16 epilogue="D = accum + bias" bias=bf16[n])_",
       R"_(gemm 16x24x32 a=bf16 out=bf16:c epilogue="D = accum + bias" bias=bf16[m])_",
       R"_(gemm 16x24x32x2 a=f32 epilogue="D = s * accum + bias + 0.5 * R" s=f32:scalar bias=f32[l,n] R=f32)_",
       R"_(gemm 16x24x32 a=f32 epilogue="D = accum + bias" bias=f32[n])_",
       R"_(gemm 16x24x32x2 a=bf16 epilogue="D = relu(accum + b1)" b1=bf16[n])_"}) {
    const auto kernels = kernels_for(line);
    ASSERT_FALSE(kernels.empty()) << line << ": " << refusal_of(line);
    const VerifyReport report = verify(parse_problem(line), kernels[0], {.device = fake_device()});
    EXPECT_TRUE(report.passed) << line << ": " << report.first_failure;
  }
  EXPECT_FALSE(fake_cublaslt().matmuls.empty());
}

TEST_F(Cublaslt, scales_of_float8_are_those_of_tensors_and_of_rows) {
  for (const ScaleBlock block : {scale_block::tensor, scale_block::row}) {
    const tests::ScaledOnes ones(fake_device(), block);
    const GemmArguments arguments = ones.arguments();
    const kernel::ArgumentsAsFamiliesSee seen(arguments);
    std::vector<RankedKernel> kernels;
    family().match({(*seen).problem(), device(), seen.get()}, kernels);
    ASSERT_EQ(kernels.size(), 3U) << to_string(block);
    EXPECT_TRUE(kernels[0].supports(arguments)) << kernels[0].supports(arguments).error();
    kernels[0].run(arguments, {.stream = ones.stream()});
    EXPECT_EQ(ones.count_wrong(), 0) << to_string(block);
  }
}

TEST_F(Cublaslt, the_workspace_is_the_callers_or_the_pools) {
  const Operands operands;
  const GemmArguments arguments = operands.arguments();
  const Kernel kernel = kernel_of(arguments, 1);
  ASSERT_EQ(kernel.get_workspace_size(arguments), 4096U);
  const Buffer memory(4096, operands.stream);
  kernel.run(arguments, {.stream = operands.stream, .workspace = {memory.data(), 4096}});
  EXPECT_EQ(fake_cublaslt().matmuls.back().workspace, memory.data());
  EXPECT_EQ(fake_cublaslt().matmuls.back().workspace_bytes, 4096U);
  EXPECT_EQ(fake_cublaslt().matmuls.back().stream, operands.stream.handle());
  kernel.run(arguments, {.stream = operands.stream});
  EXPECT_NE(fake_cublaslt().matmuls.back().workspace, nullptr);
  const Error error = error_of([&] {
    kernel.run(arguments, {.stream = operands.stream, .workspace = {memory.data(), 4095}});
  });
  EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
}

TEST_F(Cublaslt, a_prepared_launch_takes_new_memory_and_numbers) {
  const Operands operands;
  const GemmArguments arguments = operands.arguments(1, 0, true);
  const Kernel kernel = kernel_of(arguments, 1);
  const Artifact artifact = kernel.compile(arguments);
  PreparedLaunch launch = artifact.bind(arguments);
  launch.launch(operands.stream);
  EXPECT_EQ(operands.values(), std::set<float>{16});
  launch.set_scalars(2, 1);
  launch.launch(operands.stream);
  EXPECT_EQ(operands.values(), std::set<float>{35});
  const Buffer other = operands.filled(Operands::M * Operands::K, 3);
  launch.set_data("A", other.data());
  launch.launch(operands.stream);
  EXPECT_EQ(operands.values(), std::set<float>{99});
  launch.set_scalars(0, 1);
  const Error error = error_of([&] { launch.launch(operands.stream); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
}

TEST_F(Cublaslt, an_artifact_is_not_saved) {
  const Operands operands;
  const GemmArguments arguments = operands.arguments();
  const Kernel kernel = kernel_of(arguments);
  const Artifact artifact = kernel.compile(Target{90});
  EXPECT_EQ(artifact.targets(), std::vector{Target{90}});
  const Error error = error_of([&] {
    save_artifacts("/tmp/never_written.gemmery", std::array{StoredArtifact{artifact, {}}});
  });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_NE(std::string(error.what()).find(kernel.name()), std::string::npos) << error.what();
}

TEST_F(Cublaslt, a_run_works_while_a_stream_is_captured) {
  const Operands operands;
  const GemmArguments arguments = operands.arguments();
  const Kernel kernel = kernel_of(arguments);
  fake_cublaslt().on_call = [] {
    EXPECT_NE(tests::fake_current_context(), nullptr);
    // What the library asks of the driver then, such as loading a kernel, is allowed.
    EXPECT_NO_THROW(Buffer(64, driver::open_device(fake_device()).housekeeping_stream()));
  };
  driver::GraphCapture capture(operands.stream);
  kernel.run(arguments, {.stream = operands.stream});
  (void)kernels_for("gemm 72x64x64 a=bf16");
  (void)capture.end();
  EXPECT_EQ(tests::fake_counts().calls_refused_in_capture, 0);
}

TEST_F(Cublaslt, a_workspace_is_not_reserved_while_a_stream_is_captured) {
  const Operands operands;
  const GemmArguments arguments = operands.arguments();
  const Kernel kernel = kernel_of(arguments, 1);
  driver::GraphCapture capture(operands.stream);
  const Error error = error_of([&] { kernel.run(arguments, {.stream = operands.stream}); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_NE(std::string(error.what()).find("workspace"), std::string::npos);
  (void)capture.end();
}

TEST_F(Cublaslt, failures_of_a_launch_are_errors) {
  const Operands operands;
  const GemmArguments arguments = operands.arguments();
  const Kernel kernel = kernel_of(arguments);
  fake_cublaslt().failures["cublasLtMatmul"] = Result::execution_failed;
  const Error failed = error_of([&] { kernel.run(arguments, {.stream = operands.stream}); });
  EXPECT_EQ(failed.kind(), ErrorKind::launch);
  EXPECT_NE(std::string(failed.what()).find("CUBLAS_STATUS_EXECUTION_FAILED"), std::string::npos);
  fake_cublaslt().failures["cublasLtMatmul"] = Result::alloc_failed;
  EXPECT_EQ(error_of([&] { kernel.run(arguments, {.stream = operands.stream}); }).kind(),
            ErrorKind::out_of_memory);
  kernel.run(arguments, {.stream = operands.stream});
  EXPECT_EQ(operands.values(), std::set<float>{16});
}

TEST_F(Cublaslt, streams_of_other_devices_are_refused) {
  const Operands operands;
  const GemmArguments arguments = operands.arguments();
  const OwnedStream other(fake_device(1));
  const Kernel kernel = kernel_of(arguments);
  EXPECT_EQ(error_of([&] { kernel.run(arguments, {.stream = other.get()}); }).kind(),
            ErrorKind::invalid_argument);
}

TEST_F(Cublaslt, each_device_has_its_own_handle) {
  const Operands first(fake_device(0));
  const Operands second(fake_device(1));
  EXPECT_NE(family().open(fake_device(0)).handle(), family().open(fake_device(1)).handle());
  for (const Operands* const operands : {&first, &second}) {
    const GemmArguments arguments = operands->arguments();
    kernel_of(arguments).run(arguments, {.stream = operands->stream});
    EXPECT_EQ(operands->values(), std::set<float>{16});
  }
}

TEST_F(Cublaslt, the_callers_context_stays_current) {
  const Operands operands;
  const GemmArguments arguments = operands.arguments();
  const Kernel kernel = kernel_of(arguments);
  tests::set_fake_current_context(nullptr);
  kernel.run(arguments, {.stream = operands.stream});
  EXPECT_EQ(tests::fake_current_context(), nullptr);
}

TEST_F(Cublaslt, threads_share_answers_and_kernels) {
  constexpr int thread_count = 4, problem_count = 12, rounds = 6;
  std::vector<std::thread> threads;
  std::atomic<int> found{0};
  for (int thread = 0; thread < thread_count; ++thread)
    threads.emplace_back([&, thread] {
      const Operands operands;
      const GemmArguments arguments = operands.arguments();
      for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < problem_count; ++i) {
          const int m = 100 + (i + 3 * thread) % problem_count;
          found +=
              static_cast<int>(kernels_for("gemm " + std::to_string(m) + "x64x64 a=bf16").size());
        }
        kernel_of(arguments, 2).run(arguments, {.stream = operands.stream});
        EXPECT_EQ(operands.values(), std::set<float>{16});
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, 3 * thread_count * problem_count * rounds);
}

// --- ranking ------------------------------------------------------------------------------------

class OneKernelHistory final : public History {
 public:
  explicit OneKernelHistory(const Kernel& kernel) : kernel_(kernel) {}
  std::optional<double> measured_us(const Query&, const Kernel& kernel) const override {
    return kernel == kernel_ ? std::optional(0.5) : std::nullopt;
  }
  bool is_empty() const noexcept override { return false; }

 private:
  Kernel kernel_;
};

TEST_F(Cublaslt, kernels_come_last_until_they_are_measured) {
  (void)provider_names();  // registers the library's own families
  const GemmProblem problem = parse_problem("gemm 512x512x512 a=bf16 b=bf16:c").problem;
  std::vector<const Family*> families{&family()};
  for (const RankedKernel& kernel : get_kernels(problem, device_info("h200")))
    if (std::ranges::find(families, &kernel.family()) == families.end())
      families.push_back(&kernel.family());
  ASSERT_GT(families.size(), 1U);
  const auto predicted = kernel::rank_kernels({problem, device()}, families, nullptr);
  ASSERT_GT(predicted.size(), 3U);
  for (std::size_t i = 0; i < predicted.size(); ++i)
    EXPECT_EQ(&predicted[i].family() == &family(), i + 3 >= predicted.size()) << i;
  const OneKernelHistory history(predicted[predicted.size() - 2]);
  const auto measured = kernel::rank_kernels({problem, device()}, families, &history);
  EXPECT_EQ(&measured.front().family(), &family());
  EXPECT_TRUE(measured.front().is_measured);
}

}  // namespace
}  // namespace gemmery::cublaslt
