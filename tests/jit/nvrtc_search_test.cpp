// SPDX-License-Identifier: Apache-2.0
// The search for NVRTC. Each case runs in a separate process, because the result is kept.
#include "jit/nvrtc.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gemmery/error.hpp>

#include <cstdlib>
#include <functional>
#include <string>

namespace gemmery::jit {
namespace {

// `compiler_status` in a new process with these settings: this program, which an environment
// variable makes print it (see below).
std::string status_with(const std::string& settings) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return "no path of this program";
  const std::string program(path, static_cast<std::size_t>(length));
  const std::string command = "env " + settings + " GEMMERY_TEST_TELL=1 '" + program +
                              "' --gtest_filter=NvrtcSearch.tells_its_status 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  std::string text;
  char part[1024];
  while (pipe != nullptr && fgets(part, sizeof part, pipe) != nullptr) text += part;
  if (pipe != nullptr) pclose(pipe);
  const std::size_t start = text.find("STATUS ");
  return start == std::string::npos ? text : text.substr(start, text.find('\n', start) - start);
}

TEST(NvrtcSearch, tells_its_status) {
  if (std::getenv("GEMMERY_TEST_TELL") == nullptr) return;  // only for the other tests
  const CompilerStatus status = compiler_status();
  std::printf("STATUS %s\n", status.found ? ("found " + status.path + " " + status.version).c_str()
                                          : status.searched.c_str());
}

TEST(NvrtcSearch, a_relative_path_is_refused_by_the_name_of_its_variable) {
  const std::string status = status_with("GEMMERY_NVRTC_LIBRARY=libnvrtc.so.13");
  EXPECT_EQ(status.find("found"), std::string::npos) << status;
  EXPECT_NE(status.find("GEMMERY_NVRTC_LIBRARY"), std::string::npos) << status;
}

TEST(NvrtcSearch, a_path_that_is_not_there_is_named_and_nothing_else_is_tried) {
  const std::string status = status_with("GEMMERY_NVRTC_LIBRARY=/nowhere/libnvrtc.so.13");
  EXPECT_NE(status.find("/nowhere/libnvrtc.so.13"), std::string::npos) << status;
  EXPECT_EQ(status.find("found "), std::string::npos) << status;
}

TEST(NvrtcSearch, another_library_is_refused_as_too_old) {
  const std::string status = status_with("GEMMERY_NVRTC_LIBRARY=/lib/x86_64-linux-gnu/libc.so.6");
  EXPECT_EQ(status.find("found "), std::string::npos) << status;
}

TEST(NvrtcSearch, a_hidden_toolkit_is_not_found) {
  const std::string status = status_with("-u GEMMERY_NVRTC_LIBRARY GEMMERY_HIDE_CUDA=1");
  EXPECT_EQ(status.find("found "), std::string::npos) << status;
  EXPECT_NE(status.find("GEMMERY_HIDE_CUDA"), std::string::npos) << status;
}

TEST(NvrtcSearch, the_named_library_is_used_even_where_the_toolkit_is_hidden) {
  const CompilerStatus here = compiler_status();
  if (!here.found) GTEST_SKIP() << here.searched;
  EXPECT_EQ(here.path.front(), '/');
  const std::string status = status_with("GEMMERY_HIDE_CUDA=1 GEMMERY_NVRTC_LIBRARY=" + here.path);
  EXPECT_NE(status.find("found " + here.path), std::string::npos) << status;
}

TEST(NvrtcSearch, a_toolkit_folder_is_used_and_relative_ones_are_passed_over) {
  const CompilerStatus here = compiler_status();
  if (!here.found) GTEST_SKIP() << here.searched;
  EXPECT_NE(status_with("CUDA_HOME=relative/cuda").find("found "), std::string::npos);
  EXPECT_NE(status_with("CUDA_HOME=/nowhere").find("found "), std::string::npos);
}

}  // namespace
}  // namespace gemmery::jit
