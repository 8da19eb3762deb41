// SPDX-License-Identifier: Apache-2.0
// Ends of processes (RELIABILITY F44, F50): after a first compilation in another thread, while
// NVRTC is opened, during compilations, including the first, and with objects that are destroyed
// last. Each case is a separate process.
#include <gtest/gtest.h>
#include <unistd.h>
#include <gemmery/error.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "driver/code.hpp"
#include "driver/driver.hpp"
#include "jit/build.hpp"
#include "jit/compiler_choice.hpp"
#include "jit/nvrtc.hpp"
#include "platform/process.hpp"
#include "tests/driver/fake_driver.hpp"
#include "tests/support/no_disk_cache.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/sanitizers.hpp"

namespace gemmery::tests {
namespace {

constexpr const char* role_variable = "GEMMERY_TEST_ENDING";
constexpr const char* delay_variable = "GEMMERY_TEST_DELAY_MS";

int count(int usual, int soak) { return std::getenv("GEMMERY_SOAK") != nullptr ? soak : usual; }

// So long that a process can end during the compilation, but shorter than the wait at its end.
constexpr int lines = is_sanitized ? 20 : 200;

jit::CompileRequest request_of(int number) {
  std::string body;
  for (int line = 0; line < lines; ++line) {
    body += "  out[" + std::to_string(line) + " + threadIdx.x] = sqrtf(out[threadIdx.x * " +
            std::to_string(line + number) + "]);\n";
  }
  return {.source = "extern \"C\" __global__ void entry(float* out) {\n" + body + "}\n",
          .entry = "entry",
          .target = {90, 0},
          .extra_options = {}};
}

// --- what the processes do ----------------------------------------------------------------------

void compile_in_a_thread() {
  std::thread([] { (void)jit::build(request_of(0)); }).join();
}

// Compiles until a compilation is refused.
void compile_for_ever(int first_number) {
  try {
    for (int number = first_number;; number += 100) (void)jit::build(request_of(number));
  } catch (const Error&) {
  }
}

void wait_as_asked() {
  const char* const delay = std::getenv(delay_variable);
  std::this_thread::sleep_for(std::chrono::milliseconds(delay ? std::atoi(delay) : 0));
}

void leave_threads_that_compile() {
  for (int thread = 0; thread < 3; ++thread) std::thread(compile_for_ever, thread).detach();
  wait_as_asked();
}

// The loader maps NVRTC before it runs its initialisers, which takes some tens of milliseconds.
bool is_nvrtc_in_memory() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/libnvrtc.so.") != std::string::npos) return true;
  }
  return false;
}

void leave_a_thread_that_opens_nvrtc() {
  static std::atomic<bool> has_ended = false;
  std::thread([] {
    compile_for_ever(0);
    has_ended = true;
  }).detach();
  while (!is_nvrtc_in_memory() && !has_ended) std::this_thread::yield();
  wait_as_asked();
}

// Created before code is loaded, and therefore destroyed after everything that the library
// registers for the end. The second object is destroyed first.
struct LastWord {
  ~LastWord() {
    if (is_wanted && fake_counts().libraries_unloaded != 0) _exit(9);
  }
  bool is_wanted = false;
};
LastWord last_word;
std::shared_ptr<const driver::LoadedCode> kept_code;

void keep_code_to_the_end() {
  const driver::Driver& fake = install_fake_driver();
  (void)driver::open_device(fake_device(0));
  reset_fake_counts();
  last_word.is_wanted = true;
  kept_code = driver::LoadedCode::load(fake, std::vector<std::byte>(16), "entry");
}

TEST(OneProcess, does_its_part_and_ends) {
  const char* const role = std::getenv(role_variable);
  if (role == nullptr) return;
  if (role == std::string("thread")) compile_in_a_thread();
  if (role == std::string("opening")) leave_a_thread_that_opens_nvrtc();
  if (role == std::string("in flight")) leave_threads_that_compile();
  if (role == std::string("kept")) keep_code_to_the_end();
}

// --- how they end -------------------------------------------------------------------------------

class ProcessEnd : public testing::Test {
 protected:
  void SetUp() override { program_ = std::filesystem::read_symlink("/proc/self/exe"); }

  void need_nvrtc() {
    const jit::CompilerStatus status = jit::compiler_status();
    if (!status.found) GTEST_SKIP() << status.searched;
  }

  void expect_good_end(const std::string& role, int delay_ms = 0) const {
    platform::ProcessRequest request{
        .words = {program_, "--gtest_filter=OneProcess.does_its_part_and_ends"},
        .environment = {std::string(role_variable) + "=" + role,
                        delay_variable + ("=" + std::to_string(delay_ms))},
        .folder = "/"};
    for (char** variable = environ; *variable != nullptr; ++variable) {
      if (!std::string_view(*variable).starts_with("GTEST_"))
        request.environment.emplace_back(*variable);
    }
    const platform::ProcessResult result = platform::run_process(request);
    EXPECT_TRUE(result.is_success())
        << role << " after " << delay_ms
        << " ms: " << (result.end == platform::ProcessResult::End::killed ? "signal " : "code ")
        << result.code << "\n"
        << result.output;
  }

 private:
  std::string program_;
};

TEST_F(ProcessEnd, is_good_after_a_first_compilation_in_another_thread) {
  need_nvrtc();
  if (IsSkipped()) return;
  for (int process = 0; process < count(3, 100); ++process) expect_good_end("thread");
}

TEST_F(ProcessEnd, is_good_while_another_thread_opens_the_compiler) {
  need_nvrtc();
  if (IsSkipped()) return;
  std::mt19937 random(random_seed());
  std::uniform_int_distribution<int> delay_ms(0, 40);
  for (int process = 0; process < count(10, 300); ++process)
    expect_good_end("opening", delay_ms(random));
}

TEST_F(ProcessEnd, is_good_while_threads_go_on_compiling) {
  need_nvrtc();
  if (IsSkipped()) return;
  std::mt19937 random(random_seed());
  std::uniform_int_distribution<int> delay_ms(0, 1000);
  for (int process = 0; process < count(20, 300); ++process)
    expect_good_end("in flight", delay_ms(random));
}

TEST_F(ProcessEnd, asks_nothing_of_the_driver_for_code_that_is_kept_to_the_last) {
  for (int process = 0; process < count(5, 1000); ++process) expect_good_end("kept");
}

}  // namespace
}  // namespace gemmery::tests
