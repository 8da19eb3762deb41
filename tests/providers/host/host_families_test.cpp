// SPDX-License-Identifier: Apache-2.0
// The CPU's families in discovery: names, reasons of refusals, artifacts, prepared launches.
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <gemmery/error.hpp>

#include "platform/host_info.hpp"
#include "providers/host/host_family.hpp"
#include "providers/host/host_provider.hpp"
#include "providers/host/onednn.hpp"

namespace gemmery::host {
namespace {

const std::vector<std::unique_ptr<Family>>& families() {
  static const auto* const all = new std::vector<std::unique_ptr<Family>>(make_families());
  return *all;
}

const Family& family(std::string_view name) {
  for (const auto& one : families())
    if (one->name() == name) return *one;
  throw std::out_of_range(std::string(name));
}

GemmProblem problem(const char* text) { return parse_problem(text).problem; }

std::vector<RankedKernel> match(const Family& one, const GemmProblem& asked) {
  std::vector<RankedKernel> kernels;
  one.match({asked, platform::host_device_info()}, kernels);
  return kernels;
}

std::string reason(const Family& one, const GemmProblem& asked) {
  std::vector<Reason> reasons;
  one.explain({asked, platform::host_device_info()}, reasons);
  EXPECT_EQ(reasons.size(), 1u);
  EXPECT_EQ(reasons[0].failed.empty(), !match(one, asked).empty());
  EXPECT_EQ(reasons[0].fitting, reasons[0].failed.empty() ? 1 : 0);
  return reasons[0].failed;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

bool has_onednn() { return onednn::availability().is_success(); }

TEST(HostFamilies, names_are_unique_and_are_read_back) {
  std::set<std::string> names;
  for (const auto& one : families())
    one->enumerate([&](const Kernel& kernel) {
      const std::string name = kernel.name();
      ASSERT_TRUE(names.insert(name).second) << name;
      const auto parsed = one->parse_name(name);
      ASSERT_TRUE(parsed.has_value()) << name;
      ASSERT_TRUE(*parsed == kernel) << name;
    });
  EXPECT_GT(names.size(), 1000u);
}

TEST(HostFamilies, a_name_tells_the_types) {
  const auto kernels = match(family("host_plain"), problem("gemm 8x8x8 a=f16 b=bf16 out=f32"));
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].name(), "host_plain_v1_f16_bf16_out_f32_acc_f32_c_none_math_native");
  EXPECT_EQ(kernels[0].metadata().provider, "host");
  EXPECT_EQ(kernels[0].metadata().kernel_class, "host_plain");
}

TEST(HostFamilies, wrong_names_are_nobodys) {
  const Family& plain = family("host_plain");
  for (const char* text : {"", "host_plain", "host_plain_v1_",
                           "host_plain_v2_f32_f32_out_f32_acc_f32_c_none_math_native",
                           "host_plain_v1_f32_f32_out_f32_acc_f32_c_none_math_tf32",
                           "host_plain_v1_f32_s8_out_f32_acc_f32_c_none_math_native",
                           "host_plain_v1_f32_f32_out_f32_acc_f32_c_none_math_native_",
                           "host_plain_v1_f32_f32_out_f32_acc_f32_c__math_native",
                           "host_plain_v1_float32_f32_out_f32_acc_f32_c_none_math_native",
                           "host_plain_v1_f32_f32_out_u32_acc_f32_c_none_math_native",
                           "host_reference_v1_f32_f32_out_f32_acc_f32_c_none_math_native"})
    EXPECT_FALSE(plain.parse_name(text).has_value()) << text;
}

TEST(HostFamilies, every_enumerated_kernel_serves_a_problem_of_its_types) {
  for (const auto& one : families())
    one->enumerate([&](const Kernel& kernel) {
      const OperandRules& rules = kernel.operands();
      std::string text = "gemm 4x8x8 a=" + std::string(alias(rules.a.dtype)) +
                         " b=" + std::string(alias(rules.b.dtype)) +
                         " out=" + std::string(alias(rules.out.dtype)) +
                         " acc=" + std::string(alias(rules.accumulator)) +
                         " math=" + std::string(name(rules.math));
      if (rules.has_c) text += " c=" + std::string(alias(rules.c.dtype)) + " beta=1";
      const GemmProblem asked = problem(text.c_str());
      const auto kernels = match(*one, asked);
      ASSERT_EQ(kernels.size(), 1u) << text;
      ASSERT_TRUE(static_cast<const Kernel&>(kernels[0]) == kernel) << text;
      ASSERT_TRUE(kernel.supports(asked, platform::host_device_info())) << text;
    });
}

TEST(HostFamilies, the_reference_serves_everything_and_is_expected_to_be_slowest) {
  for (const char* text :
       {"gemm 1x1x1 a=f32", "gemm 0x5x0 a=f32", "gemm 1x4096x4096 a=f32", "gemm 64x64x64x100 a=f32",
        "gemm 512x512x512 a=f64", "gemm 99x98x97 a=s8 out=s8", "gemm 7x8x9 a=f16 acc=f16",
        "gemm 7x8x9 a=f32 math=tf32", "gemm 300x20x1000 a=bf16 out=e4m3"}) {
    const GemmProblem asked = problem(text);
    const auto reference = match(family("host_reference"), asked);
    ASSERT_EQ(reference.size(), 1u) << text;
    for (const char* name : {"host_plain", "host_onednn"})
      for (const RankedKernel& other : match(family(name), asked))
        EXPECT_LT(other.predicted_us, reference[0].predicted_us) << text << " " << name;
  }
}

TEST(HostFamilies, refusals_tell_their_reason) {
  const Family& plain = family("host_plain");
  EXPECT_EQ(reason(plain, problem("gemm 8x8x8 a=f32")), "");
  EXPECT_EQ(reason(plain, problem("gemm 8x8x8 a=f32 math=tf32")),
            "math: expected native, got tf32");
  EXPECT_EQ(reason(plain, problem("gemm 8x8x8 a=f16 acc=f16")),
            "accumulator: expected float32, float64 or int32, got float16");
  EXPECT_EQ(reason(plain, problem("gemm 8x8x8 a=s8 out=s32 math=saturate")),
            "math: expected native, got saturate");
}

TEST(HostFamilies, refusals_of_onednn_tell_their_reason) {
  const Family& one = family("host_onednn");
  if (!has_onednn()) {
    EXPECT_TRUE(contains(reason(one, problem("gemm 8x8x8 a=f32")), "unavailable"));
    GTEST_SKIP() << one.availability().error();
  }
  EXPECT_EQ(reason(one, problem("gemm 8x8x8 a=f32")), "");
  EXPECT_EQ(reason(one, problem("gemm 8x8x8 a=f32 math=bf16x3")),
            "math: expected native, got bf16x3");
  EXPECT_EQ(reason(one, problem("gemm 8x8x8 a=f64")),
            "accumulator: expected float32 or int32, got float64");
  EXPECT_TRUE(contains(reason(one, problem("gemm 8x8x8 a=s8 b=u8 out=s32")), "B: expected int8"));
  EXPECT_TRUE(contains(reason(one, problem("gemm 8x8x8 a=f32/strides=0,1")),
                       "A: expected a row or column major matrix"));
  EXPECT_TRUE(
      contains(reason(one, problem("gemm 8x8x8x3 a=f32/batch=0 b=f32/batch=0")), "got both"));
}

TEST(HostFamilies, gpus_are_not_theirs) {
  const DeviceInfo h200 = find_device_info("h200").value();
  const GemmProblem asked = problem("gemm 8x8x8 a=f32");
  for (const auto& one : families()) {
    std::vector<RankedKernel> kernels;
    one->match({asked, h200}, kernels);
    EXPECT_TRUE(kernels.empty());
    std::vector<Reason> reasons;
    one->explain({asked, h200}, reasons);
    ASSERT_EQ(reasons.size(), 1u);
    EXPECT_TRUE(contains(reasons[0].failed, "device: expected operands in host memory"))
        << reasons[0].failed;
    EXPECT_EQ(one->device_info(Device::cuda(0)), nullptr);
  }
}

// 2x2 identity times b.
struct Small {
  std::vector<float> a{1, 0, 0, 1};
  std::vector<float> b{1, 2, 3, 4};
  std::vector<float> out{0, 0, 0, 0};
  GemmArguments arguments() {
    return {Tensor(a.data(), DType::float32, {2, 2}), Tensor(b.data(), DType::float32, {2, 2}),
            Tensor(out.data(), DType::float32, {2, 2})};
  }
};

TEST(HostFamilies, kernels_run_compile_and_bind) {
  for (const auto& one : families()) {
    if (!one->availability()) continue;
    Small small;
    const GemmArguments arguments = small.arguments();
    const Kernel kernel = match(*one, arguments.problem()).at(0);
    kernel.run(arguments, {.stream = Stream::cpu()});
    EXPECT_EQ(small.out, small.b) << one->name();
    EXPECT_EQ(kernel.get_workspace_size(arguments), 0u);

    const Artifact artifact = kernel.compile(arguments);
    EXPECT_EQ(artifact.targets(), std::vector{Target::cpu()});
    small.out.assign(4, 0);
    kernel.run(arguments, {.artifact = &artifact, .stream = Stream::cpu()});
    EXPECT_EQ(small.out, small.b) << one->name();

    PreparedLaunch launch = artifact.bind(arguments);
    std::vector<float> other(4);
    launch.set_data("out", other.data());
    launch.set_scalars(2, 0);
    launch.launch(Stream::cpu());
    EXPECT_EQ(other, (std::vector<float>{2, 4, 6, 8})) << one->name();
  }
}

TEST(HostFamilies, a_stream_of_a_gpu_is_refused) {
  Small small;
  const GemmArguments arguments = small.arguments();
  const Kernel kernel = match(family("host_plain"), arguments.problem()).at(0);
  try {
    kernel.run(arguments, {.stream = Stream::of(nullptr, Device::cuda(0))});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_EQ(error.operand(), "stream");
  }
  EXPECT_THROW(kernel.compile(arguments).load(Device::cuda(0)), Error);
}

TEST(HostFamilies, fewer_threads_give_the_same_bits) {
  const std::int64_t side = 300;
  std::vector<float> a(static_cast<std::size_t>(side * side)), one(a.size()), all(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::sin(static_cast<float>(i));
  const auto run = [&](std::vector<float>& out, int threads) {
    const GemmArguments arguments(Tensor(a.data(), DType::float32, {side, side}),
                                  Tensor(a.data(), DType::float32, {side, side}, {1, side}),
                                  Tensor(out.data(), DType::float32, {side, side}));
    match(family("host_plain"), arguments.problem())
        .at(0)
        .run(arguments, {.stream = Stream::cpu(), .max_multiprocessors = threads});
  };
  run(one, 1);
  run(all, 0);
  EXPECT_EQ(one, all);
}

}  // namespace
}  // namespace gemmery::host
