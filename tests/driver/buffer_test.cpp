// SPDX-License-Identifier: Apache-2.0
// Buffers, copies, streams and the pool: on the CPU, and on the fake driver's devices.
#include <gtest/gtest.h>
#include <gemmery/buffer.hpp>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "driver/graph.hpp"
#include "tests/driver/fake_driver.hpp"
#include "tests/support/error_of.hpp"

namespace gemmery::tests {
namespace {

std::vector<std::uint8_t> counting(std::size_t bytes) {
  std::vector<std::uint8_t> data(bytes);
  std::iota(data.begin(), data.end(), std::uint8_t{1});
  return data;
}

TEST(CpuBuffer, is_aligned_and_freed_once) {
  for (const std::size_t bytes : {1U, 255U, 256U, 100'000U}) {
    Buffer buffer(bytes, Stream::cpu());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0U);
    std::memset(buffer.data(), 1, bytes);
    Buffer moved = std::move(buffer);
    EXPECT_EQ(moved.bytes(), bytes);
    EXPECT_EQ(buffer.data(), nullptr);  // NOLINT(bugprone-use-after-move): that is what is tested
    moved = Buffer(7, Stream::cpu());
    EXPECT_EQ(moved.bytes(), 7U);
  }
}

TEST(CpuBuffer, of_no_bytes_has_no_memory) { EXPECT_EQ(Buffer(0, Stream::cpu()).data(), nullptr); }

TEST(CpuBuffer, of_impossible_size_is_out_of_memory) {
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX / 4}) {
    EXPECT_EQ(error_of([&] { Buffer(bytes, Stream::cpu()); }).kind(), ErrorKind::out_of_memory);
  }
}

TEST(CpuCopy, moves_and_fills_bytes) {
  const auto data = counting(1000);
  std::vector<std::uint8_t> other(1000);
  copy(other.data(), Device::cpu(), data.data(), Device::cpu(), 1000, Stream::cpu());
  EXPECT_EQ(other, data);
  fill(other.data(), 9, 500, Stream::cpu());
  EXPECT_EQ(other[499], 9);
  EXPECT_EQ(other[500], data[500]);
  synchronize(Stream::cpu());
}

TEST(CpuCopy, refuses_null_pointers_and_streams_of_others) {
  std::uint8_t byte = 0;
  EXPECT_EQ(error_of([&] {
              copy(nullptr, Device::cpu(), &byte, Device::cpu(), 1, Stream::cpu());
            }).operand(),
            "destination");
  EXPECT_EQ(error_of([&] {
              copy(&byte, Device::cpu(), nullptr, Device::cpu(), 1, Stream::cpu());
            }).operand(),
            "source");
  EXPECT_EQ(error_of([&] { fill(nullptr, 0, 1, Stream::cpu()); }).operand(), "destination");
  const Stream gpu = Stream::of(nullptr, Device::cuda(0));
  EXPECT_EQ(error_of([&] { copy(&byte, Device::cpu(), &byte, Device::cpu(), 1, gpu); }).operand(),
            "stream");
  EXPECT_EQ(error_of([&] {
              copy(&byte, Device::cuda(0), &byte, Device::cpu(), 1, Stream::cpu());
            }).operand(),
            "stream");
  EXPECT_EQ(error_of([&] {
              copy(&byte, Device::cuda(0), &byte, Device::cuda(1), 1,
                   Stream::of(nullptr, Device::cuda(2)));
            }).operand(),
            "stream");
}

class FakeGpu : public testing::Test {
 protected:
  void SetUp() override {
    install_fake_driver();
    configure_pool(fake_device(0), {});
    reset_fake_counts();
  }
};

TEST_F(FakeGpu, bytes_travel_there_between_devices_and_back) {
  const auto data = counting(5000);
  const OwnedStream stream(fake_device(0));
  const OwnedStream other_stream(fake_device(1));
  const Buffer first(5000, stream);
  const Buffer second(5000, stream);
  const Buffer far(5000, other_stream);
  std::vector<std::uint8_t> back(5000);
  copy(first.data(), first.device(), data.data(), Device::cpu(), 5000, stream);
  copy(second.data(), second.device(), first.data(), first.device(), 5000, stream);
  copy(far.data(), far.device(), second.data(), second.device(), 5000, stream);
  copy(back.data(), Device::cpu(), far.data(), far.device(), 5000, other_stream);
  synchronize(other_stream);
  EXPECT_EQ(back, data);
}

TEST_F(FakeGpu, no_call_changes_the_callers_context) {
  driver::GpuDevice& one = driver::open_device(fake_device(1));
  for (const driver::cuda::Context before :
       {static_cast<driver::cuda::Context>(nullptr), one.context()}) {
    set_fake_current_context(before);
    {
      const OwnedStream stream(fake_device(0));
      Buffer buffer(100, stream);
      EXPECT_EQ(fake_current_context(), before);
      fill(buffer.data(), 1, 100, stream);
      EXPECT_EQ(fake_current_context(), before);
      synchronize(stream);
      pool_statistics(fake_device(0));
      EXPECT_THROW(Buffer(std::size_t{1} << 40, stream), Error);
      EXPECT_EQ(fake_current_context(), before);
      buffer = Buffer();
      EXPECT_EQ(fake_current_context(), before);
    }
    EXPECT_EQ(fake_current_context(), before);
  }
  set_fake_current_context(nullptr);
}

TEST_F(FakeGpu, a_context_that_is_current_already_is_not_pushed) {
  set_fake_current_context(driver::open_device(fake_device(0)).context());
  const OwnedStream stream(fake_device(0));
  const Buffer buffer(100, stream);
  fill(buffer.data(), 1, 100, stream);
  EXPECT_EQ(fake_counts().context_pushes, 0);
  set_fake_current_context(nullptr);
}

TEST_F(FakeGpu, the_pool_counts_what_it_gave_out) {
  const OwnedStream stream(fake_device(0));
  const std::uint64_t before = pool_statistics(fake_device(0)).used_bytes;
  {
    const Buffer buffer(1 << 20, stream);
    EXPECT_EQ(pool_statistics(fake_device(0)).used_bytes, before + (1 << 20));
  }
  EXPECT_EQ(pool_statistics(fake_device(0)).used_bytes, before);
  EXPECT_GE(pool_statistics(fake_device(0)).used_peak_bytes, before + (1 << 20));
}

TEST_F(FakeGpu, the_pools_limit_holds_and_what_is_freed_can_be_had_again) {
  const OwnedStream stream(fake_device(0));
  configure_pool(fake_device(0), {.initial_bytes = 512, .limit_bytes = 1000});
  EXPECT_EQ(pool_statistics(fake_device(0)).limit_bytes, 1000U);
  {
    const Buffer first(600, stream);
    const Error error = error_of([&] { Buffer(401, stream); });
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_NE(error.expected().find("1000"), std::string::npos) << error.what();
    EXPECT_NO_THROW(Buffer(400, stream));
  }
  EXPECT_NO_THROW(Buffer(1000, stream));
  configure_pool(fake_device(0), {});
  EXPECT_NO_THROW(Buffer(5000, stream));
}

TEST_F(FakeGpu, an_initial_size_beyond_the_limit_is_refused) {
  const Error error = error_of(
      [] { configure_pool(fake_device(0), {.initial_bytes = 1001, .limit_bytes = 1000}); });
  EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
  EXPECT_EQ(error.operand(), "initial_bytes");
}

TEST_F(FakeGpu, the_driver_out_of_memory_is_ours) {
  const OwnedStream stream(fake_device(0));
  fail_next("cuMemAllocFromPoolAsync", driver::cuda::Result::out_of_memory);
  const Error error = error_of([&] { Buffer(64, stream); });
  EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
  EXPECT_NE(error.operand().find("cuMemAllocFromPoolAsync"), std::string::npos);
  EXPECT_NE(error.got().find("FAKE_OUT_OF_MEMORY"), std::string::npos);
  configure_pool(fake_device(0), {.limit_bytes = 100});
  EXPECT_NO_THROW(Buffer(100, stream)) << "the failed allocation is still counted";
}

TEST_F(FakeGpu, memory_is_refused_during_a_capture_which_stays_valid) {
  const OwnedStream stream(fake_device(0));
  driver::GraphCapture capture(stream);
  EXPECT_EQ(error_of([&] { Buffer(64, stream); }).kind(), ErrorKind::unsupported);
  EXPECT_NO_THROW(capture.end());
  EXPECT_EQ(fake_counts().calls_refused_in_capture, 0);
}

TEST_F(FakeGpu, another_stream_may_take_memory_during_a_capture) {
  const OwnedStream captured(fake_device(0));
  const OwnedStream other(fake_device(0));
  driver::GraphCapture capture(captured);
  EXPECT_NO_THROW(Buffer(64, other));
  EXPECT_NO_THROW(capture.end());
  EXPECT_EQ(fake_counts().calls_refused_in_capture, 0);
}

TEST_F(FakeGpu, a_stream_tells_whether_it_is_captured) {
  const OwnedStream captured(fake_device(0));
  const OwnedStream other(fake_device(0));
  EXPECT_FALSE(is_capturing(captured));
  driver::GraphCapture capture(captured);
  EXPECT_TRUE(is_capturing(captured));
  EXPECT_FALSE(is_capturing(other));
  EXPECT_FALSE(is_capturing(Stream::cpu()));
  EXPECT_NO_THROW(capture.end());
  EXPECT_FALSE(is_capturing(captured));
}

TEST_F(FakeGpu, what_a_capture_forbids_is_allowed_beside_it) {
  const OwnedStream captured(fake_device(0));
  const driver::GpuDevice& device = driver::open_device(fake_device(0));
  const driver::ScopedContext current(device);
  const auto load_nothing = [&] {
    driver::cuda::Library library = nullptr;
    return device.api().cuLibraryLoadData(&library, nullptr, nullptr, nullptr, 0, nullptr, nullptr,
                                          0);
  };
  driver::GraphCapture capture(captured);
  {
    const BesideCaptures relaxed(fake_device(0));
    const BesideCaptures of_the_cpu(Device::cpu());
    EXPECT_EQ(load_nothing(), driver::cuda::Result::success);
  }
  EXPECT_NO_THROW(capture.end());
  EXPECT_EQ(fake_counts().calls_refused_in_capture, 0);
  driver::GraphCapture forbids(captured);
  EXPECT_NE(load_nothing(), driver::cuda::Result::success) << "the thread is as it was";
}

}  // namespace
}  // namespace gemmery::tests
