// SPDX-License-Identifier: Apache-2.0
// Code in a driver: loaded once, unloaded if it cannot be needed any more.
#include "driver/code.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <gemmery/buffer.hpp>

#include <sys/wait.h>

#include <thread>
#include <vector>

#include "driver/graph.hpp"
#include "tests/driver/fake_driver.hpp"
#include "tests/support/error_of.hpp"

namespace gemmery::tests {
namespace {

using driver::LoadedCode;

class CodeInADriver : public testing::Test {
 protected:
  void SetUp() override {
    install_fake_driver();
    (void)driver::open_device(fake_device(0));
    reset_fake_counts();
  }

  // Bytes that no other test loads.
  static std::vector<std::byte> new_code() {
    static unsigned char number = 0;
    return std::vector<std::byte>(16, static_cast<std::byte>(++number));
  }
  static std::shared_ptr<const LoadedCode> load(const std::vector<std::byte>& code,
                                                const std::string& entry = "entry") {
    return LoadedCode::load(install_fake_driver(), code, entry);
  }
};

TEST_F(CodeInADriver, the_same_bytes_are_loaded_once_and_others_apart) {
  const auto code = new_code();
  const auto first = load(code);
  EXPECT_EQ(load(code), first);
  EXPECT_EQ(fake_counts().libraries_loaded, 1);
  EXPECT_NE(load(code, "other"), first);
  EXPECT_NE(load(new_code()), first);
  EXPECT_EQ(fake_counts().libraries_loaded, 3);
}

TEST_F(CodeInADriver, what_was_never_launched_is_unloaded_with_its_last_owner) {
  const auto code = new_code();
  {
    const auto first = load(code);
    const auto second = load(code);
    EXPECT_EQ(fake_counts().libraries_unloaded, 0);
  }
  EXPECT_EQ(fake_counts().libraries_unloaded, 1);
  (void)load(code);
  EXPECT_EQ(fake_counts().libraries_loaded, 2);
}

TEST_F(CodeInADriver, what_was_launched_stays_and_is_found_again) {
  const auto code = new_code();
  load(code)->note_launch();
  for (int round = 0; round < 3; ++round) (void)load(code);
  EXPECT_EQ(fake_counts().libraries_loaded, 1);
  EXPECT_EQ(fake_counts().libraries_unloaded, 0);
}

TEST_F(CodeInADriver, unloading_leaves_the_capture_of_another_stream_alone) {
  auto code = load(new_code());
  const OwnedStream captured(fake_device(0));
  driver::GraphCapture capture(captured);
  code.reset();
  EXPECT_NO_THROW(capture.end());
  EXPECT_EQ(fake_counts().calls_refused_in_capture, 0);
  EXPECT_EQ(fake_counts().libraries_unloaded, 1);
}

TEST_F(CodeInADriver, a_forked_child_unloads_nothing) {
  auto code = load(new_code());
  const pid_t child = fork();
  if (child == 0) {
    code.reset();
    _exit(fake_counts().libraries_unloaded);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(CodeInADriver, an_entry_that_is_not_there_leaves_nothing_loaded) {
  fail_next("cuLibraryGetKernel", driver::cuda::Result::not_found);
  EXPECT_THROW((void)load(new_code()), Error);
  EXPECT_EQ(fake_counts().libraries_loaded, 1);
  EXPECT_EQ(fake_counts().libraries_unloaded, 1);
}

TEST_F(CodeInADriver, twenty_four_threads_load_launch_and_let_go) {
  const std::vector<std::vector<std::byte>> codes{new_code(), new_code(), new_code()};
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 24; ++thread) {
      threads.emplace_back([&, thread] {
        for (int round = 0; round < 200; ++round) {
          const auto code = load(codes[static_cast<std::size_t>(round) % codes.size()]);
          if (thread == 0 && round == 100) code->note_launch();
        }
      });
    }
  }
  // All code is unloaded except launched code.
  const FakeCounts counts = fake_counts();
  EXPECT_GE(counts.libraries_loaded - counts.libraries_unloaded, 1);
  EXPECT_LE(counts.libraries_loaded - counts.libraries_unloaded, 2);
}

}  // namespace
}  // namespace gemmery::tests
