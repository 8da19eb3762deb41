// SPDX-License-Identifier: Apache-2.0
// Kernels of a few lines of PTX through the driver: parameters, captures, limits, and faults.
#include <gtest/gtest.h>
#include <gemmery/buffer.hpp>
#include <gemmery/log.hpp>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "driver/code.hpp"
#include "driver/driver.hpp"
#include "driver/graph.hpp"
#include "emulator/device.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::tests {
namespace {

namespace cuda = driver::cuda;

const Device h200 = Device::emulated(1);

// numbers[i] += addend for i < count; `careless` ignores `count`.
constexpr const char* ptx = R"(.version 8.4
.target sm_80
.address_size 64
.visible .entry add(.param .u64 add_param_0, .param .u32 add_param_1, .param .u32 add_param_2)
{
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [add_param_0];
  ld.param.u32 %r1, [add_param_1];
  ld.param.u32 %r2, [add_param_2];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r6, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r6, %r2;
  @%p1 bra $done;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r6, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r7, [%rd4];
  add.s32 %r8, %r7, %r1;
  st.global.u32 [%rd4], %r8;
$done:
  ret;
}
.visible .entry careless(.param .u64 careless_param_0)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [careless_param_0];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r1;
  ret;
}
)";

class EmulatedLaunch : public testing::Test {
 protected:
  cuda::Function function(const char* entry, int shared_bytes = 0) {
    const driver::LoadedCode code(driver_, std::as_bytes(std::span(text_)), entry);
    return code.prepare(device_, shared_bytes);
  }

  cuda::Result launch(cuda::Function function, std::array<unsigned, 2> grid_and_block,
                      std::vector<void*> parameters, unsigned shared_bytes = 0) {
    const driver::ScopedContext current(device_);
    const cuda::LaunchConfig config{.grid_x = grid_and_block[0],
                                    .grid_y = 1,
                                    .grid_z = 1,
                                    .block_x = grid_and_block[1],
                                    .block_y = 1,
                                    .block_z = 1,
                                    .shared_bytes = shared_bytes,
                                    .stream = driver::stream_handle(stream_),
                                    .attributes = nullptr,
                                    .attribute_count = 0};
    return device_.api().cuLaunchKernelEx(&config, function, parameters.data(), nullptr);
  }

  std::vector<std::uint32_t> download(const Buffer& buffer) {
    std::vector<std::uint32_t> numbers(buffer.bytes() / 4);
    copy(numbers.data(), Device::cpu(), buffer.data(), h200, buffer.bytes(), stream_);
    return numbers;
  }

  std::vector<std::uint32_t> random_numbers(std::size_t count) {
    std::vector<std::uint32_t> numbers(count);
    for (std::uint32_t& number : numbers) number = static_cast<std::uint32_t>(generator_());
    return numbers;
  }

  void upload(const Buffer& buffer, const std::vector<std::uint32_t>& numbers) {
    copy(buffer.data(), h200, numbers.data(), Device::cpu(), 4 * numbers.size(), stream_);
  }

  std::string words(cuda::Result result) { return driver::describe(device_.api(), result); }

  const driver::GpuDevice& device_ = driver::open_device(h200);
  const driver::Driver& driver_ = device_.driver();
  const OwnedStream stream_{h200};
  const std::string text_{ptx};
  std::mt19937_64 generator_{random_seed()};
};

TEST_F(EmulatedLaunch, a_kernel_computes_with_its_parameters) {
  const Buffer buffer(4 * 1000, stream_);
  const auto numbers = random_numbers(1000);
  upload(buffer, numbers);
  void* address = buffer.data();
  std::uint32_t addend = 17, count = 900;
  ASSERT_EQ(launch(function("add"), {8, 128}, {&address, &addend, &count}), cuda::Result::success);
  const auto result = download(buffer);
  for (std::size_t index = 0; index < 1000; ++index)
    ASSERT_EQ(result[index], numbers[index] + (index < 900 ? 17 : 0)) << index;
}

TEST_F(EmulatedLaunch, a_captured_launch_keeps_its_parameters) {
  const Buffer buffer(4 * 64, stream_);
  const auto numbers = random_numbers(64);
  upload(buffer, numbers);
  const cuda::Function add = function("add");
  void* address = buffer.data();
  std::uint32_t addend = 3, count = 64;
  driver::GraphCapture capture(stream_);
  ASSERT_EQ(launch(add, {1, 64}, {&address, &addend, &count}), cuda::Result::success);
  addend = 1000;
  const driver::Graph graph = capture.end();
  EXPECT_EQ(download(buffer), numbers);
  graph.launch(stream_);
  graph.launch(stream_);
  EXPECT_EQ(download(buffer)[5], numbers[5] + 6);
}

TEST_F(EmulatedLaunch, a_fault_is_told_in_full_and_leaves_the_device_usable) {
  std::string logged;
  set_log_sink([&](LogLevel, std::string_view message) { logged += message; }, LogLevel::error);
  const Buffer small(4 * 40, stream_);
  void* address = small.data();
  const cuda::Result result = launch(function("careless"), {1, 64}, {&address});
  set_log_sink({});
  EXPECT_EQ(result, cuda::Result::launch_failed);
  const std::string text = words(result);
  for (const char* const part :
       {"CUDA_ERROR_LAUNCH_FAILED", "out of bounds", "kernel careless", "warp 1", "lane 8",
        "st.global.u32", "schedule of seed 1", "emulated:h200"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  EXPECT_NE(logged.find("out of bounds"), std::string::npos) << logged;
  EXPECT_EQ(launch(function("careless"), {1, 40}, {&address}), cuda::Result::success);
  EXPECT_EQ(download(small)[39], 39U);
}

TEST_F(EmulatedLaunch, a_fault_in_a_graph_is_told_by_its_launch) {
  const Buffer small(4 * 40, stream_);
  void* address = small.data();
  const cuda::Function careless = function("careless");
  driver::GraphCapture capture(stream_);
  ASSERT_EQ(launch(careless, {1, 64}, {&address}), cuda::Result::success);
  const driver::Graph graph = capture.end();
  const Error error = error_of([&] { graph.launch(stream_); });
  EXPECT_EQ(error.kind(), ErrorKind::launch);
  EXPECT_NE(std::string(error.what()).find("kernel careless"), std::string::npos) << error.what();
}

TEST_F(EmulatedLaunch, shapes_that_a_device_refuses_are_refused) {
  const Buffer buffer(4 * 64, stream_);
  void* address = buffer.data();
  const cuda::Function careless = function("careless");
  EXPECT_EQ(launch(careless, {1, 1025}, {&address}), cuda::Result::invalid_value);
  EXPECT_EQ(launch(careless, {0, 32}, {&address}), cuda::Result::invalid_value);
  const cuda::Result too_much = launch(careless, {1, 32}, {&address}, 49 * 1024);
  EXPECT_EQ(too_much, cuda::Result::invalid_value);
  EXPECT_NE(words(too_much).find("max_dynamic_shared_bytes"), std::string::npos) << words(too_much);
  EXPECT_EQ(launch(function("careless", 100 * 1024), {1, 32}, {&address}, 100 * 1024),
            cuda::Result::success);
  const cuda::Result none = launch(careless, {1, 32}, {nullptr});
  EXPECT_EQ(none, cuda::Result::invalid_value);
  EXPECT_NE(words(none).find("parameter 0"), std::string::npos) << words(none);
}

TEST_F(EmulatedLaunch, code_for_a_later_device_is_refused) {
  std::string later(ptx);
  later.replace(later.find("sm_80"), 5, "sm_90a");
  const driver::GpuDevice& ampere = driver::open_device(*parse_device("emulated:a100"));
  const driver::LoadedCode code(driver_, std::as_bytes(std::span(later)), "add");
  const Error error = error_of([&] { code.prepare(ampere, 0); });
  EXPECT_NE(std::string(error.what()).find("sm_90a"), std::string::npos) << error.what();
  EXPECT_NO_THROW(code.prepare(device_, 0));
}

TEST_F(EmulatedLaunch, attributes_are_told) {
  const driver::ScopedContext current(device_);
  cuda::Library library = nullptr;
  cuda::Kernel kernel = nullptr;
  const cuda::DeviceOrdinal ordinal = device_.ordinal();
  const driver::DriverApi& api = device_.api();
  ASSERT_EQ(api.cuLibraryLoadData(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0),
            cuda::Result::success);
  ASSERT_EQ(api.cuLibraryGetKernel(&kernel, library, "add"), cuda::Result::success);
  int value = 0;
  using Attribute = cuda::FunctionAttribute;
  EXPECT_EQ(api.cuKernelGetAttribute(&value, Attribute::registers, kernel, ordinal),
            cuda::Result::success);
  EXPECT_GT(value, 0);
  EXPECT_EQ(api.cuKernelGetAttribute(&value, Attribute::max_dynamic_shared_bytes, kernel, ordinal),
            cuda::Result::success);
  EXPECT_EQ(value, 48 * 1024);
  EXPECT_EQ(api.cuKernelSetAttribute(Attribute::max_dynamic_shared_bytes, 1 << 20, kernel, ordinal),
            cuda::Result::invalid_value);
  EXPECT_EQ(api.cuLibraryUnload(library), cuda::Result::success);
}

}  // namespace
}  // namespace gemmery::tests
