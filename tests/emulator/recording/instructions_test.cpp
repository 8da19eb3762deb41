// SPDX-License-Identifier: Apache-2.0
// Runs every recorded form on the emulator: results equal the hardware's bit for bit; approximate
// functions are within twice their documented error of the hardware's, since both have that error.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "driver/driver.hpp"
#include "tests/emulator/recording/forms.hpp"

namespace gemmery::recording {
namespace {

constexpr const char* recording_path = "tests/data/emulator/instructions.rec";
constexpr Device emulated_h200{DeviceType::emulated, 1};

double half_value(std::uint64_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double fraction = static_cast<double>(bits & 1023);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : std::nan("");
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}
double single_value(std::uint64_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
}

// The numbers in a result word.
std::vector<double> values(Kind kind, std::uint64_t word) {
  switch (kind) {
    case Kind::f16:
      return {half_value(word)};
    case Kind::f16x2:
      return {half_value(word & 0xffff), half_value(word >> 16)};
    case Kind::bf16:
      return {single_value(word << 16)};
    case Kind::bf16x2:
      return {single_value(word << 16 & 0xffff0000), single_value(word & 0xffff0000)};
    case Kind::f64:
      return {std::bit_cast<double>(word)};
    default:
      return {single_value(word)};
  }
}

bool is_close(double got, double want, const Form& form) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::abs(got - want) <=
         2 * (form.relative_error * std::abs(want) + form.absolute_error) + 0x1p-126;
}

bool agrees(const Form& form, Kind kind, std::uint64_t got, std::uint64_t want) {
  if (form.relative_error == 0 && form.absolute_error == 0) return got == want;
  const std::vector<double> ours = values(kind, got), theirs = values(kind, want);
  for (std::size_t at = 0; at < ours.size(); ++at) {
    if (!is_close(ours[at], theirs[at], form)) return false;
  }
  return true;
}

std::string describe_case(const Form& form, std::size_t which, std::uint64_t got,
                          std::uint64_t want) {
  const std::vector<std::uint64_t> inputs = inputs_of(form);
  char text[64];
  std::string line = form.name + ":";
  for (std::size_t at = 0; at < form.operands.size(); ++at) {
    std::snprintf(text, sizeof text, " %016llx",
                  static_cast<unsigned long long>(inputs[which * form.operands.size() + at]));
    line += text;
  }
  std::snprintf(text, sizeof text, " -> %016llx, hardware %016llx",
                static_cast<unsigned long long>(got), static_cast<unsigned long long>(want));
  return line + text;
}

TEST(RecordedInstructions, emulator_answers_what_hardware_answered) {
  const std::vector<Form> forms = all_forms();
  const Recording recording = read_recording(recording_path);
  std::map<std::string, std::size_t> index_of;
  for (std::size_t at = 0; at < recording.names.size(); ++at) index_of[recording.names[at]] = at;
  const auto results = run_forms(forms, emulated_h200);
  std::size_t compared = 0;
  for (std::size_t at = 0; at < forms.size(); ++at) {
    const Form& form = forms[at];
    ASSERT_TRUE(index_of.contains(form.name)) << form.name << " is not recorded: record again";
    const std::vector<std::uint64_t>& want = recording.results[index_of[form.name]];
    ASSERT_EQ(results[at].size(), want.size()) << form.name;
    std::size_t wrong = 0;
    std::string first;
    for (std::size_t word = 0; word < want.size(); ++word) {
      const std::size_t which = word / form.results.size();
      const Kind kind = form.results[word % form.results.size()];
      if (agrees(form, kind, results[at][word], want[word])) continue;
      if (wrong++ == 0) first = describe_case(form, which, results[at][word], want[word]);
    }
    EXPECT_EQ(wrong, 0u) << first;
    ++compared;
  }
  EXPECT_GE(compared, 300u);
  RecordProperty("forms", static_cast<int>(compared));
}

}  // namespace
}  // namespace gemmery::recording
