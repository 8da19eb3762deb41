// SPDX-License-Identifier: Apache-2.0
// The identity of files, and trusted folders. Other functions of folders: tests/faults and
// tests/jit/disk_cache_test.cpp.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "platform/file_identity.hpp"
#include "platform/file_system.hpp"
#include "platform/trusted_folder.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::platform {
namespace {

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

TEST(FileIdentity, is_the_build_id_of_a_library_that_has_one) {
  const std::string identity = file_identity("/lib/x86_64-linux-gnu/libc.so.6");
  if (identity.empty()) GTEST_SKIP() << "no libc at the usual place";
  EXPECT_TRUE(identity.starts_with("build-id ")) << identity;
  EXPECT_GE(identity.size(), std::string("build-id ").size() + 32);
}

TEST(FileIdentity, is_a_hash_of_all_bytes_otherwise) {
  const tests::TemporaryFolder folder;
  const std::string file = folder / "file";
  write_file(file, std::string(3'000'000, 'a'));
  const std::string first = file_identity(file);
  EXPECT_TRUE(first.starts_with("xxh3 ")) << first;
  write_file(file, std::string(2'999'999, 'a') + "b");
  EXPECT_NE(file_identity(file), first);
  EXPECT_EQ(file_identity(folder / "nowhere"), "");
}

// Headers with wrong lengths and offsets, too small or too large.
TEST(FileIdentity, headers_that_lie_are_hashed_like_any_bytes) {
  const tests::TemporaryFolder folder;
  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::string program(4096, '\0');
  self.read(program.data(), static_cast<std::streamsize>(program.size()));
  for (std::size_t position = 0; position < program.size(); position += 3) {
    std::string changed = program;
    changed[position] = static_cast<char>(changed[position] ^ 0xff);
    write_file(folder / "file", changed.substr(0, 64 + position));
    EXPECT_FALSE(file_identity(folder / "file").empty());
  }
}

TEST(FileSystem, the_test_folder_is_local_and_its_file_system_has_a_name) {
  const tests::TemporaryFolder folder;
  const TrustedFolder opened = open_trusted_folder({.path = folder.path()});
  ASSERT_TRUE(opened.folder) << opened.refusal;
  const std::string name = file_system_name(*opened.folder);
  EXPECT_EQ(is_on_local_file_system(*opened.folder), !name.starts_with("unknown")) << name;
}

TEST(FileSystem, proc_is_not_known_to_be_local) {
  const TrustedFolder opened = open_trusted_folder({.path = "/proc/sys",
                                                    .existing = "/proc/sys",
                                                    .may_be_made = false,
                                                    .owner = Owner::user_or_root});
  if (!opened.folder) GTEST_SKIP() << opened.refusal;
  EXPECT_FALSE(is_on_local_file_system(*opened.folder));
  EXPECT_TRUE(file_system_name(*opened.folder).starts_with("unknown (0x"));
}

TEST(TrustedFolder, relative_paths_are_refused) {
  EXPECT_NE(open_trusted_folder({.path = "relative"}).refusal.find("no absolute path"),
            std::string::npos);
}

TEST(TrustedFolder, names_with_spaces_quotes_and_shell_signs_are_names) {
  const tests::TemporaryFolder folder;
  const std::string path = folder / "a folder named a b'c$(x)`y`;\"z\"";
  EXPECT_TRUE(open_trusted_folder({.path = path + "/./x//y/"}).folder);
  EXPECT_TRUE(std::filesystem::is_directory(path + "/x/y"));
}

TEST(TrustedFolder, what_has_to_be_there_is_not_made) {
  const tests::TemporaryFolder folder;
  const FolderPlace place{.path = folder / "home/cache", .existing = folder / "home"};
  EXPECT_FALSE(open_trusted_folder(place).folder);
  EXPECT_FALSE(std::filesystem::exists(folder / "home"));
  std::filesystem::create_directory(folder / "home");
  EXPECT_TRUE(open_trusted_folder(place).folder);
}

TEST(TrustedFolder, a_file_in_the_place_of_a_folder_is_refused) {
  const tests::TemporaryFolder folder;
  write_file(folder / "file", "");
  EXPECT_FALSE(open_trusted_folder({.path = folder / "file"}).folder);
  EXPECT_FALSE(open_trusted_folder({.path = folder / "file/inside"}).folder);
}

}  // namespace
}  // namespace gemmery::platform
