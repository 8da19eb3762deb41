// SPDX-License-Identifier: Apache-2.0
// Reads, prints and compares compile targets.
#include <gemmery/error.hpp>
#include <gemmery/target.hpp>

#include <charconv>

namespace gemmery {
namespace {

// "sm90a" lacks an underscore.
std::string target_hint(std::string_view text) {
  const bool is_run_together =
      text.size() >= 4 && text.starts_with("sm") && text[2] >= '1' && text[2] <= '9';
  return (is_run_together ? "did you mean sm_" + std::string(text.substr(2)) + "? examples: "
                          : std::string("examples: ")) +
         "sm_80, sm_90a, sm_100f, cpu";
}

[[noreturn]] void refuse_target(std::string_view text, std::string expected) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "target",
               .expected = std::move(expected),
               .got = "\"" + std::string(text) + "\"",
               .hint = target_hint(text)});
}

}  // namespace

std::string to_string(Target target) {
  if (target.is_cpu()) return "cpu";
  std::string text = "sm_" + std::to_string(target.architecture);
  if (target.suffix != 0) text += target.suffix;
  return text;
}

Target parse_target(std::string_view text) {
  if (text == "cpu") return Target::cpu();
  std::string_view rest = text;
  if (rest.starts_with("sm_")) rest.remove_prefix(3);
  Target target;
  const char* const end = rest.data() + rest.size();
  const auto [after, failure] = std::from_chars(rest.data(), end, target.architecture);
  const bool has_number = failure == std::errc{} && after != rest.data();
  if (!has_number || after + 1 < end || target.architecture < 10 || target.architecture > 999) {
    refuse_target(text, "\"cpu\" or \"sm_\", an architecture and an optional 'a' or 'f'");
  }
  if (after != end && *after != 'a' && *after != 'f') {
    refuse_target(text, "the suffix 'a' (exact), 'f' (family) or none");
  }
  if (after != end) target.suffix = *after;
  if (target.suffix == 'a' && target.architecture < 90) {
    refuse_target(text, "an architecture of 90 or more with the suffix 'a'");
  }
  if (target.suffix == 'f' && target.architecture < 100) {
    refuse_target(text, "an architecture of 100 or more with the suffix 'f'");
  }
  return target;
}

bool runs_on(Target code, Target device) noexcept {
  if (code.is_cpu() || device.is_cpu()) return code.is_cpu() && device.is_cpu();
  if (code.suffix == 'a') return code.architecture == device.architecture;
  return code.major() == device.major() && code.minor() <= device.minor();
}

}  // namespace gemmery
