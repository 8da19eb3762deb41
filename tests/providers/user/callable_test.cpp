// SPDX-License-Identifier: Apache-2.0
// Callables of users: discovery, runs, prepared launches, verification; a faulty one does not
// affect the others.
#include <gemmery/artifact.hpp>
#include <gemmery/buffer.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/error.hpp>
#include <gemmery/verify.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/providers/user/registered.hpp"
#include "tests/providers/user/tiled_kernel.hpp"

namespace gemmery {
namespace {

using tests::expect_contains;
using tests::host_kernel;
using tests::Registered;

// 2 x 3 times 3 x 2 of ones, so that out is 3.
struct Ones {
  std::vector<float> a = std::vector<float>(6, 1), b = std::vector<float>(6, 1),
                     out = std::vector<float>(4, -1);
  GemmArguments arguments(double alpha = 1) {
    return GemmArguments({a.data(), DType::float32, {2, 3}}, {b.data(), DType::float32, {3, 2}},
                         {out.data(), DType::float32, {2, 2}}, {.alpha = alpha});
  }
};

std::string explanation_of(const Kernel& kernel, const GemmArguments& arguments) {
  std::string text;
  for (const Reason& reason : explain(arguments).reasons) {
    if (reason.family == kernel.family().name()) text += reason.failed + "\n";
  }
  return text;
}

TEST(CallablesOfUsers, are_found_run_and_verified) {
  const Registered own(host_kernel("loops"));
  Ones ones;
  const GemmArguments arguments = ones.arguments(2);
  const auto kernels = get_kernels(arguments);
  ASSERT_NE(tests::find_in(kernels, own.kernel), nullptr);
  own.kernel.run(arguments, {.stream = Stream::cpu()});
  EXPECT_EQ(ones.out, std::vector<float>(4, 6));
  for (const char* const line : {"gemm 7x9x11x2 a=f32 b=f32:c", "gemm 5x4x0 a=f32",
                                 "gemm 5x4x6 a=f32 alpha=0", "gemm 0x4x6 a=f32"}) {
    const VerifyReport report = verify(parse_problem(line), own.kernel, {});
    EXPECT_TRUE(report.passed) << line << ": " << report.first_failure;
  }
}

TEST(CallablesOfUsers, are_compiled_and_bound_like_others) {
  std::atomic<int> prepared{0};
  UserKernel declared = host_kernel("loops_bound");
  std::get<UserCallable>(declared.code).prepare = [&](Device) { ++prepared; };
  const Registered own(std::move(declared));
  Ones ones;
  const GemmArguments arguments = ones.arguments();
  const Artifact artifact = own.kernel.compile(arguments);
  EXPECT_EQ(prepared, 1);
  EXPECT_EQ(artifact.targets(), std::vector{Target::cpu()});
  PreparedLaunch launch = artifact.bind(arguments);
  launch.set_scalars(0.5, 0);
  launch.launch(Stream::cpu());
  EXPECT_EQ(ones.out, std::vector<float>(4, 1.5));
  own.kernel.run(arguments, {.artifact = &artifact, .stream = Stream::cpu()});
  EXPECT_EQ(ones.out, std::vector<float>(4, 3));
  EXPECT_EQ(prepared, 1);
  const std::vector<StoredArtifact> one{{artifact, {}}};
  EXPECT_THROW(save_artifacts(testing::TempDir() + "/none", one), Error);
}

TEST(CallablesOfUsers, get_the_workspace_that_they_asked_for) {
  std::vector<std::size_t> seen;
  UserKernel declared = host_kernel("loops_workspace", [&](const UserCall& call) {
    seen.push_back(call.workspace.bytes);
    static_cast<char*>(call.workspace.data)[call.workspace.bytes - 1] = 1;
    tests::multiply_on_host(call);
  });
  declared.workspace_bytes = "4*m*n";
  const Registered own(std::move(declared));
  Ones ones;
  const GemmArguments arguments = ones.arguments();
  EXPECT_EQ(own.kernel.get_workspace_size(arguments), 16u);
  own.kernel.run(arguments, {.stream = Stream::cpu()});
  own.kernel.compile(arguments).bind(arguments).launch(Stream::cpu());
  EXPECT_EQ(seen, (std::vector<std::size_t>{16, 16}));
}

TEST(CallablesOfUsers, that_throw_are_named_with_what_they_threw_inside) {
  const Registered own(
      host_kernel("throws", [](const UserCall&) { throw std::out_of_range("no such row"); }));
  Ones ones;
  try {
    own.kernel.run(ones.arguments(), {.stream = Stream::cpu()});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::launch);
    expect_contains(error.what(), "user_throws_v1_f32_f32_f32");
    expect_contains(error.what(), "no such row");
    EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
  }
}

TEST(CallablesOfUsers, whose_predictor_is_faulty_come_last_and_say_so) {
  UserKernel throwing = host_kernel("predictor_throws");
  throwing.predicted_us = [](const Query&) -> double { throw std::runtime_error("no idea"); };
  UserKernel senseless = host_kernel("predictor_nan");
  senseless.predicted_us = [](const Query&) { return std::numeric_limits<double>::quiet_NaN(); };
  const Registered first(std::move(throwing)), second(std::move(senseless));
  Ones ones;
  const GemmArguments arguments = ones.arguments();
  const auto kernels = get_kernels(arguments);
  ASSERT_GT(kernels.size(), 3u);  // the host's, and both callables
  EXPECT_TRUE(std::isfinite(kernels.front().predicted_us));
  for (const Kernel* const kernel : {&first.kernel, &second.kernel}) {
    const Kernel* const found = tests::find_in(kernels, *kernel);
    ASSERT_NE(found, nullptr);
    EXPECT_GE(static_cast<const RankedKernel*>(found) - kernels.data(),
              static_cast<std::ptrdiff_t>(kernels.size()) - 2);
  }
  expect_contains(explanation_of(first.kernel, arguments), "no idea");
  expect_contains(explanation_of(second.kernel, arguments), "nan");
}

TEST(CallablesOfUsers, whose_supports_throws_are_refused_with_the_reason) {
  UserKernel declared = host_kernel("supports_throws");
  declared.supports = [](const Query&) -> Status { throw 7; };
  const Registered own(std::move(declared));
  const Registered sound(host_kernel("supports_sound"));
  Ones ones;
  const GemmArguments arguments = ones.arguments();
  const auto kernels = get_kernels(arguments);
  EXPECT_EQ(tests::find_in(kernels, own.kernel), nullptr);
  EXPECT_NE(tests::find_in(kernels, sound.kernel), nullptr);
  expect_contains(own.kernel.supports(arguments).error(), "`supports` threw");
  expect_contains(explanation_of(own.kernel, arguments), "`supports` threw");
}

// A family that does not come from register_kernel.
class ThrowingFamily : public Family {
 public:
  std::string_view provider() const noexcept override { return "faulty"; }
  std::string_view name() const noexcept override { return "throws_everywhere"; }
  int version() const noexcept override { return 1; }
  void match(const Query&, std::vector<RankedKernel>&) const override { fail(); }
  void explain(const Query&, std::vector<Reason>&) const override { fail(); }
  void enumerate(const std::function<void(const Kernel&)>&) const override {}
  std::string kernel_name(const Kernel&) const override { return {}; }
  std::optional<Kernel> parse_name(std::string_view) const override { return std::nullopt; }
  std::vector<DesignField> design_fields(const Kernel&) const override { return {}; }
  std::vector<Target> targets(const Kernel&) const override { return {}; }
  const DeviceInfo* device_info(Device) const override { return nullptr; }
  Target target_for(const Kernel&, const DeviceInfo&) const override { return {}; }
  Status supports(const Kernel&, const Query&) const override { return Status::success(); }
  std::size_t workspace_bytes(const Kernel&, const GemmArguments&) const override { return 0; }
  Artifact compile(const Kernel&, Target) const override { fail(); }
  void run(const Kernel&, const GemmArguments&, const RunOptions&) const override { fail(); }

 private:
  [[noreturn]] static void fail() { throw std::runtime_error("out of order"); }
};

// An exception that ends the call and is not an error.
struct Enough : Interruption {};

TEST(FunctionsOfUsers, that_end_the_call_are_let_through_by_every_call) {
  const auto end_the_call = [](const auto&...) -> void { throw Enough(); };
  UserKernel running = host_kernel("ends_in_run");
  std::get<UserCallable>(running.code).run = end_the_call;
  UserKernel preparing = host_kernel("ends_in_prepare");
  std::get<UserCallable>(preparing.code).prepare = end_the_call;
  UserKernel asked = host_kernel("ends_when_asked");
  asked.supports = [](const Query&) -> Status { throw Enough(); };
  UserKernel predicting = host_kernel("ends_in_prediction");
  predicting.predicted_us = [](const Query&) -> double { throw Enough(); };
  Ones ones;
  const GemmArguments arguments = ones.arguments();
  {
    const Registered own(std::move(running));
    EXPECT_THROW(own.kernel.run(arguments, {.stream = Stream::cpu()}), Enough);
  }
  {
    const Registered own(std::move(preparing));
    EXPECT_THROW(own.kernel.compile(arguments), Enough);
    const CompileJob job{own.kernel, Target::cpu()};
    EXPECT_NO_THROW(compile_all(std::span(&job, 1)));  // nothing is prepared for the CPU
  }
  {
    const Registered own(std::move(asked));
    EXPECT_THROW(own.kernel.supports(arguments), Enough);
    EXPECT_THROW(get_kernels(arguments), Enough);
    EXPECT_THROW(explain(arguments), Enough);
  }
  const Registered own(std::move(predicting));
  EXPECT_THROW(get_kernels(arguments), Enough);
}

TEST(FamiliesOfUsers, that_throw_leave_discovery_to_the_others) {
  register_family(std::make_unique<ThrowingFamily>());
  Ones ones;
  const GemmArguments arguments = ones.arguments();
  EXPECT_FALSE(get_kernels(arguments).empty());
  expect_contains(to_string(explain(arguments)), "this family threw: out of order");
}

TEST(KernelsOfUsers, are_withdrawn_and_stay_usable_in_hand) {
  Ones ones;
  const GemmArguments arguments = ones.arguments();
  const Kernel kernel = register_kernel(host_kernel("leaving"));
  withdraw_kernel(kernel);
  EXPECT_EQ(tests::find_in(get_kernels(arguments), kernel), nullptr);
  EXPECT_FALSE(find_kernel(kernel.name()));
  EXPECT_THROW(withdraw_kernel(kernel), Error);
  kernel.run(arguments, {.stream = Stream::cpu()});
  EXPECT_EQ(ones.out, std::vector<float>(4, 3));
  const Registered next(host_kernel("leaving"));
  EXPECT_NE(tests::find_in(get_kernels(arguments), next.kernel), nullptr);
}

TEST(KernelsOfUsers, may_come_and_go_while_others_discover) {
  Ones ones;
  const GemmArguments arguments = ones.arguments();
  std::atomic<bool> is_over{false};
  std::thread discovering([&] {
    while (!is_over) {
      const auto kernels = get_kernels(arguments);
      if (kernels.empty()) ADD_FAILURE();
      for (const RankedKernel& kernel : kernels) (void)kernel.name();
    }
  });
  for (int round = 0; round < 100; ++round)
    withdraw_kernel(register_kernel(host_kernel("visitor")));
  is_over = true;
  discovering.join();
}

}  // namespace
}  // namespace gemmery
