// SPDX-License-Identifier: Apache-2.0
// A second process finds the code that the first one compiled, quickly and without the compiler,
// and neither of them uses files of its working directory (RELIABILITY S9 to S11).
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "jit/build.hpp"
#include "jit/cache_entry.hpp"
#include "jit/nvrtc.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::jit {
namespace {

CompileRequest request_of(int number) {
  return {.source =
              "extern \"C\" __global__ void entry(float* out) {\n  for (int i = 0; i < 64; ++i) "
              "out[i * blockDim.x + threadIdx.x] *= " +
              std::to_string(number) + ".5f + i;\n}\n",
          .entry = "entry",
          .target = {90, 'a'},
          .extra_options = {}};
}

// Run by the other tests of this file: builds a kernel in one process and prints the time.
TEST(OneProcess, builds_and_tells) {
  const char* const number = std::getenv("GEMMERY_TEST_BUILD");
  if (number == nullptr) return;
  const auto start = std::chrono::steady_clock::now();
  const auto code = build(request_of(std::atoi(number)));
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  const std::string bytes(reinterpret_cast<const char*>(code->cubin.data()), code->cubin.size());
  std::printf("BUILT %f %f %s\n", elapsed.count(), code->compile_ms, digest_of(bytes).c_str());
}

struct Built {
  double call_ms = -1;
  double compile_ms = -1;
  std::string digest;
};

class WarmStart : public testing::Test {
 protected:
  void SetUp() override {
    const CompilerStatus status = compiler_status();
    if (!status.found) GTEST_SKIP() << status.searched;
    program_ = std::filesystem::read_symlink("/proc/self/exe");
  }

  // Builds the kernel of this number in a new process; `before` precedes its command line.
  Built build_in_process(int number, const std::string& before = "",
                         const std::string& variables = "") const {
    const std::string command =
        before + " env -u GTEST_OUTPUT GEMMERY_CACHE_MAX_BYTES=1000000000 GEMMERY_CACHE_DIR='" +
        (folder_ / "cache") + "' GEMMERY_TEST_BUILD=" + std::to_string(number) + " " + variables +
        " '" + program_ + "' --gtest_filter=OneProcess.builds_and_tells 2>&1";
    FILE* const pipe = popen(command.c_str(), "r");
    std::string text;
    char part[1024];
    while (pipe != nullptr && fgets(part, sizeof part, pipe) != nullptr) text += part;
    if (pipe != nullptr) pclose(pipe);
    Built built;
    const std::size_t found = text.find("BUILT ");
    EXPECT_NE(found, std::string::npos) << text;
    if (found == std::string::npos) return built;
    std::istringstream words(text.substr(found + 6));
    words >> built.call_ms >> built.compile_ms >> built.digest;
    return built;
  }

  bool has_strace() const { return std::system("strace -o /dev/null true 2> /dev/null") == 0; }

  static std::string read_text(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  tests::TemporaryFolder folder_;
  std::string program_;
};

TEST_F(WarmStart, every_later_process_hits_at_once) {
  const int processes = std::getenv("GEMMERY_SOAK") != nullptr ? 200 : 20;
  const Built cold = build_in_process(1);
  EXPECT_GT(cold.compile_ms, 0);
  std::vector<double> times;
  for (int process = 0; process < processes; ++process) {
    const Built warm = build_in_process(1);
    EXPECT_EQ(warm.compile_ms, 0) << "not found";
    EXPECT_EQ(warm.digest, cold.digest);
    times.push_back(warm.call_ms);
  }
  std::ranges::sort(times);
  const double median = times[times.size() / 2];
  const double p95 = times[times.size() * 95 / 100];
  std::printf("cold %.1f ms; found in %.2f ms (median), %.2f ms (p95) of %d processes\n",
              cold.call_ms, median, p95, processes);
  if (tests::is_sanitized) return;
  EXPECT_LE(median, 5);
  EXPECT_LE(p95, 15);
}

TEST_F(WarmStart, the_compiler_is_not_opened_for_what_is_found) {
  if (!has_strace()) GTEST_SKIP() << "strace is not here or may not trace";
  const std::string trace = folder_ / "trace";
  const std::string strace = "strace -f -e trace=execve,mmap,openat -o '" + trace + "'";
  EXPECT_GT(build_in_process(2, strace).compile_ms, 0);
  const std::string mapping = "libnvrtc-builtins";
  EXPECT_NE(read_text(trace).find(mapping), std::string::npos);
  EXPECT_EQ(build_in_process(2, strace).compile_ms, 0);
  // The compiler's file is read for its build id, at most twice if the loader is asked whether it
  // is loaded; it is not mapped.
  std::istringstream lines(read_text(trace));
  int opens = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool is_opened =
        line.find("libnvrtc.so") != std::string::npos && line.find(" = -1") == std::string::npos;
    opens += is_opened ? 1 : 0;
  }
  std::istringstream again(read_text(trace));
  for (std::string line, last; std::getline(again, line); last = line) {
    const bool was_opened =
        last.find("libnvrtc") != std::string::npos && last.find(" = -1") == std::string::npos;
    EXPECT_FALSE(was_opened && line.find("PROT_EXEC") != std::string::npos) << last << "\n" << line;
  }
  EXPECT_LE(opens, 2);
}

// A folder with files that other systems would use, and variables that other compilers obey.
TEST_F(WarmStart, a_hostile_working_directory_and_environment_change_nothing) {
  if (!has_strace()) GTEST_SKIP() << "strace is not here or may not trace";
  const std::string hostile = folder_ / "hostile";
  std::filesystem::create_directories(hostile + "/cutlass");
  for (const char* const name :
       {"compiled_cache.db", "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libcuda.so.1",
        "cuda_runtime.h", "cutlass/cutlass.h", "sitecustomize.py", "nvcc", "gemmery.so", "cstdint",
        "kernel.cu", ".gemmery"}) {
    std::ofstream(hostile + "/" + name) << "#error hostile\n";
    chmod((hostile + "/" + name).c_str(), 0755);
  }
  const Built honest = build_in_process(3);
  std::filesystem::remove_all(folder_ / "cache");
  const std::string trace = folder_ / "trace";
  const std::string before =
      "cd '" + hostile + "' && strace -f -e trace=execve,openat,open -o '" + trace + "'";
  const std::string variables =
      "PATH=.:\"$PATH\" NVCC_PREPEND_FLAGS=-DHOSTILE NVCC_APPEND_FLAGS=-G CPATH=. "
      "CPLUS_INCLUDE_PATH=. C_INCLUDE_PATH=. CUDA_PATH=.";
  for (const bool is_warm : {false, true}) {
    const Built built = build_in_process(3, before, variables);
    EXPECT_EQ(built.compile_ms == 0, is_warm);
    EXPECT_EQ(built.digest, honest.digest);
    std::istringstream lines(read_text(trace));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_EQ(line.find("\"" + hostile), std::string::npos) << line;
      const bool is_relative = line.find("AT_FDCWD, \"") != std::string::npos &&
                               line.find("AT_FDCWD, \"/") == std::string::npos;
      EXPECT_FALSE(is_relative) << line;
    }
  }
}

TEST_F(WarmStart, without_permission_to_compile_only_what_is_kept_is_served) {
  const Built cold = build_in_process(4);
  EXPECT_EQ(build_in_process(4, "", "GEMMERY_DISABLE_JIT=1").digest, cold.digest);
  const std::string command = "env -u GTEST_OUTPUT GEMMERY_CACHE_DIR='" + (folder_ / "cache") +
                              "' GEMMERY_DISABLE_JIT=1 GEMMERY_TEST_BUILD=5 '" + program_ +
                              "' --gtest_filter=OneProcess.builds_and_tells > '" +
                              (folder_ / "said") + "' 2>&1";
  EXPECT_NE(std::system(command.c_str()), 0);
  EXPECT_NE(read_text(folder_ / "said").find("GEMMERY_DISABLE_JIT"), std::string::npos);
}

}  // namespace
}  // namespace gemmery::jit
