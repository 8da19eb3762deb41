// SPDX-License-Identifier: Apache-2.0
// nvcc: the same requests and errors as with NVRTC; a hostile environment has no effect.
#include "jit/nvcc.hpp"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <gemmery/error.hpp>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "jit/build.hpp"
#include "jit/cache_key.hpp"
#include "jit/cancellation.hpp"
#include "jit/nvrtc.hpp"
#include "platform/private_folder.hpp"
#include "tests/support/error_of.hpp"

namespace gemmery::jit {
namespace {

using tests::error_of;

// Sets an environment variable and restores it at the end.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

CompileRequest request_of(std::string source, CodeForm form = CodeForm::cubin) {
  return {.source = std::move(source),
          .entry = "entry",
          .target = {90, 'a'},
          .form = form,
          .extra_options = {}};
}

std::string plain_source() {
  return "// gemm of a test\nextern \"C\" __global__ void entry(float* out) { __shared__ float "
         "tile[64]; tile[threadIdx.x] = out[threadIdx.x]; __syncthreads(); out[threadIdx.x] = "
         "tile[63 - threadIdx.x]; }\n";
}

class NvccCompiler : public testing::Test {
 protected:
  void SetUp() override {
    const CompilerStatus status = nvcc_status();
    if (status.found) return;
    // An nvcc that exists and cannot be used is a failure, not a reason to skip.
    ASSERT_FALSE(std::filesystem::exists("/usr/local/cuda/bin/nvcc") &&
                 std::getenv("GEMMERY_HIDE_CUDA") == nullptr)
        << status.searched;
    GTEST_SKIP() << status.searched;
  }
  const ScopedVariable chosen_{"GEMMERY_COMPILER", "nvcc"};
};

TEST_F(NvccCompiler, makes_a_cubin_with_its_resources) {
  const CompiledCode code = compile(request_of(plain_source()));
  ASSERT_GT(code.cubin.size(), 4U);
  EXPECT_EQ(std::memcmp(code.cubin.data(), "\177ELF", 4), 0);
  EXPECT_EQ(code.usage.static_shared_bytes, 256);
  EXPECT_GT(code.usage.registers, 0);
  EXPECT_GT(code.compile_ms, 0);
}

TEST_F(NvccCompiler, makes_ptx_that_names_no_folder_of_its_own) {
  const CompiledCode code = compile(request_of(plain_source(), CodeForm::ptx));
  EXPECT_NE(code.ptx.find(".target sm_90a"), std::string::npos);
  EXPECT_NE(code.ptx.find("\"kernel.cu\""), std::string::npos) << code.ptx;
  EXPECT_EQ(code.ptx.find("gemmery-nvcc"), std::string::npos);
}

TEST_F(NvccCompiler, finds_the_embedded_headers_and_names_no_folder_of_theirs) {
  const CompileRequest request = request_of(
      "#include <device/ptx/convert.cuh>\nextern \"C\" __global__ void entry(unsigned* out) { "
      "out[0] = 1; }\n",
      CodeForm::ptx);
  const CompiledCode code = compile(request);
  EXPECT_EQ(code.ptx.find("gemmery-nvcc"), std::string::npos) << code.ptx;
  EXPECT_EQ(code.ptx.find("../headers"), std::string::npos) << code.ptx;
}

TEST_F(NvccCompiler, equal_requests_give_equal_bytes_whatever_the_surroundings) {
  const CompileRequest request = request_of(plain_source());
  const CompiledCode usual = compile(request);
  const std::string key = key_of(request).text();
  const platform::PrivateFolder hostile("gemmery-hostile");
  for (const char* const header : {"cuda_runtime.h", "crt/host_config.h"})
    hostile.write(header, "#error this header was not meant\n");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(hostile.path());
  const ScopedVariable prepend("NVCC_PREPEND_FLAGS", "-DHOSTILE -Xptxas -O0");
  const ScopedVariable append("NVCC_APPEND_FLAGS", "--no-such-option");
  const ScopedVariable c_path("CPATH", hostile.path());
  const ScopedVariable cplus_path("CPLUS_INCLUDE_PATH", hostile.path());
  const CompiledCode again = compile(request);
  std::filesystem::current_path(before);
  EXPECT_EQ(again.cubin, usual.cubin);
  EXPECT_EQ(key_of(request).text(), key);
}

TEST_F(NvccCompiler, works_where_names_of_folders_hold_what_shells_read) {
  const platform::PrivateFolder outer("gemmery-odd");
  const std::string odd = outer.path() + "/a folder named a b'c$(x)";
  std::filesystem::create_directory(odd);
  const ScopedVariable temporary("TMPDIR", odd);
  EXPECT_FALSE(compile(request_of(plain_source())).cubin.empty());
  EXPECT_TRUE(std::filesystem::is_empty(odd)) << "nothing is left behind";
}

// RELIABILITY F26: the temporary folder may be mounted noexec. Needs a mount.
TEST_F(NvccCompiler, executes_nothing_that_lies_in_its_folder) {
  const platform::PrivateFolder outer("gemmery-noexec");
  const std::string mounted = outer.path() + "/mounted";
  std::filesystem::create_directory(mounted);
  if (mount("none", mounted.c_str(), "tmpfs", MS_NOEXEC, "size=64m,mode=0700") != 0)
    GTEST_SKIP() << "this process may not mount a file system";
  {
    const ScopedVariable temporary("TMPDIR", mounted);
    EXPECT_FALSE(compile(request_of(plain_source())).cubin.empty());
  }
  umount(mounted.c_str());
}

TEST_F(NvccCompiler, an_error_tells_the_line_the_log_and_where_the_source_is) {
  std::string bad =
      "// gemm of a test\nextern \"C\" __global__ void entry(float* out) { out = 1; }\n";
  const Error error = error_of([&] { (void)compile(request_of(bad)); });
  EXPECT_EQ(error.kind(), ErrorKind::compile);
  EXPECT_NE(error.operand().find("entry for sm_90a (gemm of a test)"), std::string::npos);
  EXPECT_NE(error.got().find("kernel.cu(2): error"), std::string::npos) << error.got();
  EXPECT_NE(error.cause().find("1 error detected"), std::string::npos) << error.cause();
  const std::string path = error.hint().substr(error.hint().find('/'));
  std::ifstream kept(path);
  const std::string text((std::istreambuf_iterator<char>(kept)), std::istreambuf_iterator<char>());
  EXPECT_EQ(text, bad);
  struct stat status {};
  const std::string folder = std::filesystem::path(path).parent_path();
  ASSERT_EQ(::stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  std::filesystem::remove_all(folder);
}

TEST_F(NvccCompiler, warnings_are_errors) {
  const Error error = error_of([&] {
    (void)compile(
        request_of("extern \"C\" __global__ void entry(float* out) { int unused; out[0] = "
                   "1; }\n"));
  });
  EXPECT_EQ(error.expected(), "source without warnings");
}

TEST_F(NvccCompiler, an_unknown_target_is_refused_as_such) {
  CompileRequest request = request_of(plain_source());
  request.target = {62, 0};
  const Error error = error_of([&] { (void)compile(request); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
  EXPECT_EQ(error.operand(), "target");
}

TEST_F(NvccCompiler, its_version_and_not_the_other_compilers_is_in_the_key) {
  const CompileRequest request = request_of(plain_source());
  const std::string key = key_of(request).text();
  EXPECT_NE(key.find("nvcc " + to_string(find_nvcc().version) + " " + find_nvcc().build),
            std::string::npos);
  EXPECT_FALSE(find_nvcc().build.empty());
  if (!compiler_status().found) return;
  const ScopedVariable other("GEMMERY_COMPILER", "nvrtc");
  EXPECT_NE(key_of(request).text(), key);
}

std::string endless_source() {
  // Thousands of instructions that depend on each other keep the optimiser busy for seconds.
  std::string source =
      "extern \"C\" __global__ void entry(float* out) { float x = out[0], y = 1;\n";
  for (int line = 0; line < 20000; ++line)
    source += "x = x * y + " + std::to_string(line) + ".5f; y = y * x - out[" +
              std::to_string(line) + "]; out[" + std::to_string(line) + "] = y;\n";
  return source + "}\n";
}

TEST_F(NvccCompiler, one_that_takes_too_long_is_killed) {
  const ScopedVariable limit("GEMMERY_COMPILE_TIMEOUT", "1");
  const auto start = std::chrono::steady_clock::now();
  const Error error = error_of([&] { (void)compile(request_of(endless_source())); });
  EXPECT_NE(error.expected().find("GEMMERY_COMPILE_TIMEOUT"), std::string::npos) << error.what();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(NvccCompiler, one_that_is_cancelled_ends_soon) {
  std::stop_source source;
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    source.request_stop();
  });
  const ScopedCancellation scope(source.get_token());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW((void)compile(request_of(endless_source())), Cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(NvccSearch, passes_over_relative_folders_and_the_working_directory) {
  const platform::PrivateFolder folder("gemmery-fake");
  const std::string fake = folder.write("nvcc", "#!/bin/sh\ntouch called\n");
  ::chmod(fake.c_str(), 0755);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const ScopedVariable path("PATH", ".::" + std::string(std::getenv("PATH")));
  const ScopedVariable home("CUDA_HOME", ".");
  (void)nvcc_status();
  std::filesystem::current_path(before);
  EXPECT_EQ(folder.read("called"), std::nullopt);
}

TEST(CompilerChoice, an_unknown_compiler_is_refused_by_name) {
  const ScopedVariable variable("GEMMERY_COMPILER", "gcc");
  const Error error = error_of([] { (void)chosen_compiler(); });
  EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
  EXPECT_EQ(error.operand(), "GEMMERY_COMPILER");
}

TEST(CompilerChoice, versions_that_are_listed_are_refused_and_no_others) {
  constexpr BlockedCompiler list[] = {
      {CompilerKind::nvrtc, {12, 8}, {12, 9}, "odd sizes come out wrong"}};
  for (const CompilerVersion version : {CompilerVersion{12, 8}, CompilerVersion{12, 9}}) {
    const Error error = error_of([&] { refuse_blocked(CompilerKind::nvrtc, version, list); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_EQ(error.got(), "odd sizes come out wrong");
    EXPECT_EQ(error.operand(), "nvrtc " + to_string(version));
  }
  EXPECT_NO_THROW(refuse_blocked(CompilerKind::nvcc, {12, 8}, list));
  EXPECT_NO_THROW(refuse_blocked(CompilerKind::nvrtc, {12, 7}, list));
  EXPECT_NO_THROW(refuse_blocked(CompilerKind::nvrtc, {13, 0}, list));
}

TEST(Cancellation, of_one_thread_leaves_the_build_of_another_alone) {
  std::atomic<int> begun = 0;
  const auto compile_slowly = [&](const CompileRequest& request) {
    const int number = ++begun;
    while (number == 1 && !current_cancellation().stop_requested())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (number == 1) throw Cancelled({.kind = ErrorKind::compile, .operand = request.entry});
    CompiledCode code;
    code.log = "second";
    return code;
  };
  const auto key = [](const CompileRequest& request) { return CacheKey{"key\n", request.source}; };
  Builder builder(std::make_unique<NoCache>(),
                  {.key = key, .open = [] {}, .compile = compile_slowly});
  const CompileRequest request = request_of(plain_source());
  std::stop_source source;
  std::jthread impatient([&] {
    const ScopedCancellation scope(source.get_token());
    EXPECT_THROW((void)builder.build(request), Cancelled);
  });
  while (begun == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::jthread patient([&] { EXPECT_EQ(builder.build(request)->log, "second"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  source.request_stop();
}

}  // namespace
}  // namespace gemmery::jit
