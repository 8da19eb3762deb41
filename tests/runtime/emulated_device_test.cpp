// SPDX-License-Identifier: Apache-2.0
// The tests on emulated devices, and tests that are possible only there: the form of their code.
#include <gtest/gtest.h>
#include <gemmery/emulator.hpp>
#include <gemmery/error.hpp>

#include <string>

#include "tests/runtime/on_device.hpp"
#include "tests/support/error_of.hpp"

namespace gemmery::tests {

bool is_fake_driver_wanted() { return false; }

namespace {

INSTANTIATE_TEST_SUITE_P(H200, OnDevice, testing::Values(Device::emulated(1)));
INSTANTIATE_TEST_SUITE_P(A100, OnDevice, testing::Values(Device::emulated(2)));

class Emulated : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(H200, Emulated, testing::Values(Device::emulated(1)));

TEST_P(Emulated, a_run_makes_ptx_only_and_a_compilation_adds_the_cubin) {
  const OwnedStream stream(device());
  const Kernel kernel = new_kernel();
  Operands operands({}, stream);
  const Target target =
      DirectFamily::instance().target_for(kernel, driver::open_device(device()).info());
  kernel.run(operands.arguments(), {.stream = stream});
  operands.expect_right();
  const Artifact artifact = kernel.compile(target);
  EXPECT_EQ(artifact.targets(), std::vector<Target>{target});
  EXPECT_TRUE(artifact.resources());
  kernel.run(operands.arguments(), {.artifact = &artifact, .stream = stream});
  operands.expect_right();
}

TEST_P(Emulated, a_fault_is_the_launchs_error_with_the_whole_report) {
  const OwnedStream stream(device());
  const Kernel kernel = new_kernel();
  Operands operands({.m = 40, .n = 40, .k = 4, .l = 1}, stream);
  GemmArguments arguments = operands.arguments();
  const Buffer small(100, stream);
  arguments.set_data("out", small.data());
  const Error error = error_of([&] { kernel.run(arguments, {.stream = stream}); });
  EXPECT_EQ(error.kind(), ErrorKind::launch);
  for (const char* const part : {"out of bounds", "st.global", "kernel.cu:", "seed"})
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  kernel.run(operands.arguments(), {.stream = stream});
  operands.expect_right();
}

// The memory after one launch's zeros may be nonzero, and must be cleared if the next needs more.
TEST_P(Emulated, a_prepared_launch_clears_where_more_of_its_workspace_must_be_zero) {
  const OwnedStream stream(device());
  const Kernel kernel = new_kernel({.workspace_bytes = 256, .zeroed_bytes = -16});
  Operands operands({}, stream);
  PreparedLaunch prepared = kernel.compile(operands.arguments()).bind(operands.arguments());
  for (const float alpha : {1.0F, 1.0F, 2.0F, 2.0F, 1.0F, 3.0F}) {
    prepared.set_scalars(alpha, 0);
    prepared.launch(stream);
    operands.expect_right(alpha);
  }
}

TEST_P(Emulated, a_number_that_is_no_stream_is_refused_by_every_way_to_run) {
  const OwnedStream stream(device());
  const Stream none = Stream::of(reinterpret_cast<void*>(std::uintptr_t{12345}), device());
  for (const DirectDesign& design : {DirectDesign{}, DirectDesign{.workspace_bytes = 256}}) {
    const Kernel kernel = new_kernel(design);
    Operands operands({}, stream);
    const Artifact artifact = kernel.compile(operands.arguments());
    PreparedLaunch prepared = artifact.bind(operands.arguments());
    const RunOptions options{.artifact = &artifact, .stream = none};
    for (const Error& error :
         {error_of([&] { kernel.run(operands.arguments(), {.stream = none}); }),
          error_of([&] { kernel.run(operands.arguments(), options); }),
          error_of([&] { prepared.launch(none); })}) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_argument) << error.what();
      EXPECT_EQ(error.operand(), "stream") << error.what();
    }
    operands.expect_untouched();
  }
}

TEST_P(Emulated, every_schedule_gives_the_same_result) {
  const OwnedStream stream(device());
  const Kernel kernel = new_kernel({.workspace_bytes = 256, .zeroed_bytes = 16});
  Operands operands({}, stream);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    set_emulator_seed(seed);
    kernel.run(operands.arguments(), {.stream = stream});
    operands.expect_right();
  }
  set_emulator_seed(1);
}

}  // namespace
}  // namespace gemmery::tests
