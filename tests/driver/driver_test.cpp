// SPDX-License-Identifier: Apache-2.0
// Drivers and devices: errors when there is none, facts, fork.
#include "driver/driver.hpp"

#include <gtest/gtest.h>
#include <gemmery/buffer.hpp>

#include "driver/code.hpp"
#include "driver/graph.hpp"
#include "driver/launch.hpp"
#include "driver/stream.hpp"
#include "tests/driver/fake_driver.hpp"
#include "tests/support/error_of.hpp"

namespace gemmery::tests {
namespace {

TEST(CudaDriver, absence_is_told_with_what_was_looked_for) {
  const driver::DriverFinding finding = driver::find_driver(DeviceType::cuda);
  if (finding.driver != nullptr) GTEST_SKIP() << "there is a driver: " << finding.driver->path();
  EXPECT_NE(finding.reason.find("libcuda.so.1"), std::string::npos) << finding.reason;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Error error = error_of([] { driver::open_device(Device::cuda(0)); });
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    EXPECT_NE(std::string(error.what()).find("libcuda.so.1"), std::string::npos) << error.what();
  }
}

TEST(CudaDriver, the_cpu_is_no_gpu) {
  EXPECT_EQ(error_of([] { driver::open_device(Device::cpu()); }).kind(),
            ErrorKind::invalid_argument);
}

class FakeDriver : public testing::Test {
 protected:
  void SetUp() override {
    install_fake_driver();
    reset_fake_counts();
  }
};

TEST_F(FakeDriver, an_index_that_is_not_there_is_refused_with_the_count) {
  for (const int index : {-1, 2, 64, 1'000'000}) {
    const Error error = error_of([&] { driver::open_device(fake_device(index)); });
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    EXPECT_NE(error.expected().find("below 2"), std::string::npos) << error.what();
    EXPECT_EQ(error.got(), std::to_string(index));
  }
}

TEST_F(FakeDriver, facts_come_from_the_driver) {
  const DeviceInfo& info = driver::open_device(fake_device(0)).info();
  EXPECT_EQ(info.target, (Target{90, 0}));
  EXPECT_EQ(info.multiprocessors, 132);
  EXPECT_EQ(info.shared_bytes_per_block, 227 << 10);
  EXPECT_NEAR(info.clock_ghz, 1.98, 1e-9);
  EXPECT_NEAR(info.bandwidth_bytes_per_second, 4.917e12, 1e9);
  EXPECT_EQ(info.fma_f32_per_clock, 128);
}

TEST_F(FakeDriver, a_device_is_opened_once) {
  EXPECT_EQ(&driver::open_device(fake_device(0)), &driver::open_device(fake_device(0)));
  EXPECT_NE(&driver::open_device(fake_device(0)), &driver::open_device(fake_device(1)));
}

TEST_F(FakeDriver, a_second_driver_of_one_type_is_refused) {
  EXPECT_EQ(error_of([] {
              driver::register_driver(std::make_unique<driver::Driver>(
                  DeviceType::emulated, driver::driver_for(DeviceType::emulated).api(), "another"));
            }).kind(),
            ErrorKind::invalid_argument);
}

TEST_F(FakeDriver, an_error_carries_the_call_and_the_drivers_words) {
  fail_next("cuStreamSynchronize", driver::cuda::Result::unknown);
  const OwnedStream stream(fake_device(0));
  const Error error = error_of([&] { synchronize(stream); });
  EXPECT_EQ(error.kind(), ErrorKind::launch);
  EXPECT_EQ(error.operand(), "cuStreamSynchronize");
  EXPECT_EQ(error.got(), "FAKE_ERROR (as the test asked)");
}

TEST_F(FakeDriver, more_shared_memory_than_the_device_has_is_unsupported) {
  const driver::GpuDevice& device = driver::open_device(fake_device(0));
  const driver::LoadedCode code(device.driver(), {}, "entry");
  const Error error = error_of([&] { code.prepare(device, 1 << 20); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_EQ(error.got(), "1048576");
}

TEST_F(FakeDriver, code_is_loaded_while_another_stream_is_captured) {
  const driver::GpuDevice& device = driver::open_device(fake_device(0));
  const OwnedStream captured(fake_device(0));
  driver::GraphCapture capture(captured);
  const driver::LoadedCode code(device.driver(), {}, "entry");
  EXPECT_NO_THROW(code.prepare(device, 1024));
  EXPECT_NO_THROW(capture.end());
  EXPECT_EQ(fake_counts().calls_refused_in_capture, 0);
}

TEST_F(FakeDriver, the_legacy_stream_counts_as_captured_while_another_is) {
  const driver::GpuDevice& device = driver::open_device(fake_device(0));
  const OwnedStream captured(fake_device(0));
  const Stream legacy = Stream::of(nullptr, fake_device(0));
  EXPECT_FALSE(driver::is_capturing(device, legacy));
  EXPECT_FALSE(driver::is_capturing(device, captured));
  driver::GraphCapture capture(captured);
  EXPECT_TRUE(driver::is_capturing(device, legacy));
  EXPECT_TRUE(driver::is_capturing(device, captured));
  capture.end();
}

TEST_F(FakeDriver, a_capture_that_is_left_is_ended) {
  const OwnedStream stream(fake_device(0));
  { const driver::GraphCapture capture(stream); }
  EXPECT_FALSE(driver::is_capturing(driver::open_device(fake_device(0)), stream));
}

TEST_F(FakeDriver, launch_attributes_are_only_those_that_differ_from_the_default) {
  const driver::GpuDevice& device = driver::open_device(fake_device(0));
  const driver::LoadedCode code(device.driver(), {}, "attributes");
  unsigned seen = 99;
  define_fake_kernel("attributes", 4,
                     [&](const FakeLaunch& launch) { seen = launch.config.attribute_count; });
  const driver::ScopedContext current(device);
  const driver::cuda::Function function = code.prepare(device, 0);
  const OwnedStream stream(fake_device(0));
  int parameter = 0;
  struct Row {
    driver::LaunchShape shape;
    unsigned attributes;
  };
  for (const Row& row :
       {Row{{}, 0}, Row{{.cluster = {2, 1, 1}}, 1}, Row{{.is_programmatic = true}, 1},
        Row{{.cluster = {1, 2, 1}, .is_programmatic = true}, 2}}) {
    EXPECT_EQ(driver::launch(device.api(), function, row.shape, stream, &parameter),
              driver::cuda::Result::success);
    EXPECT_EQ(seen, row.attributes) << to_string(row.shape);
  }
}

}  // namespace
}  // namespace gemmery::tests
