// SPDX-License-Identifier: Apache-2.0
// RELIABILITY S12: text that would be code, a command or a path in other contexts. It is refused
// quickly with an Error, before any compilation, or it is an unknown name.
#include <gemmery/discovery.hpp>
#include <gemmery/epilogue.hpp>
#include <gemmery/error.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/target.hpp>

#include <gtest/gtest.h>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace gemmery {
namespace {

using namespace std::string_literals;

// Text with a special meaning in shells, compilers, formats, paths and parsers.
std::vector<std::string> hostile_words() {
  std::vector<std::string> words{"\";",
                                 "\n}",
                                 "\\",
                                 "%s%n",
                                 "$(reboot)",
                                 "`id`",
                                 "/*",
                                 "*/",
                                 "//",
                                 "#include </etc/passwd>",
                                 "#define D",
                                 "asm(\"trap;\")",
                                 "__device__",
                                 "../../etc/passwd",
                                 "/dev/zero",
                                 "a b",
                                 "a\tb",
                                 "a\rb",
                                 "k<1>; asm(\"trap;\")",
                                 "k<2>,k<3>",
                                 "sm_90a --include-path=/",
                                 "'; DROP",
                                 "a,b",
                                 "{}",
                                 "\x1b[2J",
                                 "\xff\xfe",
                                 "\xc3\x28",
                                 "\xd0\xb0",
                                 "\xef\xbc\xa4",
                                 "\xe2\x80\xae",
                                 "nan(\"\")",
                                 "1e999999999",
                                 "0x",
                                 "-",
                                 "--",
                                 ""};
  words.push_back("a\0b"s);
  words.push_back("\0"s);
  words.emplace_back(10'000'000, 'a');
  words.emplace_back(10'000'000, '(');
  words.emplace_back(1'000'000, '\n');
  return words;
}

std::string shown(const std::string& word) {
  return word.size() > 60 ? std::to_string(word.size()) + " characters" : word;
}

using CpuTime = std::chrono::nanoseconds;

// This thread's processor time, which does not depend on other programs.
CpuTime cpu_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + CpuTime(now.tv_nsec);
}

template <class Work>
CpuTime time_of(Work&& work) {
  const CpuTime start = cpu_time();
  work();
  return cpu_time() - start;
}

// The time to copy this many characters and read each, with the compiler options of this test: a
// sanitizer or a slow machine affects both times.
CpuTime time_of_one_pass(std::size_t characters) {
  static std::map<std::size_t, CpuTime> known;
  const auto [place, is_new] = known.try_emplace(characters);
  if (!is_new) return place->second;
  const std::string text(characters, 'a');
  volatile unsigned sum = 0;
  place->second = time_of([&] {
    const std::string copy = text;
    for (std::size_t position = 0; position < copy.size(); ++position)
      sum = sum + static_cast<unsigned char>(copy.at(position));
  });
  return place->second;
}

// Checks that the text is refused by an Error of the two kinds for invalid input, in linear time. A
// hundred passes are more than any parser needs; a quadratic one would need as many as the text has
// characters, at least a million for the decisive texts.
template <class Read>
void expect_refused(const std::string& word, Read&& read) {
  constexpr int most_passes = 100;
  constexpr std::size_t least_characters = 1'000'000;
  const CpuTime time = time_of([&] {
    try {
      read();
      ADD_FAILURE() << "taken: " << shown(word);
    } catch (const Error& error) {
      EXPECT_TRUE(error.kind() == ErrorKind::invalid_argument ||
                  error.kind() == ErrorKind::unsupported)
          << shown(word) << ": " << shown(error.what());
    }
  });
  const CpuTime pass = time_of_one_pass(std::max(word.size(), least_characters));
  EXPECT_LT(time, most_passes * pass) << shown(word);
}

TEST(HostileText, is_no_element_type_no_extent_and_no_field_of_a_problem) {
  for (const std::string& word : hostile_words()) {
    expect_refused(word, [&] { parse_problem("gemm 8x8x8 a=" + word); });
    expect_refused(word, [&] { parse_problem("gemm 8x8x" + word + " a=f32"); });
    expect_refused(word, [&] { parse_problem("gemm 8x8x8 a=f32 " + word + "=1"); });
    expect_refused(word, [&] { parse_problem(word + " 8x8x8 a=f32"); });
  }
}

TEST(HostileText, is_no_epilogue_and_no_name_in_one) {
  for (const std::string& word : hostile_words()) {
    if (word == "//" || word == "\n}" || word.find_first_not_of("\n") == std::string::npos)
      continue;
    expect_refused(word, [&] { parse_epilogue("D = accum + " + word + " "); });
    expect_refused(word, [&] { parse_epilogue("D = " + word + "(accum)"); });
    expect_refused(word, [&] { parse_epilogue(word + " = accum"); });
  }
}

TEST(HostileText, is_no_target_and_no_name_of_a_kernel_or_a_provider) {
  for (const std::string& word : hostile_words()) {
    expect_refused(word, [&] { parse_target("sm_" + word); });
    if (!word.empty()) expect_refused(word, [&] { parse_target("sm_90" + word + "a"); });
    EXPECT_FALSE(find_kernel(word)) << shown(word);
    EXPECT_FALSE(find_kernel("simt1_gemm_" + word)) << shown(word);
    expect_refused(word, [&] {
      Filter filter;
      filter.providers = {word};
      get_kernels(filter);
    });
  }
}

}  // namespace
}  // namespace gemmery
