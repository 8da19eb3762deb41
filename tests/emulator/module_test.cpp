// SPDX-License-Identifier: Apache-2.0
// A user's CUDA C++ and PTX by the public header.
#include <gtest/gtest.h>
#include <unistd.h>
#include <gemmery/gemmery.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "jit/nvrtc.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::tests {
namespace {

const Device h200 = Device::emulated(1);

// Line 6 of the source stores one element too many.
constexpr const char* source = R"(
extern "C" __global__ void scale(float* numbers, unsigned count, float factor) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > count) return;
  const float scaled = i < count ? numbers[i] * factor : 0.0f;
  numbers[i] = scaled;
}
extern "C" __global__ void careful(float* numbers, unsigned count, float factor) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) numbers[i] *= factor;
}
)";

class Module : public testing::Test {
 protected:
  void SetUp() override {
    const jit::CompilerStatus compiler = jit::compiler_status();
    if (!compiler.found) GTEST_SKIP() << compiler.searched;
  }

  const OwnedStream stream_{h200};
};

TEST_F(Module, a_kernel_runs_with_plain_values) {
  const EmulatedModule module = EmulatedModule::compile(source, h200);
  EXPECT_EQ(module.entries().size(), 2U);
  std::vector<float> numbers(1000);
  std::mt19937_64 generator(random_seed());
  for (float& number : numbers) number = static_cast<float>(generator() % 1000);
  const Buffer buffer(4 * numbers.size(), stream_);
  copy(buffer.data(), h200, numbers.data(), Device::cpu(), buffer.bytes(), stream_);
  const EmulatorStatistics before = emulator_statistics(h200);
  const EmulatedRun run = module.launch("careful", {.grid = {8, 1, 1}, .block = {128, 1, 1}},
                                        buffer.data(), 1000U, 0.5F);
  EXPECT_GT(run.lane_instructions, 1000 * 5U);
  EXPECT_EQ(emulator_statistics(h200).launches, before.launches + 1);
  std::vector<float> result(numbers.size());
  copy(result.data(), Device::cpu(), buffer.data(), h200, buffer.bytes(), stream_);
  for (std::size_t index = 0; index < numbers.size(); ++index)
    ASSERT_EQ(result[index], numbers[index] * 0.5F) << index;
}

TEST_F(Module, a_fault_is_an_exception_with_the_line_of_the_source) {
  const EmulatedModule module = EmulatedModule::compile(source, h200);
  const Buffer buffer(4 * 1000, stream_);
  fill(buffer.data(), 0, buffer.bytes(), stream_);
  try {
    module.launch("scale", {.grid = {8, 1, 1}, .block = {128, 1, 1}}, buffer.data(), 1000U, 2.0F);
    FAIL() << "no fault";
  } catch (const EmulatorFault& error) {
    const EmulatorFaultDetails& fault = error.fault();
    EXPECT_EQ(error.kind(), ErrorKind::launch);
    EXPECT_EQ(fault.kind, "out of bounds");
    EXPECT_EQ(fault.kernel, "scale");
    EXPECT_EQ(fault.block[0], 7U);
    EXPECT_EQ(fault.warp, 3);
    EXPECT_EQ(fault.lane, 8);
    EXPECT_EQ(fault.source_line, 6U);
    EXPECT_NE(fault.source_file.find("kernel.cu"), std::string::npos);
    EXPECT_GT(fault.ptx_line, 0U);
    EXPECT_NE(std::string(error.what()).find(fault.report), std::string::npos);
  }
}

TEST_F(Module, parameters_must_be_the_kernels_own) {
  const EmulatedModule module = EmulatedModule::compile(source, h200);
  const EmulatedLaunch shape{.block = {32, 1, 1}};
  const float* const none = nullptr;
  const Error few = error_of([&] { module.launch("careful", shape, none, 1U); });
  EXPECT_EQ(few.operand(), "parameters of careful");
  EXPECT_EQ(few.expected(), "3");
  const Error wide = error_of([&] { module.launch("careful", shape, none, 1U, 0.5); });
  EXPECT_EQ(wide.expected(), "4 bytes for number 2");
  EXPECT_EQ(wide.got(), "8");
  const std::vector<EmulatedParameter> hollow{{&none, sizeof none}, {nullptr, 4}, {nullptr, 4}};
  const Error null = error_of(
      [&] { module.launch("careful", shape, std::span<const EmulatedParameter>(hollow)); });
  EXPECT_EQ(null.expected(), "the bytes of number 1");
  EXPECT_EQ(error_of([&] { module.launch("nothing", shape); }).kind(), ErrorKind::invalid_argument);
}

TEST_F(Module, a_launch_ends_when_its_scope_is_stopped_and_the_device_serves_on) {
  const EmulatedModule module = EmulatedModule::compile(R"(
extern "C" __global__ void endless(volatile unsigned* number) { while (*number == 0) {} }
extern "C" __global__ void ordered(unsigned* number) { while (atomicAdd(number, 0) == 0) {} }
extern "C" __global__ void brief(unsigned* number) { *number = 1; })",
                                                        h200);
  const Buffer buffer(4, stream_);
  for (const char* const entry : {"endless", "ordered"}) {
    fill(buffer.data(), 0, buffer.bytes(), stream_);
    std::stop_source source_of_stop;
    const EmulatorStopScope scope(source_of_stop.get_token());
    const std::jthread asking([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      source_of_stop.request_stop();
    });
    const auto begin = std::chrono::steady_clock::now();
    const Error error = error_of([&] {
      module.launch(entry, {.grid = {64, 1, 1}, .block = {64, 1, 1}}, buffer.data());
    });
    EXPECT_EQ(error.kind(), ErrorKind::launch);
    EXPECT_EQ(error.operand(), entry);
    EXPECT_EQ(error.got(), "one that was interrupted");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  }
  EXPECT_NO_THROW(module.launch("brief", {}, buffer.data())) << "the scope is over";
}

TEST_F(Module, null_characters_are_refused_where_a_compiler_would_end) {
  const std::string cut("extern \"C\" __global__ void f() {}\0 more", 40);
  const Error of_source = error_of([&] { EmulatedModule::compile(cut, h200); });
  EXPECT_EQ(of_source.operand(), "source");
  EXPECT_EQ(of_source.got(), "one at byte 33");
  const std::vector<std::string> options{std::string("-DX\0Y", 5)};
  EXPECT_EQ(error_of([&] { EmulatedModule::compile(source, h200, options); }).operand(),
            "compiler option");
}

TEST_F(Module, source_that_does_not_compile_is_refused_in_the_compilers_words) {
  const Error error =
      error_of([] { EmulatedModule::compile("__global__ void f() { nonsense; }", h200); });
  EXPECT_EQ(error.kind(), ErrorKind::compile);
  EXPECT_NE(std::string(error.what()).find("nonsense"), std::string::npos) << error.what();
}

TEST_F(Module, another_standard_takes_the_place_of_ours) {
  const std::string text =
      "extern \"C\" __global__ void standard(long* out) { *out = __cplusplus; }";
  const Buffer buffer(sizeof(long), stream_);
  const auto standard_with = [&](std::vector<std::string> options) {
    EmulatedModule::compile(text, h200, std::move(options))
        .launch("standard", {.block = {1, 1, 1}}, buffer.data());
    long standard = 0;
    copy(&standard, Device::cpu(), buffer.data(), h200, sizeof standard, stream_);
    return standard;
  };
  EXPECT_EQ(standard_with({}), 202002L);
  EXPECT_EQ(standard_with({"-std=c++17"}), 201703L);
  EXPECT_EQ(standard_with({"--std=c++14"}), 201402L);
}

TEST_F(Module, headers_of_the_writer_find_what_lies_beside_them) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("gemmery_module_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "parts");
  std::ofstream(folder / "outer.cuh") << "#include \"parts/inner.cuh\"\n";
  const std::string text =
      "#include <outer.cuh>\nextern \"C\" __global__ void give(int* out) { *out = number; }";
  const Buffer buffer(sizeof(int), stream_);
  for (const int number : {1, 2}) {  // the second result must not be a cached first one
    std::ofstream(folder / "parts" / "inner.cuh") << "#include \"number.cuh\"\n";
    std::ofstream(folder / "parts" / "number.cuh") << "constexpr int number = " << number << ";\n";
    EmulatedModule::compile(text, h200, {"-I" + folder.string()})
        .launch("give", {.block = {1, 1, 1}}, buffer.data());
    int got = 0;
    copy(&got, Device::cpu(), buffer.data(), h200, sizeof got, stream_);
    EXPECT_EQ(got, number);
  }
  std::filesystem::remove_all(folder);
}

TEST_F(Module, only_emulated_devices_serve) {
  EXPECT_EQ(error_of([] { EmulatedModule::load("", Device::cpu()); }).operand(), "device");
  EXPECT_EQ(error_of([] { emulator_statistics(Device::cuda(0)); }).operand(), "device");
}

TEST_F(Module, ptx_text_serves_as_well) {
  const EmulatedModule compiled = EmulatedModule::compile(source, h200);
  const EmulatedModule loaded = EmulatedModule::load(compiled.ptx(), h200);
  EXPECT_EQ(loaded.entries(), compiled.entries());
  EXPECT_THROW(EmulatedModule::load(compiled.ptx(), *parse_device("emulated:a100")), Error);
}

TEST_F(Module, tensor_maps_keep_the_manuals_rules) {
  const Buffer buffer(1 << 16, stream_);
  TensorMapView view{.address = buffer.data(),
                     .dtype = DType::float16,
                     .rank = 2,
                     .extents = {64, 64},
                     .byte_strides = {128},
                     .box = {64, 8},
                     .swizzle_bytes = 128};
  EXPECT_NO_THROW(encode_emulated_tensor_map(view));
  view.swizzle_bytes = 48;
  EXPECT_EQ(error_of([&] { encode_emulated_tensor_map(view); }).operand(), "swizzle_bytes");
  view.swizzle_bytes = 64;
  EXPECT_THROW(encode_emulated_tensor_map(view), Error);
  view.swizzle_bytes = 128;
  view.address = nullptr;
  const Error null = error_of([&] { encode_emulated_tensor_map(view); });
  EXPECT_NE(std::string(null.what()).find("not null"), std::string::npos) << null.what();
}

TEST_F(Module, times_are_not_measured_there) {
  const auto kernels =
      get_kernels(parse_problem("gemm 16x16x16 a=f32").problem, find_device_info("h200").value());
  ASSERT_FALSE(kernels.empty());
  const Error error = error_of(
      [&] { measure(parse_problem("gemm 16x16x16 a=f32"), kernels.front(), {.device = h200}); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
}

}  // namespace
}  // namespace gemmery::tests
