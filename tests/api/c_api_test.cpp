// SPDX-License-Identifier: Apache-2.0
// The C API without a device: results, texts, sizes of structs, threads. Runs are tested by
// examples/09_plain_c.c.
#include <gemmery/gemmery.h>

#include <gtest/gtest.h>
#include <gemmery/artifact.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/family.hpp>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "jit/nvrtc.hpp"
#include "platform/private_folder.hpp"

namespace gemmery {
namespace {

TEST(CApi, every_function_takes_null_with_a_refusal_or_in_silence) {
  gemmery_free_bundle(nullptr);
  gemmery_free_launch(nullptr);
  gemmery_free_stream(nullptr);
  gemmery_free_buffer(nullptr);
  EXPECT_EQ(gemmery_count_kernels(nullptr), 0U);
  EXPECT_EQ(gemmery_stream_handle(nullptr), nullptr);
  EXPECT_EQ(gemmery_buffer_data(nullptr), nullptr);
  const gemmery_device cpu{GEMMERY_CPU, 0};
  gemmery_bundle* bundle = nullptr;
  const gemmery_kernel* kernel = nullptr;
  for (const gemmery_result result : {gemmery_load_bundle(nullptr, &bundle),
                                      gemmery_load_bundle("x", nullptr),
                                      gemmery_get_kernel(nullptr, 0, &kernel),
                                      gemmery_get_kernel(nullptr, 0, nullptr),
                                      gemmery_find_kernel(nullptr, "gemm 1x1x1", cpu, &kernel),
                                      gemmery_describe_kernel(nullptr, nullptr),
                                      gemmery_supports(nullptr, nullptr),
                                      gemmery_get_workspace_size(nullptr, nullptr, nullptr),
                                      gemmery_load_kernel(nullptr, cpu),
                                      gemmery_run(nullptr, nullptr, nullptr, nullptr),
                                      gemmery_bind(nullptr, nullptr, nullptr),
                                      gemmery_set_data(nullptr, "A", nullptr),
                                      gemmery_set_scalars(nullptr, 1, 0),
                                      gemmery_put(nullptr, nullptr),
                                      gemmery_make_stream(cpu, nullptr),
                                      gemmery_synchronize(nullptr),
                                      gemmery_make_buffer(1, nullptr, nullptr),
                                      gemmery_copy_in(nullptr, nullptr, 1, nullptr),
                                      gemmery_copy_out(nullptr, nullptr, 1, nullptr),
                                      gemmery_parse_device(nullptr, nullptr),
                                      gemmery_count_devices(nullptr)}) {
    EXPECT_EQ(result, GEMMERY_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(gemmery_last_error(), "NULL"), nullptr) << gemmery_last_error();
  }
}

TEST(CApi, devices_are_read_and_others_refused_by_name) {
  gemmery_device device{};
  ASSERT_EQ(gemmery_parse_device("emulated:h200", &device), GEMMERY_OK);
  EXPECT_EQ(device.type, GEMMERY_EMULATED);
  ASSERT_EQ(gemmery_parse_device("cuda:3", &device), GEMMERY_OK);
  EXPECT_EQ(device.type, GEMMERY_CUDA);
  EXPECT_EQ(device.index, 3);
  EXPECT_EQ(gemmery_parse_device("abacus", &device), GEMMERY_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(gemmery_last_error(), "abacus"), nullptr);
  int32_t count = -1;
  EXPECT_EQ(gemmery_count_devices(&count), GEMMERY_OK);
  EXPECT_GE(count, 0);
}

TEST(CApi, the_last_error_belongs_to_its_thread) {
  gemmery_device device{};
  ASSERT_EQ(gemmery_parse_device("first", &device), GEMMERY_INVALID_ARGUMENT);
  std::thread([&] {
    EXPECT_STREQ(gemmery_last_error(), "");
    EXPECT_EQ(gemmery_parse_device("second", &device), GEMMERY_INVALID_ARGUMENT);
  }).join();
  EXPECT_NE(std::strstr(gemmery_last_error(), "first"), nullptr);
}

TEST(CApi, results_have_names) {
  EXPECT_STREQ(gemmery_result_name(GEMMERY_IO), "GEMMERY_IO");
  EXPECT_STREQ(gemmery_result_name(static_cast<gemmery_result>(15)), "unknown");
  EXPECT_NE(std::strchr(gemmery_library_version(), '.'), nullptr);
}

class CApiOfAFile : public testing::Test {
 protected:
  void SetUp() override {
    const jit::CompilerStatus compiler = jit::compiler_status();
    if (!compiler.found) GTEST_SKIP() << compiler.searched;
    const auto problem = parse_problem("gemm 24x16x8 a=f32").problem;
    const Kernel kernel = get_kernels(problem, find_device_info("h200").value()).at(0);
    const StoredArtifact stored{kernel.compile(Target{90, 0}), {"gemm 24x16x8 a=f32"}};
    const std::string path = folder_.path() + "/kernels";
    save_artifacts(path, std::span(&stored, 1));
    ASSERT_EQ(gemmery_load_bundle(path.c_str(), &bundle_), GEMMERY_OK) << gemmery_last_error();
    ASSERT_EQ(gemmery_get_kernel(bundle_, 0, &kernel_), GEMMERY_OK);
  }
  void TearDown() override { gemmery_free_bundle(bundle_); }

  platform::PrivateFolder folder_{"gemmery-c-api"};
  gemmery_bundle* bundle_ = nullptr;
  const gemmery_kernel* kernel_ = nullptr;
};

TEST_F(CApiOfAFile, kernels_tell_what_they_are) {
  gemmery_kernel_info info = GEMMERY_INIT(gemmery_kernel_info);
  ASSERT_EQ(gemmery_describe_kernel(kernel_, &info), GEMMERY_OK);
  EXPECT_EQ(std::string(info.name).rfind("simt", 0), 0U);
  EXPECT_STREQ(info.provider, "templates");
  EXPECT_STREQ(info.targets, "sm_90");
  EXPECT_STREQ(info.problems, "gemm 24x16x8 a=f32\n");
  EXPECT_GT(info.registers, 0);
  EXPECT_EQ(info.deterministic, 1);
  EXPECT_NE(std::strstr(info.source, "__global__"), nullptr);
}

TEST_F(CApiOfAFile, structs_of_other_sizes_are_served_or_refused) {
  struct Later {
    gemmery_kernel_info known;
    std::size_t unknown;
  } later{GEMMERY_INIT(gemmery_kernel_info), 7};
  later.known.struct_size = sizeof later;
  EXPECT_EQ(gemmery_describe_kernel(kernel_, &later.known), GEMMERY_OK);
  EXPECT_EQ(later.unknown, 7U);
  EXPECT_EQ(later.known.struct_size, sizeof later);

  gemmery_kernel_info shorter{};
  shorter.struct_size = 8;
  EXPECT_EQ(gemmery_describe_kernel(kernel_, &shorter), GEMMERY_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(gemmery_last_error(), "struct_size"), nullptr);

  struct LaterGemm {
    gemmery_gemm known;
    std::size_t unknown;
  } gemm{GEMMERY_INIT(gemmery_gemm), 1};
  gemm.known.struct_size = sizeof gemm;
  EXPECT_EQ(gemmery_supports(kernel_, &gemm.known), GEMMERY_UNSUPPORTED);
  EXPECT_NE(std::strstr(gemmery_last_error(), "later version"), nullptr) << gemmery_last_error();
}

TEST_F(CApiOfAFile, operands_are_checked_by_name) {
  float memory[24 * 16] = {};
  const int64_t a_shape[] = {24, 8}, b_shape[] = {8, 16}, out_shape[] = {24, 16};
  gemmery_tensor a{};
  a.data = memory;
  a.device = {GEMMERY_CPU, 0};
  a.ndim = 2;
  a.dtype_code = 2;
  a.dtype_bits = 32;
  a.dtype_lanes = 1;
  a.shape = a_shape;
  gemmery_tensor b = a, out = a;
  b.shape = b_shape;
  out.shape = out_shape;
  float result[24 * 16];
  out.data = result;
  gemmery_gemm gemm = GEMMERY_INIT(gemmery_gemm);
  gemm.a = &a;
  gemm.b = &b;
  gemm.out = &out;
  gemm.alpha = 1;
  EXPECT_EQ(gemmery_supports(kernel_, &gemm), GEMMERY_UNSUPPORTED);  // on the CPU
  EXPECT_NE(std::strstr(gemmery_last_error(), "device"), nullptr) << gemmery_last_error();

  b.dtype_code = 99;
  EXPECT_NE(gemmery_supports(kernel_, &gemm), GEMMERY_OK);
  EXPECT_NE(std::strstr(gemmery_last_error(), "B,"), nullptr) << gemmery_last_error();
  b.dtype_code = 2;
  b.shape = out_shape;
  EXPECT_EQ(gemmery_supports(kernel_, &gemm), GEMMERY_INVALID_ARGUMENT);
  b.shape = b_shape;
  b.device = {55, 0};
  EXPECT_EQ(gemmery_supports(kernel_, &gemm), GEMMERY_INVALID_ARGUMENT);
  b.device = a.device;
  gemm.math = "guess";
  EXPECT_EQ(gemmery_supports(kernel_, &gemm), GEMMERY_INVALID_ARGUMENT);
  gemm.math = nullptr;
  gemm.b = nullptr;
  EXPECT_EQ(gemmery_run(kernel_, &gemm, nullptr, nullptr), GEMMERY_INVALID_ARGUMENT);
}

TEST_F(CApiOfAFile, operands_may_be_arrays_of_pointers) {
  const void* pointers[3][2] = {};
  const int64_t a_shape[] = {2, 24, 8}, b_shape[] = {2, 8, 16}, out_shape[] = {2, 24, 16};
  gemmery_tensor a{};
  a.data = static_cast<void*>(pointers[0]);
  ASSERT_EQ(gemmery_parse_device("emulated:h200", &a.device), GEMMERY_OK);
  a.ndim = 3;
  a.dtype_code = 2;
  a.dtype_bits = 32;
  a.dtype_lanes = 1;
  a.shape = a_shape;
  gemmery_tensor b = a, out = a;
  b.data = static_cast<void*>(pointers[1]);
  b.shape = b_shape;
  out.data = static_cast<void*>(pointers[2]);
  out.shape = out_shape;
  gemmery_gemm gemm = GEMMERY_INIT(gemmery_gemm);
  gemm.a = &a;
  gemm.b = &b;
  gemm.out = &out;
  gemm.alpha = 1;
  gemm.a_pointers = gemm.b_pointers = gemm.out_pointers = 16;
  EXPECT_EQ(gemmery_supports(kernel_, &gemm), GEMMERY_OK) << gemmery_last_error();
  gemm.b_pointers = 2;
  EXPECT_EQ(gemmery_supports(kernel_, &gemm), GEMMERY_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(gemmery_last_error(), "B, "), nullptr) << gemmery_last_error();
  gemm.b_pointers = 16;
  a.ndim = 2;
  EXPECT_EQ(gemmery_supports(kernel_, &gemm), GEMMERY_INVALID_ARGUMENT);
  a.ndim = 3;
  gemm.struct_size = offsetof(gemmery_gemm, a_pointers);  // compiled before there were pointers
  EXPECT_EQ(gemmery_supports(kernel_, &gemm), GEMMERY_INVALID_ARGUMENT) << "overlapping memory";
}

TEST_F(CApiOfAFile, operands_may_have_scales_zero_points_and_tables) {
  const char* const line = "gemm 24x16x64 a=f32 b=u4:c scale_b=f32[1x32] table_b=nf4";
  const Kernel kernel =
      get_kernels(parse_problem(line).problem, find_device_info("h200").value()).at(0);
  const StoredArtifact stored{kernel.compile(Target{90, 0}), {line}};
  const std::string path = folder_.path() + "/scaled";
  save_artifacts(path, std::span(&stored, 1));
  gemmery_bundle* bundle = nullptr;
  const gemmery_kernel* scaled = nullptr;
  ASSERT_EQ(gemmery_load_bundle(path.c_str(), &bundle), GEMMERY_OK) << gemmery_last_error();
  ASSERT_EQ(gemmery_get_kernel(bundle, 0, &scaled), GEMMERY_OK);

  alignas(16) float memory[4][24 * 64] = {};
  const int64_t a_shape[] = {24, 64}, b_shape[] = {64, 16}, out_shape[] = {24, 16};
  const int64_t b_strides[] = {1, 64}, scale_shape[] = {2, 16};
  gemmery_tensor a{};
  a.data = memory[0];
  ASSERT_EQ(gemmery_parse_device("emulated:h200", &a.device), GEMMERY_OK);
  a.ndim = 2;
  a.dtype_code = 2;
  a.dtype_bits = 32;
  a.dtype_lanes = 1;
  a.shape = a_shape;
  gemmery_tensor b = a, out = a;
  b.data = memory[1];
  b.dtype_code = 1;
  b.dtype_bits = 4;
  b.shape = b_shape;
  b.strides = b_strides;
  out.data = memory[2];
  out.shape = out_shape;
  gemmery_companion scale{};
  scale.values = a;
  scale.values.data = memory[3];
  scale.values.shape = scale_shape;
  scale.block_rows = 1;
  scale.block_k = 32;
  gemmery_scaling scaling = GEMMERY_INIT(gemmery_scaling);
  scaling.scales = &scale;
  scaling.scale_count = 1;
  scaling.table = code_table::nf4.values.data();
  gemmery_gemm gemm = GEMMERY_INIT(gemmery_gemm);
  gemm.a = &a;
  gemm.b = &b;
  gemm.out = &out;
  gemm.alpha = 1;
  gemm.b_scaling = &scaling;
  EXPECT_EQ(gemmery_supports(scaled, &gemm), GEMMERY_OK) << gemmery_last_error();
  scaling.table = nullptr;
  EXPECT_EQ(gemmery_supports(scaled, &gemm), GEMMERY_UNSUPPORTED);
  EXPECT_NE(std::strstr(gemmery_last_error(), "table"), nullptr) << gemmery_last_error();
  scaling.table = code_table::nf4.values.data();
  scaling.zero_point = &scale;
  EXPECT_EQ(gemmery_supports(scaled, &gemm), GEMMERY_UNSUPPORTED);
  scaling.zero_point = nullptr;
  scaling.scale_count = 3;
  EXPECT_EQ(gemmery_supports(scaled, &gemm), GEMMERY_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(gemmery_last_error(), "scale_count"), nullptr) << gemmery_last_error();
  gemmery_free_bundle(bundle);
}

TEST_F(CApiOfAFile, a_problem_that_no_kernel_serves_is_told_with_each_reason) {
  const gemmery_kernel* found = nullptr;
  gemmery_device h200{};
  ASSERT_EQ(gemmery_parse_device("emulated:h200", &h200), GEMMERY_OK);
  EXPECT_EQ(gemmery_find_kernel(bundle_, "gemm 24x16x8 a=f32", h200, &found), GEMMERY_OK);
  EXPECT_EQ(found, kernel_);
  EXPECT_EQ(gemmery_find_kernel(bundle_, "gemm 24x16x8 a=f64", h200, &found), GEMMERY_UNSUPPORTED);
  EXPECT_EQ(found, nullptr);
  EXPECT_NE(std::strstr(gemmery_last_error(), "simt"), nullptr) << gemmery_last_error();
  EXPECT_EQ(gemmery_find_kernel(bundle_, "gemm 24x", h200, &found), GEMMERY_INVALID_ARGUMENT);
  EXPECT_EQ(gemmery_get_kernel(bundle_, 1, &found), GEMMERY_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace gemmery
