// SPDX-License-Identifier: Apache-2.0
// The tests on the fake driver, and tests that are possible only there: the calls of the driver.
#include <gtest/gtest.h>
#include <gemmery/error.hpp>

#include "tests/driver/fake_driver.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/runtime/on_device.hpp"
#include "tests/support/error_of.hpp"

namespace gemmery::tests {

bool is_fake_driver_wanted() { return true; }

namespace {

INSTANTIATE_TEST_SUITE_P(First, OnDevice, testing::Values(fake_device(0)));
INSTANTIATE_TEST_SUITE_P(Second, OnDevice, testing::Values(fake_device(1)));

class FakeRuntime : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Fake, FakeRuntime, testing::Values(fake_device(0)));

TEST_P(FakeRuntime, a_usual_launch_makes_one_call_and_allocates_nothing) {
  const OwnedStream stream(device());
  Operands operands({.m = 4, .n = 4, .k = 4, .l = 1}, stream);
  DirectDesign design{.number = 2'000'000};
  const Kernel kernel = DirectFamily::kernel(design);
  define_fake_kernel(kernel.name(), sizeof(DirectParameters), [](const FakeLaunch&) {});
  const Artifact artifact = kernel.compile(operands.arguments());
  PreparedLaunch prepared = artifact.bind(operands.arguments());
  set_fake_current_context(driver::open_device(device()).context());
  const auto expect_one_call = [&](const char* what, auto&& launch) {
    reset_fake_counts();
    launch();
    const FakeCounts counts = fake_counts();
    EXPECT_EQ(counts.launches, 1) << what;
    EXPECT_EQ(counts.capture_queries + counts.context_pushes + counts.allocations + counts.memsets,
              0)
        << what;
  };
  const auto run = [&] {
    kernel.run(operands.arguments(), {.artifact = &artifact, .stream = stream});
  };
  expect_one_call("run with an artifact", run);
  expect_one_call("run without one", [&] { kernel.run(operands.arguments(), {.stream = stream}); });
  expect_one_call("prepared", [&] { prepared.launch(stream); });

  // The fake driver allocates a fixed number of times for each launch; the library must not add
  // any.
  const auto count_allocations = [&](auto&& launch) {
    launch();
    const long before = allocation_count();
    launch();
    return allocation_count() - before;
  };
  const long of_prepared = count_allocations([&] { prepared.launch(stream); });
  EXPECT_EQ(count_allocations(run), of_prepared);
  EXPECT_EQ(count_allocations([&] { kernel.run(operands.arguments(), {.stream = stream}); }),
            of_prepared);
  set_fake_current_context(nullptr);
}

TEST_P(FakeRuntime, a_refused_launch_names_kernel_call_and_shape) {
  const OwnedStream stream(device());
  Operands operands({}, stream);
  const Kernel kernel = new_kernel();
  kernel.compile(operands.arguments());
  fail_next("cuLaunchKernelEx", driver::cuda::Result::unknown);
  const Error error = error_of([&] { kernel.run(operands.arguments(), {.stream = stream}); });
  EXPECT_EQ(error.kind(), ErrorKind::launch);
  EXPECT_EQ(error.operand(), "cuLaunchKernelEx of " + kernel.name());
  EXPECT_NE(error.cause().find("block 128x1x1"), std::string::npos) << error.what();
}

TEST_P(FakeRuntime, a_failure_to_load_is_told_and_tried_again) {
  const OwnedStream stream(device());
  Operands operands({}, stream);
  const Kernel kernel = new_kernel();
  for (const char* const step : {"cuLibraryLoadData", "cuKernelGetFunction"}) {
    fail_next(step, driver::cuda::Result::no_binary_for_gpu);
    const Error error = error_of([&] { kernel.compile(operands.arguments()); });
    EXPECT_EQ(error.kind(), ErrorKind::launch);
    EXPECT_NE(error.operand().find(step), std::string::npos) << error.what();
  }
  kernel.run(operands.arguments(), {.stream = stream});
  operands.expect_right();
}

TEST_P(FakeRuntime, one_artifact_is_loaded_once_and_prepared_on_each_device) {
  const Kernel kernel = new_kernel();
  for (const int index : {0, 1, 0, 1}) {
    const OwnedStream stream(fake_device(index));
    Operands operands({}, stream);
    kernel.run(operands.arguments(), {.stream = stream});
    operands.expect_right();
  }
  EXPECT_EQ(fake_counts().libraries_loaded, 1);
  EXPECT_EQ(fake_counts().functions_prepared, 2);
}

TEST_P(FakeRuntime, a_kernel_that_asks_for_more_shared_memory_than_there_is_is_unsupported) {
  const OwnedStream stream(device());
  Operands operands({}, stream);
  const Kernel kernel = new_kernel({.shared_bytes = 1 << 20});
  EXPECT_EQ(error_of([&] { kernel.run(operands.arguments(), {.stream = stream}); }).kind(),
            ErrorKind::unsupported);
}

}  // namespace
}  // namespace gemmery::tests
