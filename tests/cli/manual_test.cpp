// SPDX-License-Identifier: Apache-2.0
// The manual and the parser must agree: --help describes exactly the options that are accepted.
#include "cli/manual.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "cli/command_line.hpp"

namespace gemmery::cli {
namespace {

std::set<std::string> options_in(std::string_view text) {
  static const std::regex option("--[a-z][a-z-]*");
  const std::string owned(text);
  std::set<std::string> found;
  for (std::sregex_iterator match(owned.begin(), owned.end(), option);
       match != std::sregex_iterator(); ++match) {
    found.insert(match->str());
  }
  found.erase("--help");
  return found;
}

// The usage lines of a verb's section.
std::string usage_of(std::string_view verb) {
  const std::string section(manual_section(verb));
  const std::size_t begin = section.find("    gemmery ");
  return section.substr(begin, section.find("\n\n", begin) - begin);
}

TEST(Manual, is_the_page_of_the_documentation) {
  std::ifstream file("docs/cli.md");
  ASSERT_TRUE(file) << "tests run in the repository's root";
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_EQ(page.str(), manual());
}

TEST(Manual, falls_into_the_overview_and_a_section_for_every_verb) {
  std::size_t length = manual_overview().size();
  for (const std::string_view verb : verbs()) {
    EXPECT_FALSE(manual_section(verb).empty()) << verb;
    length += manual_section(verb).size();
  }
  // One line break before each section belongs to neither.
  EXPECT_EQ(length + verbs().size(), manual().size());
}

TEST(Manual, has_no_section_for_what_is_no_verb) { EXPECT_TRUE(manual_section("dance").empty()); }

TEST(Manual, shows_every_option_of_every_verb_and_no_other) {
  for (const std::string_view verb : verbs()) {
    const std::vector<std::string> names = option_names(verb);
    EXPECT_EQ(options_in(usage_of(verb)), std::set<std::string>(names.begin(), names.end()))
        << verb;
  }
}

TEST(Manual, describes_every_option) {
  for (const std::string_view verb : verbs()) {
    const std::string page = std::string(manual_overview()) + std::string(manual_section(verb));
    for (const std::string& name : option_names(verb)) {
      EXPECT_TRUE(page.find("\n    " + name + " ") != std::string::npos) << verb << " " << name;
    }
  }
}

}  // namespace
}  // namespace gemmery::cli
