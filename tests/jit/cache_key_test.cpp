// SPDX-License-Identifier: Apache-2.0
// RELIABILITY §6b: everything that affects the code changes the key, and nothing else does. The
// compiler is a fake file, since a key is made without opening it.
#include "jit/cache_key.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>

#include "jit/embedded.hpp"
#include "tests/faults/sample_code.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::jit {
namespace {

// The key in a child process with these changes; this process may have opened a compiler.
std::string text_in_child(const std::function<std::string()>& make) {
  int channel[2];
  if (pipe(channel) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    std::string text;
    try {
      text = make();
    } catch (const std::exception& error) {
      text = error.what();
    }
    const ssize_t written = write(channel[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(channel[1]);
  std::string text;
  char part[4096];
  for (ssize_t count; (count = read(channel[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(count));
  close(channel[0]);
  waitpid(child, nullptr, 0);
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

class Key : public testing::Test {
 protected:
  Key() { write_file(library_, "a compiler"); }

  std::string key_text(const CompileRequest& request, const std::function<void()>& change = {}) {
    return text_in_child([&] {
      setenv("GEMMERY_NVRTC_LIBRARY", library_.c_str(), 1);
      if (change) change();
      return key_of(request).text();
    });
  }

  tests::TemporaryFolder folder_;
  const std::string library_ = folder_ / "libnvrtc.so.13";
  const CompileRequest request_{.source = "kernel() {}",
                                .entry = "kernel",
                                .target = {90, 'a'},
                                .form = CodeForm::cubin,
                                .extra_options = {"-DA=1", "-DB=2"}};
};

TEST_F(Key, names_library_compiler_target_form_options_headers_entry_and_source) {
  const std::string text = key_text(request_);
  for (const std::string& part :
       {std::string("gemmery "), std::string("compiler nvrtc xxh3 "), std::string("target sm_90a"),
        std::string("form cubin"), std::string("option 5 -DA=1"),
        "headers " + std::string(embedded_digest()), std::string("entry 6 kernel"),
        request_.source})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  EXPECT_EQ(text.find(folder_.path()), std::string::npos) << "a path of this machine";
}

// RELIABILITY G14: as many entries as rows, and each finds only its own code.
TEST_F(Key, each_ingredient_makes_another_key_and_no_code_of_another_is_found) {
  std::vector<CompileRequest> rows(13, request_);
  rows[1].source += " ";
  rows[2].entry = "kernel2";
  rows[3].target = {90, 0};
  rows[4].target = {100, 'a'};
  rows[5].target = {100, 'f'};
  rows[6].form = CodeForm::ptx;
  rows[7].extra_options = {"-DA=1"};
  rows[8].extra_options = {"-DB=2", "-DA=1"};
  rows[9].extra_options = {"-DA=1 -DB=2"};
  rows[10].extra_options = {"-DA=1", "-DB=2", "--std=c++17"};
  rows[11].has_own_headers = true;
  rows[12].entry = "kernel\nsource 11";
  std::set<std::string> texts;
  for (const CompileRequest& row : rows) texts.insert(key_text(row));
  write_file(library_, "another compiler");
  texts.insert(key_text(request_));
  write_file(folder_ / "libnvrtc-builtins.so.13.0", "declarations");
  texts.insert(key_text(request_));
  write_file(folder_ / "libnvrtc-builtins.so.13.0", "other declarations");
  texts.insert(key_text(request_));
  ASSERT_EQ(texts.size(), rows.size() + 3);

  DiskCache cache(tests::settings_at(folder_ / "cache"));
  int number = 0;
  for (const std::string& text : texts)
    cache.keep({.conditions = text, .source = ""}, tests::sample_code(number++));
  number = 0;
  for (const std::string& text : texts) {
    const auto found = cache.find({.conditions = text, .source = ""});
    ASSERT_TRUE(found.code);
    EXPECT_TRUE(tests::is_sample(*found.code, number++));
  }
}

TEST_F(Key, place_of_the_compiler_working_directory_and_other_variables_do_not_change_it) {
  const std::string text = key_text(request_);
  const std::string elsewhere = folder_ / "a folder named a b'c$(x)/libnvrtc.so.13";
  std::filesystem::create_directories(std::filesystem::path(elsewhere).parent_path());
  std::filesystem::copy_file(library_, elsewhere);
  EXPECT_EQ(key_text(request_, [&] { setenv("GEMMERY_NVRTC_LIBRARY", elsewhere.c_str(), 1); }),
            text);
  EXPECT_EQ(key_text(request_, [&] { std::filesystem::current_path(folder_.path()); }), text);
  EXPECT_EQ(key_text(request_,
                     [] {
                       for (const char* const name :
                            {"NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "CPATH", "C_INCLUDE_PATH",
                             "CPLUS_INCLUDE_PATH", "CUDA_CACHE_PATH", "USER", "LANG", "TZ"})
                         setenv(name, "-DHOSTILE /hostile", 1);
                     }),
            text);
}

TEST_F(Key, the_compiler_is_not_opened_for_it) {
  // The fake file cannot be opened as a library.
  EXPECT_TRUE(key_text(request_).starts_with("gemmery "));
}

TEST_F(Key, a_compiler_that_is_not_there_is_an_error_that_names_it) {
  const std::string text =
      key_text(request_, [] { setenv("GEMMERY_NVRTC_LIBRARY", "/nowhere/libnvrtc.so.13", 1); });
  EXPECT_NE(text.find("unavailable"), std::string::npos) << text;
  EXPECT_NE(text.find("/nowhere/libnvrtc.so.13"), std::string::npos) << text;
}

TEST_F(Key, covers_what_is_in_words_and_not_what_is_in_files) {
  const auto is_covered = [&](const std::vector<std::string>& options) {
    CompileRequest request = request_;
    request.extra_options = options;
    return is_covered_by_key(request);
  };
  EXPECT_TRUE(is_covered({}));
  EXPECT_TRUE(is_covered({"-DX=1", "-D", "Y", "--std=c++17", "--use_fast_math", "-lineinfo"}));
  for (const char* const option :
       {"-I/usr/include", "-I", "--include-path=headers", "-include=x.h", "--pre-include=x.h",
        "--options-file=x", "-optf", "@words", "--use-pch=x", "--pch-dir=x", "-DX=\"/etc/x\"",
        "--something-new"})
    EXPECT_FALSE(is_covered({option})) << option;
  CompileRequest request = request_;
  request.has_own_headers = true;
  EXPECT_FALSE(is_covered_by_key(request));
}

TEST_F(Key, conditions_are_found_by_their_names) {
  const std::string lines = "target sm_90a\nform cubin\nentry 6 kernel";
  EXPECT_EQ(condition(lines, "target"), "sm_90a");
  EXPECT_EQ(condition(lines, "entry"), "6 kernel");
  EXPECT_EQ(condition(lines, "tar"), "");
  EXPECT_EQ(condition("", "target"), "");
}

}  // namespace
}  // namespace gemmery::jit
