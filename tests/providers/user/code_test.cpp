// SPDX-License-Identifier: Apache-2.0
// Kernels of users as source and as images, compiled by NVRTC and run on a device: discovery,
// ranking, verification, files, reasons of refusals.
#include <gemmery/artifact.hpp>
#include <gemmery/buffer.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/error.hpp>
#include <gemmery/verify.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <random>

#include "jit/compiler.hpp"
#include "tests/providers/user/registered.hpp"
#include "tests/providers/user/tiled_kernel.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery {
namespace {

using tests::device_under_test;
using tests::expect_contains;
using tests::packed_kernel;
using tests::Registered;
using tests::tiled_kernel;

// For images and tensor maps, which require sm_90.
class OnSm90 : public testing::Test {
 protected:
  void SetUp() override {
    if (device().type == DeviceType::cuda && devices().empty()) GTEST_SKIP() << "no GPU here";
    const Target target = device_info(device()).target;
    if (target.architecture != 90) GTEST_SKIP() << "made for sm_90, this is " << to_string(target);
  }

  static Device device() { return tests::device_under_test(); }
};
class SourceOfUsers : public OnSm90 {};
class ImagesOfUsers : public OnSm90 {};

DeviceInfo h200() { return *find_device_info("h200"); }

std::string error_of(const std::function<void()>& action) { return tests::error_of(action).what(); }

std::string refusal(const Kernel& kernel, const std::string& line) {
  return kernel.supports(parse_problem(line).problem, h200()).error();
}

void expect_verified(const Kernel& kernel, const std::string& line) {
  const VerifyReport report =
      verify(parse_problem(line), kernel, {.seed = 0, .device = device_under_test()});
  EXPECT_TRUE(report.passed) << line << ", seed " << report.seed << ": " << report.first_failure;
  EXPECT_GT(report.elements, 0);
}

jit::CompiledCode compile_tiled(Target target, CodeForm form) {
  return jit::compile({.source = tests::tiled_source,
                       .entry = "tiled",
                       .target = target,
                       .form = form,
                       .extra_options = {}});
}

// --- source -------------------------------------------------------------------------------------

TEST_F(SourceOfUsers, is_found_named_and_read_back) {
  const Registered own(tiled_kernel("tiled_found"));
  EXPECT_EQ(own.kernel.name(), "user_tiled_found_v1_f32_f32_f32_c-f32");
  EXPECT_EQ(find_kernel(own.kernel.name()), own.kernel);
  const auto problem = parse_problem("gemm 64x64x64 a=f32 c=f32 beta=1").problem;
  EXPECT_NE(tests::find_in(get_kernels(problem, h200()), own.kernel), nullptr);
  EXPECT_NE(tests::find_in(get_kernels(Filter{.providers = {"user"}}), own.kernel), nullptr);
  const Metadata metadata = own.kernel.metadata();
  EXPECT_EQ(metadata.provider, "user");
  EXPECT_EQ(metadata.kernel_class, "tiled_found");
  EXPECT_EQ(metadata.design_value("tile"), "16x16x16");
}

TEST_F(SourceOfUsers, passes_verification_for_random_problems) {
  const Registered own(tiled_kernel("tiled_verified"));
  std::mt19937_64 random(tests::random_seed());
  const auto extent = [&](int most) {
    return std::to_string(std::uniform_int_distribution<int>(1, most)(random));
  };
  for (int round = 0; round < 4; ++round) {
    expect_verified(own.kernel, "gemm " + extent(70) + "x" + extent(70) + "x" + extent(90) + "x" +
                                    extent(3) + " a=f32 c=f32 beta=0.5 alpha=1.25");
  }
  expect_verified(own.kernel, "gemm 33x17x40 a=f32/ld=50 b=f32/ld=64 c=f32 beta=2");
}

TEST_F(SourceOfUsers, reads_nothing_of_a_and_b_where_alpha_is_0) {
  const Registered own(tiled_kernel("tiled_alpha"));
  expect_verified(own.kernel, "gemm 33x17x40 a=f32 c=f32 beta=2 alpha=0");
}

TEST_F(SourceOfUsers, is_ranked_by_its_prediction_or_behind_all_that_have_one) {
  UserKernel fast = packed_kernel("packed_fast");
  fast.predicted_us = [](const Query&) { return 1e-3; };
  const Registered first(std::move(fast));
  const Registered last(packed_kernel("packed_silent"));
  const auto kernels = get_kernels(parse_problem("gemm 512x512x512 a=f32").problem, h200());
  ASSERT_GT(kernels.size(), 2u);
  EXPECT_EQ(static_cast<const Kernel&>(kernels.front()), first.kernel);
  EXPECT_EQ(static_cast<const Kernel&>(kernels.back()), last.kernel);
  EXPECT_TRUE(std::isinf(kernels.back().predicted_us));
}

TEST_F(SourceOfUsers, refuses_what_its_launch_does_not_tell_the_entry) {
  const Registered own(packed_kernel("packed_refusals"));
  EXPECT_EQ(refusal(own.kernel, "gemm 64x32x16 a=f32"), "");
  expect_contains(refusal(own.kernel, "gemm 64x32x16 a=f32/ld=20"),
                  "A: expected a row stride of 16");
  expect_contains(refusal(own.kernel, "gemm 64x32x16x2 a=f32"), "L: expected 1");
  expect_contains(refusal(own.kernel, "gemm 64x32x16 a=f32:c"), "A: expected layout row");
  expect_contains(refusal(own.kernel, "gemm 64x32x16 a=f16"), "A: expected element type");
  expect_contains(refusal(own.kernel, "gemm 64x32x16 a=f32 epilogue=\"D = relu(accum)\""),
                  "epilogue: expected");
}

TEST_F(SourceOfUsers, refuses_numbers_that_it_does_not_take) {
  const Registered own(packed_kernel("packed_numbers"));
  std::vector<float> memory(64);
  const OwnedStream stream(device());
  const Buffer a(256, stream), b(256, stream), out(256, stream);
  const auto arguments = [&](double alpha) {
    return GemmArguments({a.data(), DType::float32, {8, 8}, device()},
                         {b.data(), DType::float32, {8, 8}, device()},
                         {out.data(), DType::float32, {8, 8}, device()}, {.alpha = alpha});
  };
  EXPECT_TRUE(own.kernel.supports(arguments(1)));
  expect_contains(own.kernel.supports(arguments(2)).error(), "alpha: expected 1");
  EXPECT_EQ(tests::find_in(get_kernels(arguments(2)), own.kernel), nullptr);
  EXPECT_NE(tests::find_in(get_kernels(arguments(1)), own.kernel), nullptr);
  // Changed scalars in a prepared launch.
  PreparedLaunch prepared = own.kernel.compile(arguments(1)).bind(arguments(1));
  expect_contains(error_of([&] { prepared.set_scalars(2, 0); }), "alpha: expected 1");
  prepared.launch(stream);
  synchronize(stream);
}

TEST_F(SourceOfUsers, runs_by_artifacts_and_prepared_launches) {
  const Registered own(packed_kernel("packed_bound"));
  const OwnedStream stream(device());
  const std::vector<float> ones(64, 1), twos(64, 2);
  const Buffer a(256, stream), b(256, stream), other(256, stream), out(256, stream);
  copy(a.data(), device(), ones.data(), Device::cpu(), 256, stream);
  copy(b.data(), device(), twos.data(), Device::cpu(), 256, stream);
  copy(other.data(), device(), ones.data(), Device::cpu(), 256, stream);
  const GemmArguments arguments({a.data(), DType::float32, {8, 8}, device()},
                                {b.data(), DType::float32, {8, 8}, device()},
                                {out.data(), DType::float32, {8, 8}, device()});
  const auto result = [&] {
    std::vector<float> values(64);
    copy(values.data(), Device::cpu(), out.data(), device(), 256, stream);
    synchronize(stream);
    return values;
  };
  const Artifact artifact = own.kernel.compile(arguments);
  own.kernel.run(arguments, {.artifact = &artifact, .stream = stream});
  EXPECT_EQ(result(), std::vector<float>(64, 16));
  PreparedLaunch prepared = artifact.bind(arguments);
  prepared.set_data("B", other.data());
  prepared.launch(stream);
  EXPECT_EQ(result(), std::vector<float>(64, 8));
}

TEST_F(SourceOfUsers, has_its_workspace_cleared) {
  UserKernel counting = packed_kernel("counting");
  counting.code = UserSource{R"cuda(
extern "C" __global__ void count(const float* a, const float* b, float* out, unsigned* arrived,
                                 int m, int n, int k) {
  if (threadIdx.x == 0) out[blockIdx.x] = static_cast<float>(arrived[blockIdx.x]) + m * 0.0f;
  arrived[blockIdx.x] = 7;
}
)cuda"};
  counting.launch.entry = "count";
  counting.launch.parameters = {"A", "B", "out", "workspace", "m", "n", "k"};
  counting.launch.grid = {"m*n", "1", "1"};
  counting.launch.block = {1, 1, 1};
  counting.launch.clears_workspace = true;
  counting.workspace_bytes = "4*m*n";
  const Registered own(std::move(counting));
  const OwnedStream stream(device());
  const Buffer a(256, stream), b(256, stream), out(256, stream);
  const GemmArguments arguments({a.data(), DType::float32, {8, 8}, device()},
                                {b.data(), DType::float32, {8, 8}, device()},
                                {out.data(), DType::float32, {8, 8}, device()});
  EXPECT_EQ(own.kernel.get_workspace_size(arguments), 256u);
  const Buffer lent(256, stream);
  std::vector<float> values(64, 1);
  for (int round = 0; round < 2; ++round) {
    own.kernel.run(arguments, {.stream = stream, .workspace = {lent.data(), 256}});
    copy(values.data(), Device::cpu(), out.data(), device(), 256, stream);
    synchronize(stream);
    EXPECT_EQ(values, std::vector<float>(64, 0));
  }
  PreparedLaunch prepared = own.kernel.compile(arguments).bind(arguments);
  prepared.launch(stream);
  prepared.launch(stream);
  copy(values.data(), Device::cpu(), out.data(), device(), 256, stream);
  synchronize(stream);
  EXPECT_EQ(values, std::vector<float>(64, 0));
  expect_contains(error_of([&] {
                    own.kernel.run(arguments, {.stream = stream, .workspace = {lent.data(), 8}});
                  }),
                  "at least 256 bytes");
}

TEST_F(SourceOfUsers, fuses_the_program_that_it_was_written_for) {
  const auto problem =
      parse_problem(
          "gemm 40x48x24 a=f32 epilogue=\"D = relu(accum + bias) * s\" bias=f32[n] "
          "s=f32:scalar")
          .problem;
  UserKernel biased = packed_kernel("biased");
  biased.epilogue = rules_of(problem.epilogue);
  biased.code = UserSource{R"cuda(
extern "C" __global__ void biased(const float* a, const float* b, const float* bias, float* out,
                                  int m, int n, int k, float s) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int step = 0; step < k; ++step) sum = fmaf(a[row * k + step], b[step * n + column], sum);
  out[row * n + column] = fmaxf(sum + bias[column], 0.0f) * s;
}
)cuda"};
  biased.launch.entry = "biased";
  biased.launch.parameters = {"A", "B", "bias", "out", "m", "n", "k", "s"};
  const Registered own(std::move(biased));
  expect_contains(own.kernel.name(), "user_biased_v1_f32_f32_f32_e-");
  EXPECT_NE(tests::find_in(get_kernels(problem, h200()), own.kernel), nullptr);
  expect_verified(own.kernel,
                  "gemm 40x48x24 a=f32 epilogue=\"D = relu(accum + bias) * s\" bias=f32[n] s=0.5");
  expect_contains(refusal(own.kernel, "gemm 40x48x24 a=f32"), "epilogue: expected");
}

// A by its tensor map, B by its address.
constexpr const char* mapped_source = R"cuda(
struct alignas(64) TensorMap { unsigned long long words[16]; };
constexpr int tile = 16, depth = 32;

__device__ unsigned in_shared(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

extern "C" __global__ void __launch_bounds__(tile * tile)
mapped(const __grid_constant__ TensorMap a_map, const float* b, float* out, int m, int n, int k,
       long long ldb, long long ldout) {
  __shared__ alignas(128) float a_tile[tile][depth];
  __shared__ alignas(8) unsigned long long arrived;
  const int row = blockIdx.y * tile + threadIdx.y;
  const int column = blockIdx.x * tile + threadIdx.x;
  const bool is_first = threadIdx.x == 0 && threadIdx.y == 0;
  if (is_first)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(in_shared(&arrived)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  float sum = 0;
  for (int begin = 0, phase = 0; begin < k; begin += depth, phase ^= 1) {
    if (is_first) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                       in_shared(&arrived)), "r"(static_cast<unsigned>(sizeof a_tile)) : "memory");
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[%0], [%1, {%2, %3}], [%4];" ::"r"(in_shared(a_tile)), "l"(&a_map), "r"(begin),
          "r"(static_cast<int>(blockIdx.y) * tile), "r"(in_shared(&arrived)) : "memory");
    }
    asm volatile(
        "{\n.reg .pred done;\nwait:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra wait;\n}" ::"r"(
            in_shared(&arrived)), "r"(phase) : "memory");
    for (int step = 0; step < depth && begin + step < k && column < n; ++step)
      sum = fmaf(a_tile[threadIdx.y][step], b[(begin + step) * ldb + column], sum);
    __syncthreads();
  }
  if (row < m && column < n) out[row * ldout + column] = sum;
}
)cuda";

TEST_F(SourceOfUsers, takes_tensor_maps) {
  UserKernel mapped = packed_kernel("mapped");
  mapped.operands.a.alignment = 16;
  mapped.targets = {parse_target("sm_90")};
  mapped.code = UserSource{mapped_source};
  mapped.launch.entry = "mapped";
  mapped.launch.parameters = {"A.map=16x32", "B", "out", "m", "n", "k", "B.leading", "out.leading"};
  const Registered own(std::move(mapped));
  (void)own.kernel.compile(parse_target("sm_90"));
  expect_verified(own.kernel, "gemm 50x40x100 a=f32 b=f32/ld=44");
  expect_verified(own.kernel, "gemm 50x40x100 a=f32/ld=120 b=f32/ld=40");
  expect_contains(refusal(own.kernel, "gemm 50x40x99 a=f32"), "A: expected alignment");
  expect_contains(refusal(own.kernel, "gemm 50x40x100x2 a=f32"), "L: expected 1");
}

TEST_F(SourceOfUsers, that_does_not_compile_is_named_and_disturbs_nobody) {
  UserKernel broken = packed_kernel("packed_broken");
  broken.code = UserSource{"extern \"C\" __global__ void packed(int x) {\n  x = undeclared;\n}"};
  const Registered own(std::move(broken));
  const Registered sound(packed_kernel("packed_sound"));
  const std::string words = error_of([&] { (void)own.kernel.compile(parse_target("sm_90")); });
  expect_contains(words, "user_packed_broken_v1_f32_f32_f32");
  expect_contains(words, "packed_broken.cu(2)");
  expect_contains(words, "undeclared");
  const std::vector<Kernel> both{own.kernel, sound.kernel};
  const auto results = compile_all(both, parse_target("sm_90"));
  EXPECT_TRUE(results[0].error.has_value());
  EXPECT_TRUE(results[1].artifact.has_value());
}

TEST_F(SourceOfUsers, that_takes_other_parameters_is_refused_before_a_launch) {
  UserKernel wrong = packed_kernel("packed_wrong");
  wrong.launch.parameters = {"A", "B", "out", "m", "n", "k:i64"};
  const Registered own(std::move(wrong));
  for (const char* const target : {"sm_80", "sm_90", "sm_100", "sm_120"}) {
    const std::string words = error_of([&] { (void)own.kernel.compile(parse_target(target)); });
    expect_contains(words, "6 of 8, 8, 8, 4, 4 and 4 bytes");
    expect_contains(words, "packed_wrong");
  }
  const VerifyOptions options{.device = device_under_test()};
  expect_contains(
      error_of([&] { (void)verify(parse_problem("gemm 8x8x8 a=f32"), own.kernel, options); }),
      "6 of 8, 8, 8, 4, 4 and 8 bytes");
}

TEST_F(SourceOfUsers, is_kept_in_files_for_what_it_was) {
  const std::string path = testing::TempDir() + "/user_source.gemmery";
  {
    const Registered own(packed_kernel("packed_kept"));
    const Artifact artifact = own.kernel.compile(parse_target("sm_90"));
    const std::vector<StoredArtifact> one{{artifact, {}}};
    save_artifacts(path, one, {.with_ptx = true});
    const auto loaded = load_artifacts(path);
    ASSERT_EQ(loaded.size(), 1u);
    EXPECT_EQ(loaded[0].artifact.kernel(), own.kernel);
    const OwnedStream stream(device());
    const std::vector<float> ones(64, 1);
    const Buffer a(256, stream), out(256, stream);
    copy(a.data(), device(), ones.data(), Device::cpu(), 256, stream);
    const GemmArguments arguments({a.data(), DType::float32, {8, 8}, device()},
                                  {a.data(), DType::float32, {8, 8}, device()},
                                  {out.data(), DType::float32, {8, 8}, device()});
    own.kernel.run(arguments, {.artifact = &loaded[0].artifact, .stream = stream});
    std::vector<float> values(64);
    copy(values.data(), Device::cpu(), out.data(), device(), 256, stream);
    synchronize(stream);
    EXPECT_EQ(values, std::vector<float>(64, 8));
  }
  expect_contains(error_of([&] { (void)load_artifacts(path); }), "user/packed_kept");
  UserKernel changed = packed_kernel("packed_kept");
  changed.launch.shared_bytes = 64;
  const Registered other(std::move(changed));
  expect_contains(error_of([&] { (void)load_artifacts(path); }), "design");
  std::filesystem::remove(path);
}

// --- images -------------------------------------------------------------------------------------

TEST_F(ImagesOfUsers, run_by_cubin_or_ptx) {
  UserKernel image = tiled_kernel("tiled_image");
  image.code = UserImages{{.target = parse_target("sm_90"),
                           .cubin = compile_tiled(parse_target("sm_90"), CodeForm::cubin).cubin,
                           .ptx = compile_tiled(parse_target("sm_90"), CodeForm::ptx).ptx}};
  const Registered own(std::move(image));
  EXPECT_EQ(own.kernel.metadata().supported_targets, std::vector{parse_target("sm_90")});
  expect_verified(own.kernel, "gemm 50x40x30x2 a=f32 c=f32 beta=1");
}

TEST_F(ImagesOfUsers, without_ptx_run_on_gpus_and_are_refused_on_emulated_devices) {
  UserKernel image = tiled_kernel("tiled_cubin");
  image.code = UserImages{{.target = parse_target("sm_90"),
                           .cubin = compile_tiled(parse_target("sm_90"), CodeForm::cubin).cubin}};
  const Registered own(std::move(image));
  if (device().type == DeviceType::cuda) {
    expect_verified(own.kernel, "gemm 50x40x30x2 a=f32 c=f32 beta=1");
    return;
  }
  const std::string words = error_of([&] {
    (void)verify(parse_problem("gemm 8x8x8 a=f32 c=f32 beta=1"), own.kernel,
                 {.device = device_under_test()});
  });
  expect_contains(words, "tiled_cubin");
  expect_contains(words, "PTX");
  const auto problem = parse_problem("gemm 8x8x8 a=f32 c=f32 beta=1").problem;
  expect_contains(own.kernel.supports(problem, *find_device_info("a100")).error(), "target");
}

TEST_F(ImagesOfUsers, are_held_against_the_launch_when_they_are_registered) {
  const auto words = [&](const std::function<void(UserKernel&)>& change) {
    UserKernel image = tiled_kernel("tiled_wrong");
    image.code = UserImages{{.target = parse_target("sm_90"),
                             .cubin = compile_tiled(parse_target("sm_90"), CodeForm::cubin).cubin}};
    change(image);
    return error_of([&] { (void)register_kernel(std::move(image)); });
  };
  expect_contains(words([](UserKernel& image) { image.launch.parameters.back() = "beta"; }),
                  "4 and 8 bytes");
  expect_contains(words([](UserKernel& image) { image.launch.entry = "tilted"; }),
                  "code with the kernel tilted");
  expect_contains(words([](UserKernel& image) {
                    std::get<UserImages>(image.code)[0].cubin.assign(100, std::byte{1});
                  }),
                  "a cubin");
}

}  // namespace
}  // namespace gemmery
