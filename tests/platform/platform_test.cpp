// SPDX-License-Identifier: Apache-2.0
#include <gemmery/error.hpp>
#include <gemmery/log.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "platform/aligned_memory.hpp"
#include "platform/environment.hpp"
#include "platform/host_info.hpp"
#include "platform/library.hpp"
#include "platform/log.hpp"

namespace gemmery::platform {
namespace {

constexpr const char* variable = "GEMMERY_TEST_VARIABLE";

TEST(Environment, unset_and_empty_are_nothing) {
  unsetenv(variable);
  EXPECT_FALSE(read_environment(variable));
  setenv(variable, "", 1);
  EXPECT_FALSE(read_environment(variable));
  EXPECT_FALSE(read_environment_integer(variable, 0, 9));
  EXPECT_FALSE(read_environment_flag(variable));
}

TEST(Environment, garbage_is_refused_naming_the_variable) {
  const auto refuses = [](const char* value, auto read) {
    setenv(variable, value, 1);
    try {
      read();
      return false;
    } catch (const Error& error) {
      return error.operand() == variable && error.got().find(value) != std::string::npos &&
             !error.expected().empty();
    }
  };
  for (const char* const value : {"x", "7x", "-1", "10", "1e3", " 5", "99999999999999999999"}) {
    EXPECT_TRUE(refuses(value, [] { read_environment_integer(variable, 0, 9); })) << value;
  }
  EXPECT_TRUE(refuses("yes", [] { read_environment_flag(variable); }));
  EXPECT_TRUE(refuses("lib/libnvrtc.so", [] { read_environment_path(variable); }));
  setenv(variable, "7", 1);
  EXPECT_EQ(read_environment_integer(variable, 0, 9), 7);
  setenv(variable, "/a b/c", 1);
  EXPECT_EQ(read_environment_path(variable), "/a b/c");
}

TEST(SharedLibrary, opens_by_soname_and_tells_the_absolute_path) {
  const std::array<std::string, 2> candidates{"libdoes-not-exist.so.9", "libm.so.6"};
  const LibrarySearch search = LibrarySearch::open_first(candidates);
  ASSERT_TRUE(search.library);
  EXPECT_EQ(search.library->path().front(), '/');
  const auto cosine = search.library->find_function<double(double)>("cos");
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(search.library->find("no_such_symbol"), nullptr);
}

TEST(SharedLibrary, a_failed_search_reports_every_place) {
  const std::array<std::string, 3> candidates{"/nowhere/libx.so", "sub/liby.so",
                                              "libz-nowhere.so.1"};
  const LibrarySearch search = LibrarySearch::open_first(candidates);
  EXPECT_FALSE(search.library);
  const std::string report = search.report();
  EXPECT_NE(report.find("/nowhere/libx.so (no such file)"), std::string::npos);
  EXPECT_NE(report.find("sub/liby.so (relative path, not opened)"), std::string::npos);
  EXPECT_NE(report.find("libz-nowhere.so.1"), std::string::npos);
}

TEST(Log, reaches_the_sink_from_the_least_level_on_and_survives_a_throwing_one) {
  std::vector<std::string> heard;
  set_log_sink([&](LogLevel, std::string_view message) { heard.emplace_back(message); },
               LogLevel::warning);
  log(LogLevel::info, "quiet");
  log(LogLevel::error, "loud");
  set_log_sink([](LogLevel, std::string_view) { throw std::runtime_error("sink"); });
  log(LogLevel::error, "lost");
  set_log_sink({});
  EXPECT_FALSE(is_logged(LogLevel::error));
  EXPECT_EQ(heard, std::vector<std::string>{"loud"});
}

TEST(AlignedMemory, holds_what_was_asked_for) {
  for (const std::size_t bytes : {0UL, 1UL, 65UL, (4UL << 20) - 1, 4UL << 20, (6UL << 20) + 1}) {
    void* const data = allocate_aligned(bytes);
    ASSERT_NE(data, nullptr) << bytes;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0U) << bytes;
    std::memset(data, 1, bytes);
    std::free(data);
  }
}

TEST(HostInfo, has_facts_that_predictions_can_divide_by) {
  const DeviceInfo& info = host_device_info();
  EXPECT_TRUE(info.target.is_cpu());
  EXPECT_GE(info.multiprocessors, 1);
  EXPECT_GT(info.clock_ghz, 0.1);
  EXPECT_GT(info.bandwidth_bytes_per_second, 1e9);
  EXPECT_GT(info.memory_bytes, 1 << 20);
}

}  // namespace
}  // namespace gemmery::platform
