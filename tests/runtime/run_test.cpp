// SPDX-License-Identifier: Apache-2.0
// Compiling, loading and running a DeviceFamily's kernels, on every device that the program names.
#include <gtest/gtest.h>
#include <gemmery/error.hpp>

#include <thread>
#include <vector>

#include "driver/graph.hpp"
#include "driver/stream.hpp"
#include "tests/driver/fake_driver.hpp"
#include "tests/runtime/on_device.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/no_disk_cache.hpp"

namespace gemmery::tests {
namespace {

// --- compile and run ----------------------------------------------------------------------------

TEST_P(OnDevice, run_without_an_artifact_compiles_once_and_is_right) {
  const OwnedStream stream(device());
  const Kernel kernel = new_kernel();
  Operands operands({}, stream);
  for (int run = 0; run < 3; ++run) {
    kernel.run(operands.arguments(), {.stream = stream});
    operands.expect_right();
  }
  EXPECT_EQ(fake_counts().libraries_loaded, is_fake() ? 1 : 0);
}

TEST_P(OnDevice, run_with_an_artifact_is_right_for_many_shapes_and_scalars) {
  const OwnedStream stream(device());
  const Kernel without_c = new_kernel();
  const Kernel with_c = new_kernel({}, true);
  for (const Shape& shape :
       {Shape{1, 1, 1, 1}, Shape{128, 64, 32, 1}, Shape{7, 300, 5, 3}, Shape{5, 4, 0, 2}}) {
    Operands operands(shape, stream);
    for (const auto& [alpha, beta] : {std::pair{1.0F, 0.0F}, std::pair{2.0F, 0.0F},
                                      std::pair{-0.5F, 3.0F}, std::pair{0.0F, 1.0F}}) {
      const Kernel& kernel = beta == 0 ? without_c : with_c;
      const GemmArguments arguments = operands.with_scalars(alpha, beta);
      const Artifact artifact = kernel.compile(arguments);
      kernel.run(arguments, {.artifact = &artifact, .stream = stream});
      operands.expect_right(alpha, beta);
    }
  }
}

TEST_P(OnDevice, the_legacy_default_stream_serves) {
  const Stream stream = Stream::of(nullptr, device());
  const Kernel kernel = new_kernel();
  Operands operands({}, stream);
  kernel.run(operands.arguments(), {.stream = stream});
  operands.expect_right();
}

TEST_P(OnDevice, threads_that_compile_one_kernel_get_one_artifact_that_is_loaded_once) {
  const OwnedStream stream(device());
  const Kernel kernel = new_kernel();
  Operands operands({}, stream);
  reset_fake_counts();
  std::vector<const ArtifactState*> states(24);
  {
    std::vector<std::jthread> threads;
    for (auto& state : states) {
      threads.emplace_back(
          [&] { EXPECT_NO_THROW(state = &kernel.compile(operands.arguments()).state()); });
    }
  }
  for (const ArtifactState* const state : states) EXPECT_EQ(state, states.front());
  if (is_fake()) {
    EXPECT_EQ(fake_counts().libraries_loaded, 1);
    EXPECT_EQ(fake_counts().functions_prepared, 1);
  }
}

TEST_P(OnDevice, an_artifact_tells_source_log_and_resources) {
  const Kernel kernel = new_kernel();
  const Artifact artifact = kernel.compile(Target{90, 0});
  EXPECT_EQ(artifact.targets(), std::vector<Target>{(Target{90, 0})});
  EXPECT_NE(artifact.source().find(kernel.name()), std::string_view::npos);
  EXPECT_NE(artifact.log().find("registers"), std::string_view::npos);
  EXPECT_GT(artifact.compile_ms(), 0);
  ASSERT_TRUE(artifact.resources());
  EXPECT_GT(artifact.resources()->registers, 0);
  EXPECT_EQ(artifact.resources()->spill_store_bytes, 0);
}

TEST_P(OnDevice, code_for_another_architecture_is_refused_by_name) {
  const bool is_blackwell = driver::open_device(device()).info().target.major() == 10;
  const Target foreign = is_blackwell ? Target{120, 0} : Target{100, 0};
  const Artifact artifact = new_kernel().compile(foreign);
  const Error error = error_of([&] { artifact.load(device()); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_NE(error.expected().find(to_string(foreign)), std::string::npos) << error.what();
}

TEST_P(OnDevice, an_empty_output_launches_nothing) {
  const OwnedStream stream(device());
  const Kernel kernel = new_kernel({.workspace_bytes = 1024});
  for (const Shape& shape : {Shape{0, 4, 4, 1}, Shape{4, 0, 4, 1}, Shape{4, 4, 4, 0}}) {
    Operands operands(shape, stream);
    kernel.run(operands.arguments(), {.stream = stream});
    EXPECT_EQ(kernel.get_workspace_size(operands.arguments()), 0U);
    const Artifact artifact = kernel.compile(operands.arguments());
    PreparedLaunch prepared = artifact.bind(operands.arguments());
    prepared.launch(stream);
    synchronize(stream);
  }
  EXPECT_EQ(fake_counts().launches, 0);
}

TEST_P(OnDevice, streams_of_other_devices_are_refused) {
  const OwnedStream stream(device());
  const Kernel kernel = new_kernel();
  Operands operands({}, stream);
  const Artifact artifact = kernel.compile(operands.arguments());
  PreparedLaunch prepared = artifact.bind(operands.arguments());
  for (const Stream other :
       {Stream::cpu(), Stream::of(stream.get().handle(), {device().type, device().index + 1})}) {
    EXPECT_EQ(error_of([&] {
                kernel.run(operands.arguments(), {.artifact = &artifact, .stream = other});
              }).operand(),
              "stream");
    EXPECT_EQ(error_of([&] { kernel.run(operands.arguments(), {.stream = other}); }).operand(),
              "stream");
    EXPECT_EQ(error_of([&] { prepared.launch(other); }).operand(), "stream");
  }
  operands.expect_untouched();
}

TEST_P(OnDevice, a_prepared_launch_uses_the_stream_that_it_was_bound_with) {
  const OwnedStream stream(device());
  Operands operands({}, stream);
  const Artifact artifact = new_kernel().compile(operands.arguments());
  EXPECT_EQ(error_of([&] { (void)artifact.bind(operands.arguments(), Stream::cpu()); }).operand(),
            "stream");
  PreparedLaunch without = artifact.bind(operands.arguments());
  EXPECT_NE(std::string(error_of([&] { without.launch(); }).what()).find("bind(arguments, stream)"),
            std::string::npos);
  operands.expect_untouched();

  PreparedLaunch with = artifact.bind(operands.arguments(), stream);
  EXPECT_EQ(with.own_stream(), stream.get());
  with.launch();
  synchronize(stream);
  operands.expect_right();
}

TEST_P(OnDevice, a_limit_of_multiprocessors_reaches_the_grid) {
  const OwnedStream stream(device());
  DirectDesign design{.number = 1'000'000};
  unsigned seen = 0;
  define_fake_kernel(DirectFamily::kernel(design).name(), sizeof(DirectParameters),
                     [&seen](const FakeLaunch& launch) { seen = launch.config.grid_x; });
  const Kernel kernel = DirectFamily::kernel(design);
  Operands operands({.m = 128, .n = 128, .k = 4, .l = 1}, stream);
  kernel.run(operands.arguments(), {.stream = stream, .max_multiprocessors = 3});
  if (is_fake()) {
    EXPECT_EQ(seen, 3U);
  } else {
    operands.expect_right();
  }
}

TEST_P(OnDevice, a_negative_limit_of_multiprocessors_is_refused) {
  const OwnedStream stream(device());
  const Kernel kernel = new_kernel();
  Operands operands({}, stream);
  const Artifact artifact = kernel.compile(operands.arguments());
  for (const Artifact* const compiled : {static_cast<const Artifact*>(nullptr), &artifact}) {
    const Error error = error_of([&] {
      kernel.run(operands.arguments(),
                 {.artifact = compiled, .stream = stream, .max_multiprocessors = -5});
    });
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_EQ(error.operand(), "max_multiprocessors");
    EXPECT_EQ(error.got(), "-5");
  }
  operands.expect_untouched();
}

TEST_P(OnDevice, many_streams_run_one_kernel_side_by_side) {
  const Kernel kernel = new_kernel({.workspace_bytes = 256, .zeroed_bytes = 16, .delay_us = 50});
  std::vector<std::unique_ptr<OwnedStream>> streams;
  std::vector<std::unique_ptr<Operands>> operands;
  for (int index = 0; index < 8; ++index) {
    streams.push_back(std::make_unique<OwnedStream>(device()));
    operands.push_back(std::make_unique<Operands>(Shape{.m = 20 + index}, *streams.back()));
  }
  for (int round = 0; round < 5; ++round) {
    for (std::size_t index = 0; index < 8; ++index)
      kernel.run(operands[index]->arguments(), {.stream = *streams[index]});
    for (const auto& one : operands) one->expect_right();
  }
}

TEST_P(OnDevice, nothing_changes_the_callers_context) {
  const driver::GpuDevice& gpu = driver::open_device(device());
  const driver::DriverApi& api = gpu.api();
  driver::cuda::Context before = nullptr;
  api.cuCtxGetCurrent(&before);
  for (const driver::cuda::Context own :
       {static_cast<driver::cuda::Context>(nullptr), gpu.context()}) {
    api.cuCtxSetCurrent(own);
    const auto expect_unchanged = [&](const char* after) {
      driver::cuda::Context now = nullptr;
      api.cuCtxGetCurrent(&now);
      EXPECT_EQ(now, own) << after;
    };
    const OwnedStream stream(device());
    const Kernel kernel = new_kernel({.workspace_bytes = 512, .zeroed_bytes = 16});
    Operands operands({}, stream);
    expect_unchanged("buffers and copies");
    const Artifact artifact = kernel.compile(operands.arguments());
    expect_unchanged("compile");
    kernel.run(operands.arguments(), {.stream = stream});
    expect_unchanged("run");
    EXPECT_ANY_THROW(
        kernel.run(operands.arguments(), {.artifact = &artifact, .stream = Stream::cpu()}));
    expect_unchanged("a refused run");
    PreparedLaunch prepared = artifact.bind(operands.arguments());
    expect_unchanged("bind");
    prepared.launch(stream);
    expect_unchanged("launch");
    operands.expect_right();
  }
  api.cuCtxSetCurrent(before);
}

// --- workspaces ---------------------------------------------------------------------------------

TEST_P(OnDevice, a_workspace_is_cleared_where_the_kernel_wants_it_so) {
  const OwnedStream stream(device());
  const Kernel kernel = new_kernel({.workspace_bytes = 1000, .zeroed_bytes = 16});
  Operands operands({}, stream);
  EXPECT_EQ(kernel.get_workspace_size(operands.arguments()), 1000U);
  const Buffer workspace(1000, stream);
  for (int run = 0; run < 3; ++run) {
    fill(workspace.data(), 0xFF, 1000, stream);
    kernel.run(operands.arguments(),
               {.stream = stream, .workspace = {workspace.data(), workspace.bytes()}});
    operands.expect_right();
    kernel.run(operands.arguments(), {.stream = stream});  // from the pool
    operands.expect_right();
  }
}

TEST_P(OnDevice,
       a_workspace_that_is_too_small_or_misaligned_is_refused_before_anything_is_launched) {
  const OwnedStream stream(device());
  const Kernel kernel = new_kernel({.workspace_bytes = 1000});
  Operands operands({}, stream);
  kernel.compile(operands.arguments());
  const Buffer workspace(2000, stream);
  reset_fake_counts();
  const Error small = error_of([&] {
    kernel.run(operands.arguments(), {.stream = stream, .workspace = {workspace.data(), 999}});
  });
  EXPECT_EQ(small.kind(), ErrorKind::invalid_argument);
  EXPECT_EQ(small.operand(), "workspace");
  EXPECT_EQ(small.expected(), "at least 1000 bytes");
  EXPECT_EQ(small.got(), "999");
  void* const shifted = static_cast<char*>(workspace.data()) + 16;
  const Error misaligned = error_of([&] {
    kernel.run(operands.arguments(), {.stream = stream, .workspace = {shifted, 1900}});
  });
  EXPECT_EQ(misaligned.kind(), ErrorKind::invalid_argument);
  EXPECT_EQ(misaligned.operand(), "workspace");
  EXPECT_EQ(fake_counts().launches, 0);
  operands.expect_untouched();
}

TEST_P(OnDevice, memory_from_the_pool_goes_back) {
  const OwnedStream stream(device());
  const Kernel kernel = new_kernel({.workspace_bytes = 1 << 20});
  Operands operands({}, stream);
  kernel.run(operands.arguments(), {.stream = stream});
  synchronize(stream);
  const std::uint64_t before = pool_statistics(device()).used_bytes;
  for (int run = 0; run < 10; ++run) kernel.run(operands.arguments(), {.stream = stream});
  { PreparedLaunch prepared = kernel.compile(operands.arguments()).bind(operands.arguments()); }
  synchronize(stream);
  synchronize(driver::open_device(device()).housekeeping_stream());
  EXPECT_LE(pool_statistics(device()).used_bytes,
            before);  // less if memory of an earlier test was freed meanwhile
}

// --- captures -----------------------------------------------------------------------------------

TEST_P(OnDevice, a_kernel_that_is_not_compiled_is_refused_in_a_capture_that_stays_valid) {
  const OwnedStream stream(device());
  Operands operands({}, stream);
  const Kernel kernel = new_kernel();
  driver::GraphCapture capture(stream);
  const Error error = error_of([&] { kernel.run(operands.arguments(), {.stream = stream}); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_NE(error.hint().find("compile"), std::string::npos) << error.what();
  EXPECT_NO_THROW(capture.end());
  EXPECT_EQ(fake_counts().calls_refused_in_capture, 0);
  kernel.run(operands.arguments(), {.stream = stream});
  operands.expect_right();
}

TEST_P(OnDevice, code_that_is_not_loaded_is_refused_in_a_capture_that_stays_valid) {
  const OwnedStream stream(device());
  Operands operands({}, stream);
  const Kernel kernel = new_kernel();
  const Artifact artifact = kernel.compile(
      DirectFamily::instance().target_for(kernel, driver::open_device(device()).info()));
  {
    driver::GraphCapture capture(stream);
    const Error error = error_of(
        [&] { kernel.run(operands.arguments(), {.artifact = &artifact, .stream = stream}); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_NE(error.hint().find("artifact.load"), std::string::npos) << error.what();
    EXPECT_NO_THROW(capture.end());
    EXPECT_EQ(fake_counts().calls_refused_in_capture, 0);
  }
  artifact.load(device());
  driver::GraphCapture capture(stream);
  kernel.run(operands.arguments(), {.artifact = &artifact, .stream = stream});
  const driver::Graph graph = capture.end();
  operands.expect_untouched();
  graph.launch(stream);
  operands.expect_right();
}

TEST_P(OnDevice, a_missing_workspace_is_refused_in_a_capture_that_stays_valid) {
  const OwnedStream stream(device());
  Operands operands({}, stream);
  const Kernel kernel = new_kernel({.workspace_bytes = 512, .zeroed_bytes = 16});
  const Artifact artifact = kernel.compile(operands.arguments());
  driver::GraphCapture capture(stream);
  for (const Artifact* const given : {&artifact, static_cast<const Artifact*>(nullptr)}) {
    const Error error =
        error_of([&] { kernel.run(operands.arguments(), {.artifact = given, .stream = stream}); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_NE(error.hint().find("bind"), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(capture.end());
  EXPECT_EQ(fake_counts().calls_refused_in_capture, 0);
}

TEST_P(OnDevice, a_captured_run_replays_with_inputs_that_changed) {
  const OwnedStream stream(device());
  Operands operands({}, stream);
  const Kernel kernel = new_kernel({.workspace_bytes = 512, .zeroed_bytes = 16});
  kernel.compile(operands.arguments());
  const Buffer workspace(512, stream);
  driver::GraphCapture capture(stream);
  kernel.run(operands.arguments(),
             {.stream = stream, .workspace = {workspace.data(), workspace.bytes()}});
  const driver::Graph graph = capture.end();
  for (int replay = 0; replay < 5; ++replay) {
    operands.change_a();
    graph.launch(stream);
    operands.expect_right();
  }
}

TEST_P(OnDevice, a_prepared_launch_is_captured_with_the_workspace_that_it_reserved) {
  const OwnedStream stream(device());
  Operands operands({}, stream);
  const Kernel kernel = new_kernel({.workspace_bytes = 512, .zeroed_bytes = 16});
  PreparedLaunch prepared = kernel.compile(operands.arguments()).bind(operands.arguments());
  prepared.launch(stream);
  operands.expect_right();
  driver::GraphCapture capture(stream);
  prepared.launch(stream);
  prepared.launch(stream);
  const driver::Graph graph = capture.end();
  for (int replay = 0; replay < 5; ++replay) {
    operands.change_a();
    graph.launch(stream);
    operands.expect_right();
  }
}

TEST_P(OnDevice, compiling_and_loading_disturb_no_capture_of_another_thread) {
  const OwnedStream captured(device());
  const OwnedStream stream(device());
  Operands operands({}, stream);
  Operands captured_operands({}, captured);
  const Kernel kernel = new_kernel();
  kernel.compile(captured_operands.arguments());
  const Kernel late = new_kernel({.workspace_bytes = 512});
  driver::GraphCapture capture(captured);
  kernel.run(captured_operands.arguments(), {.stream = captured});
  std::jthread([&] {
    EXPECT_NO_THROW({
      const Artifact artifact = late.compile(operands.arguments());
      PreparedLaunch prepared = artifact.bind(operands.arguments());
      prepared.launch(stream);
      late.run(operands.arguments(), {.stream = stream});
    });
  }).join();
  const driver::Graph graph = capture.end();
  EXPECT_EQ(fake_counts().calls_refused_in_capture, 0);
  operands.expect_right();
  graph.launch(captured);
  captured_operands.expect_right();
}

// --- prepared launches --------------------------------------------------------------------------

TEST_P(OnDevice, a_prepared_launch_takes_new_memory_and_scalars) {
  const OwnedStream stream(device());
  Operands first({}, stream);
  Operands second({}, stream);
  const Kernel kernel = new_kernel({}, true);
  const GemmArguments arguments = first.with_scalars(2, 3);
  PreparedLaunch prepared = kernel.compile(arguments).bind(arguments);
  prepared.launch(stream);
  first.expect_right(2, 3);
  prepared.set_scalars(-1, 0.5);
  prepared.launch(stream);
  first.expect_right(-1, 0.5F);
  prepared.set_data("out", second.out());
  prepared.launch(stream);
  synchronize(stream);
  first.expect_untouched();
  prepared.set_data("out", first.out());
  prepared.launch(stream);
  first.expect_right(-1, 0.5F);
}

TEST_P(OnDevice, a_refused_patch_leaves_the_prepared_launch_as_it_was) {
  const OwnedStream stream(device());
  Operands operands({}, stream);
  const Kernel kernel = new_kernel();
  PreparedLaunch prepared = kernel.compile(operands.arguments()).bind(operands.arguments());
  EXPECT_THROW(prepared.set_data("A", nullptr), Error);
  EXPECT_THROW(prepared.set_data("A", operands.out()), Error);
  EXPECT_THROW(prepared.set_data("X", operands.a()), Error);
  EXPECT_THROW(prepared.set_scalars(1, 1), Error);  // no C is bound
  prepared.launch(stream);
  operands.expect_right();
}

TEST_P(OnDevice, a_prepared_launch_with_a_workspace_alternates_between_streams) {
  const OwnedStream first(device());
  const OwnedStream second(device());
  Operands operands({}, first);
  const Kernel kernel = new_kernel({.workspace_bytes = 256, .zeroed_bytes = 16, .delay_us = 100});
  PreparedLaunch prepared = kernel.compile(operands.arguments()).bind(operands.arguments());
  for (int round = 0; round < 10; ++round) {
    prepared.launch(first);
    prepared.launch(second);
  }
  synchronize(first);
  synchronize(second);
  operands.expect_right();
}

}  // namespace
}  // namespace gemmery::tests
