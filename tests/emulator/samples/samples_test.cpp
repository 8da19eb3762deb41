// SPDX-License-Identifier: Apache-2.0
// Kernels in the style of well-known samples, one file each: every schedule gives the right result
// and no finding; with its planted fault (-DFAULT) each is reported at a line marked `fault`.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/emulator/samples/sample_rows.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery::tests {

void PrintTo(const Sample& sample, std::ostream* out) { *out << sample.name; }

namespace {

constexpr int schedules = 8;

std::string path_of(const Sample& sample) {
  return std::string("tests/emulator/samples/") + sample.name + ".cu";
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_marked(const std::string& text, std::uint32_t line) {
  std::istringstream lines(text);
  std::string at;
  for (std::uint32_t number = 0; number < line; ++number)
    if (!std::getline(lines, at)) return false;
  return line != 0 && at.find("// fault") != std::string::npos;
}

EmulationReport run(const Sample& sample, const SampleCase& numbers, bool is_faulty) {
  EmulationRequest request{.code = text_of(path_of(sample)),
                           .file = std::string(sample.name) + ".cu",
                           .compile_options = {"-default-device"},
                           .entry = sample.name,
                           .device = *parse_device("emulated:h200"),
                           .launch = sample.launch,
                           .arguments = numbers.arguments,
                           .schedules = schedules,
                           .rules = {}};
  request.launch.step_limit = std::uint64_t{1} << 20;
  if (is_faulty) request.compile_options.emplace_back("-DFAULT");
  return emulate(request);
}

bool names_a_marked_line(const EmulationFinding& finding, const std::string& text) {
  for (const EmulatedPlace* const place : {&finding.place, &finding.other})
    if (is_marked(text, place->source_line) || is_marked(text, place->call_line)) return true;
  return false;
}

class Samples : public WithNvrtc, public testing::WithParamInterface<Sample> {};

TEST_P(Samples, is_right_under_every_schedule_with_no_finding) {
  std::mt19937_64 random(random_seed());
  const SampleCase numbers = GetParam().make(random);
  const EmulationReport report = run(GetParam(), numbers, false);
  EXPECT_TRUE(std::ranges::none_of(report.findings, [](const EmulationFinding& finding) {
    return finding.rule.empty();  // that a comment of the source allows
  })) << to_string(report);
  EXPECT_TRUE(report.unused_rules.empty()) << to_string(report);
  EXPECT_EQ(report.schedules, schedules);
  for (const ExpectedOutput& expected : numbers.expected) {
    const auto found =
        std::ranges::find(report.outputs, expected.argument, &EmulationOutput::argument);
    ASSERT_NE(found, report.outputs.end());
    EXPECT_EQ(difference(expected, found->bytes), "") << "argument " << expected.argument;
  }
}

TEST_P(Samples, its_planted_fault_is_reported_with_file_and_line) {
  std::mt19937_64 random(random_seed());
  const EmulationReport report = run(GetParam(), GetParam().make(random), true);
  EXPECT_FALSE(report.passed());
  const std::string text = text_of(path_of(GetParam()));
  const bool is_found = std::ranges::any_of(report.findings, [&](const EmulationFinding& finding) {
    return finding.kind == GetParam().fault && !finding.is_by_the_letter &&
           names_a_marked_line(finding, text) &&
           finding.report.find(std::string(GetParam().name) + ".cu:") != std::string::npos;
  });
  EXPECT_TRUE(is_found) << "no " << GetParam().fault << " at a marked line in\n"
                        << to_string(report);
}

INSTANTIATE_TEST_SUITE_P(All, Samples, testing::ValuesIn(all_samples()),
                         [](const testing::TestParamInfo<Sample>& at) {
                           return std::string(at.param.name);
                         });

// Every kernel of the folder has its row.
TEST(SampleRows, name_every_file) {
  std::vector<std::string> files, rows;
  for (const auto& entry : std::filesystem::directory_iterator("tests/emulator/samples"))
    if (entry.path().extension() == ".cu") files.push_back(entry.path().stem());
  for (const Sample& sample : all_samples()) rows.emplace_back(sample.name);
  std::ranges::sort(files);
  std::ranges::sort(rows);
  EXPECT_EQ(files, rows);
  EXPECT_GE(rows.size(), 25U);
}

TEST(SampleRows, are_those_of_the_page_of_faults) {
  const std::string page = text_of("docs/emulator-faults.md");
  for (const Sample& sample : all_samples()) {
    const std::size_t row = page.find("| [" + std::string(sample.name) + "](");
    ASSERT_NE(row, std::string::npos) << sample.name;
    const std::string text = page.substr(row, page.find('\n', row) - row);
    EXPECT_NE(text.find("| " + std::string(sample.fault) + " |"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace gemmery::tests
