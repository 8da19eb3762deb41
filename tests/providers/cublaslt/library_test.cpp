// SPDX-License-Identifier: Apache-2.0
// How the library is found and refused; versions with known faults.
#include "providers/cublaslt/library.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "providers/cublaslt/known_faults.hpp"
#include "tests/providers/cublaslt/with_fake.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::cublaslt {
namespace {

using tests::fake_library_path;
using tests::NamedLibrary;

void expect_reason(const FoundLibrary& found, const std::string& part) {
  EXPECT_EQ(found.library, nullptr);
  EXPECT_TRUE(found.reason.starts_with("unavailable: cuBLASLt: ")) << found.reason;
  EXPECT_NE(found.reason.find(part), std::string::npos) << found.reason;
}

TEST(CublasltLibrary, is_the_one_that_the_environment_names) {
  const NamedLibrary named(fake_library_path());
  const FoundLibrary found = find_library();
  ASSERT_NE(found.library, nullptr) << found.reason;
  EXPECT_EQ(found.library->path, fake_library_path());
  EXPECT_EQ(found.library->version, (Version{13, 1, 2}));
  EXPECT_EQ(to_string(found.library->version), "13.1.2");
}

TEST(CublasltLibrary, is_absent_with_the_places_that_were_searched) {
  const NamedLibrary named("/nowhere/libcublasLt.so.13");
  expect_reason(find_library(), "not found, looked in /nowhere/libcublasLt.so.13");
}

TEST(CublasltLibrary, is_refused_by_name_if_a_function_is_missing) {
  const NamedLibrary named(fake_library_path("libfake_cublaslt_without_matmul.so"));
  expect_reason(find_library(), "has no function cublasLtMatmul");
}

TEST(CublasltLibrary, of_an_old_version_is_refused) {
  const NamedLibrary named(fake_library_path());
  tests::fake_cublaslt().version = 120399;
  expect_reason(find_library(), "has version 12.3.99, 12.4.0 or later is needed");
  tests::fake_cublaslt().version = 130102;
}

TEST(CublasltLibrary, is_refused_if_it_is_another_library_or_a_relative_path) {
  {
    const NamedLibrary named("/proc/self/exe");
    expect_reason(find_library(), "looked in");
  }
  const NamedLibrary named("libcublasLt.so.13");
  expect_reason(find_library(), "GEMMERY_CUBLASLT_LIBRARY");
}

TEST(CublasltLibrary, is_switched_off_by_a_flag) {
  const NamedLibrary named(fake_library_path());
  ::setenv("GEMMERY_CUBLASLT", "0", 1);
  expect_reason(find_library(), "switched off by GEMMERY_CUBLASLT");
  ::unsetenv("GEMMERY_CUBLASLT");
}

TEST(CublasltLibrary, of_a_wheel_comes_before_those_of_toolkits) {
  const std::vector<std::string> sonames{"libcublasLt.so.13", "libcublasLt.so.12"};
  if (platform::LibrarySearch::find_loaded(sonames).library)
    GTEST_SKIP() << "this process has loaded the vendor's library, which comes before all others";
  const tests::TemporaryFolder packages;
  const auto folder = std::filesystem::path(packages.path()) / "nvidia/cu13/lib";
  std::filesystem::create_directories(folder);
  std::filesystem::create_symlink(fake_library_path(), folder / "libcublasLt.so.13");
  ::setenv("PYTHONPATH", packages.path().c_str(), 1);
  const FoundLibrary found = find_library();
  ::unsetenv("PYTHONPATH");
  ASSERT_NE(found.library, nullptr) << found.reason;
  EXPECT_TRUE(std::filesystem::equivalent(found.library->path, fake_library_path()));
}

TEST(CublasltLibrary, numbers_of_versions_are_read) {
  EXPECT_EQ(version_of(130102), (Version{13, 1, 2}));
  EXPECT_EQ(version_of(131000), (Version{13, 10, 0}));
  EXPECT_EQ(version_of(120805), (Version{12, 8, 5}));
}

// The real one, where it is: it opens without a GPU and says so when a handle is asked for.
TEST(CublasltLibrary, of_the_vendor_opens) {
  const FoundLibrary found = find_library();
  if (!found.library) GTEST_SKIP() << found.reason;
  EXPECT_GE(found.library->version, (Version{12, 4, 0})) << found.library->path;
  Handle handle = nullptr;
  const Result result = found.library->api.cublasLtCreate(&handle);
  if (result != Result::success) {
    EXPECT_NE(describe(*found.library, result).find("CUBLAS_STATUS_"), std::string::npos);
  }
  EXPECT_NE(describe(*found.library, Result::not_supported).find("NOT_SUPPORTED (15)"),
            std::string::npos);
}

// --- known faults -------------------------------------------------------------------------------

struct FaultCase {
  FaultQuestion question;
  bool is_refused;
};

TEST(CublasltFaults, are_refused_in_the_versions_that_have_them) {
  constexpr Target sm_90{90}, sm_100{100}, sm_120{120};
  constexpr std::int64_t large = std::int64_t{1} << 31;
  const FaultCase cases[] = {
      {{{13, 1, 0}, sm_100, 66, 1}, true},     {{{13, 1, 1}, sm_100, 66, 1}, false},
      {{{13, 2, 0}, sm_100, 66, 1}, true},     {{{13, 3, 0}, sm_100, 66, 1}, false},
      {{{12, 7, 0}, sm_100, 66, 1}, false},    {{{13, 1, 0}, sm_90, 66, 1}, false},
      {{{13, 1, 0}, sm_100, 67, 1}, false},    {{{13, 5, 1}, sm_120, 21, 1}, true},
      {{{13, 5, 1}, sm_90, 21, 1}, false},     {{{13, 4, 3}, sm_120, 21, 1}, false},
      {{{13, 6, 0}, sm_90, 68, large}, true},  {{{13, 6, 0}, sm_90, 68, large - 1}, false},
      {{{13, 10, 0}, sm_90, 68, large}, true}, {{{13, 5, 1}, sm_90, 68, large}, false}};
  for (const FaultCase& one : cases) {
    const Status status = check_known_faults(one.question);
    EXPECT_EQ(status.is_success(), !one.is_refused)
        << to_string(one.question.version) << " " << to_string(one.question.device) << " "
        << one.question.algorithm << ": " << status.error();
    if (one.is_refused) {
      EXPECT_NE(status.error().find("version: cuBLASLt " + to_string(one.question.version)),
                std::string::npos);
    }
  }
}

}  // namespace
}  // namespace gemmery::cublaslt
