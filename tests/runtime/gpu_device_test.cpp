// SPDX-License-Identifier: Apache-2.0
// The tests on the first two GPUs, and tests that are possible only there.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gemmery/error.hpp>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "driver/graph.hpp"
#include "driver/stream.hpp"
#include "driver/tensor_map.hpp"
#include "tests/runtime/on_device.hpp"
#include "tests/support/error_of.hpp"

namespace gemmery::tests {

bool is_fake_driver_wanted() { return false; }

namespace {

INSTANTIATE_TEST_SUITE_P(First, OnDevice, testing::Values(Device::cuda(0)));
INSTANTIATE_TEST_SUITE_P(Second, OnDevice, testing::Values(Device::cuda(1)));

class Gpu : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(First, Gpu, testing::Values(Device::cuda(0)));

TEST_P(Gpu, facts_are_plausible) {
  const DeviceInfo& info = driver::open_device(device()).info();
  std::printf(
      "%s %s: %d multiprocessors, %.2f GHz, %.2f TB/s, %lld bytes of shared memory, %lld of L2, "
      "%lld of memory\n",
      info.name.c_str(), to_string(info.target).c_str(), info.multiprocessors, info.clock_ghz,
      info.bandwidth_bytes_per_second * 1e-12, static_cast<long long>(info.shared_bytes_per_block),
      static_cast<long long>(info.l2_bytes), static_cast<long long>(info.memory_bytes));
  EXPECT_GE(info.target.architecture, 75);
  EXPECT_GT(info.multiprocessors, 0);
  EXPECT_GT(info.clock_ghz, 0.2);
  EXPECT_GT(info.bandwidth_bytes_per_second, 1e10);
  EXPECT_GE(info.shared_bytes_per_block, 48 << 10);
}

TEST_P(Gpu, a_launch_returns_before_its_work_is_done) {
  const OwnedStream stream(device());
  const Kernel kernel = new_kernel({.delay_us = 50'000, .block_limit = 1});
  Operands operands({.m = 4, .n = 4, .k = 4, .l = 1}, stream);
  kernel.run(operands.arguments(),
             {.stream = stream});  // the first launch of a process takes longer
  synchronize(stream);
  const auto start = std::chrono::steady_clock::now();
  kernel.run(operands.arguments(), {.stream = stream});
  const std::chrono::duration<double> until_return = std::chrono::steady_clock::now() - start;
  synchronize(stream);
  const std::chrono::duration<double> until_done = std::chrono::steady_clock::now() - start;
  EXPECT_LT(until_return.count(), 0.02);
  EXPECT_GT(until_done.count(), 0.045);
  operands.expect_right();
}

TEST_P(Gpu, events_measure_what_lies_between_them) {
  const OwnedStream stream(device());
  const Kernel kernel = new_kernel({.delay_us = 10'000, .block_limit = 1});
  Operands operands({.m = 4, .n = 4, .k = 4, .l = 1}, stream);
  kernel.compile(operands.arguments());
  const driver::Event start(device(), driver::Event::Kind::timing);
  const driver::Event end(device(), driver::Event::Kind::timing);
  start.record(stream);
  kernel.run(operands.arguments(), {.stream = stream});
  end.record(stream);
  end.synchronize();
  EXPECT_NEAR(driver::elapsed_ms(start, end), 10, 3);
}

// RELIABILITY F58: the clearing of a workspace and the kernel after it are on the caller's stream,
// independent of work on other streams.
TEST_P(Gpu, a_busy_default_stream_does_not_reorder_work) {
  const Stream legacy = Stream::of(nullptr, device());
  const OwnedStream side(device());
  Operands slow({.m = 4, .n = 4, .k = 4, .l = 1}, legacy);
  Operands operands({}, side);
  const Kernel delay = new_kernel({.delay_us = 20'000, .block_limit = 1});
  const Kernel kernel = new_kernel({.workspace_bytes = 256, .zeroed_bytes = 16});
  delay.compile(slow.arguments());
  kernel.compile(operands.arguments());
  const Buffer workspace(256, side);
  for (int round = 0; round < 10; ++round) {
    delay.run(slow.arguments(), {.stream = legacy});
    fill(workspace.data(), 0xFF, 256, side);
    kernel.run(operands.arguments(),
               {.stream = side, .workspace = {workspace.data(), workspace.bytes()}});
    operands.expect_right();
  }
}

TEST_P(Gpu, the_workspace_of_a_prepared_launch_outlives_the_work_that_uses_it) {
  const OwnedStream stream(device());
  const Kernel kernel = new_kernel(
      {.workspace_bytes = 4096, .zeroed_bytes = 16, .delay_us = 5'000, .block_limit = 1});
  Operands operands({.m = 8, .n = 8, .k = 4, .l = 1}, stream);
  const Artifact artifact = kernel.compile(operands.arguments());
  for (int round = 0; round < 10; ++round) {
    {
      PreparedLaunch prepared = artifact.bind(operands.arguments());
      prepared.launch(stream);
    }
    // Would receive the memory at once if it was freed too early.
    const OwnedStream other(device());
    const Buffer thief(4096, other);
    fill(thief.data(), 0xFF, 4096, other);
    synchronize(other);
    operands.expect_right();
  }
}

TEST_P(Gpu, the_pool_keeps_what_it_reserved_and_holds_its_limit) {
  const OwnedStream stream(device());
  constexpr std::uint64_t mib = 1 << 20;
  configure_pool(device(), {.initial_bytes = 256 * mib});
  EXPECT_GE(pool_statistics(device()).reserved_bytes, 256 * mib);
  configure_pool(device(), {.initial_bytes = 64 * mib, .limit_bytes = 512 * mib});
  {
    const Buffer first(300 * mib, stream);
    EXPECT_GE(pool_statistics(device()).used_bytes, 300 * mib);
    EXPECT_EQ(error_of([&] { Buffer(300 * mib, stream); }).kind(), ErrorKind::out_of_memory);
  }
  EXPECT_NO_THROW(Buffer(500 * mib, stream));
  configure_pool(device(), {});
  synchronize(stream);
  EXPECT_LT(pool_statistics(device()).used_bytes, 300 * mib);
  EXPECT_EQ(error_of([&] { Buffer(std::size_t{1} << 50, stream); }).kind(),
            ErrorKind::out_of_memory);
}

TEST_P(Gpu, a_child_that_is_forked_after_use_is_told) {
  const OwnedStream stream(device());
  synchronize(stream);
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    try {
      const Buffer buffer(16, stream);
      _exit(1);
    } catch (const Error& error) {
      const bool names_fork = std::string(error.what()).find("fork") != std::string::npos;
      _exit(error.kind() == ErrorKind::unavailable && names_fork ? 0 : 2);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  synchronize(stream);
}

TEST_P(Gpu, tensor_maps_are_encoded_by_the_driver) {
  const driver::GpuDevice& gpu = driver::open_device(device());
  if (gpu.info().target.architecture < 90)
    GTEST_SKIP() << "tensor maps need sm_90, this is " << to_string(gpu.info().target);
  const OwnedStream stream(device());
  const Buffer memory(1 << 20, stream);
  driver::TiledTensorMap view{.address = memory.data(),
                              .dtype = DType::bfloat16,
                              .rank = 2,
                              .extents = {256, 512},
                              .byte_strides = {512},
                              .box = {64, 128},
                              .swizzle = driver::cuda::TensorMapSwizzle::bytes128};
  const driver::ScopedContext current(gpu);
  EXPECT_NO_THROW(driver::encode(gpu.api(), view));
  view.dtype = DType::float32;
  view.is_tf32 = true;
  view.byte_strides = {1024};
  view.box = {32, 64};
  EXPECT_NO_THROW(driver::encode(gpu.api(), view));
}

// RELIABILITY F46: modules loaded from many threads.
TEST_P(Gpu, threads_load_different_kernels_side_by_side) {
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 24; ++thread) {
    threads.emplace_back([&] {
      EXPECT_NO_THROW({
        const OwnedStream stream(device());
        const Kernel kernel = new_kernel();
        Operands operands({.m = 16}, stream);
        for (int run = 0; run < 10; ++run) kernel.run(operands.arguments(), {.stream = stream});
        operands.expect_right();
      });
    });
  }
}

// RELIABILITY F56, F62: one thread takes turns between two devices.
TEST_P(Gpu, one_thread_alternates_between_two_devices) {
  if (driver::driver_for(DeviceType::cuda).device_count() < 2) GTEST_SKIP() << "one device here";
  const OwnedStream first(Device::cuda(0));
  const OwnedStream second(Device::cuda(1));
  const Kernel kernel = new_kernel({.workspace_bytes = 256, .zeroed_bytes = 16});
  Operands on_first({}, first);
  Operands on_second({}, second);
  for (int round = 0; round < 20; ++round) {
    kernel.run(on_first.arguments(), {.stream = first});
    kernel.run(on_second.arguments(), {.stream = second});
    on_second.expect_right();
    on_first.expect_right();
  }
  std::vector<float> there(100, 3), back(100);
  const Buffer near(400, first);
  const Buffer far(400, second);
  copy(near.data(), Device::cuda(0), there.data(), Device::cpu(), 400, first);
  copy(far.data(), Device::cuda(1), near.data(), Device::cuda(0), 400, first);
  synchronize(first);
  copy(back.data(), Device::cpu(), far.data(), Device::cuda(1), 400, second);
  synchronize(second);
  EXPECT_EQ(back, there);
}

}  // namespace
}  // namespace gemmery::tests
