// SPDX-License-Identifier: Apache-2.0
#include "api/finding_rules.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <gemmery/error.hpp>

#include "core/trimmed.hpp"
#include "emulator/module.hpp"

namespace gemmery {

std::string_view name_in_source(std::string_view signature) noexcept {
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < signature.size(); ++at) {
    const char c = signature[at];
    if (c == '<') ++depth;
    if (c == '>') --depth;
    if (depth != 0) continue;
    if (c == '(') return signature.substr(begin, at - begin);
    if (c == ' ') begin = at + 1;
  }
  return signature.substr(begin);
}

namespace {

// Takes the text up to the next comma, which is removed as well.
std::string_view take_field(std::string_view& rest) {
  const std::size_t comma = rest.find(',');
  const std::string_view field = trimmed(rest.substr(0, comma));
  rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  return field;
}

bool fits(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

bool fits_file(const std::string& pattern, const std::string& path) {
  return fits(pattern, path) || fits(pattern, path.substr(path.rfind('/') + 1));
}

bool fits_kernel(const std::string& pattern, const std::string& kernel) {
  const std::string name(name_in_source(kernel));
  return fits(pattern, kernel) || fits(pattern, name) ||
         fits(pattern, name.substr(0, name.find('<')));
}

bool fits_place(const FindingRule& rule, const EmulatedPlace& place) {
  if (rule.file == "ptx") return rule.line == 0 || rule.line == place.ptx_line;
  const auto fits_line = [&](const std::string& file, std::uint32_t line) {
    return fits_file(rule.file, file) && (rule.line == 0 || rule.line == line);
  };
  const bool is_inlined = place.call_line != 0;
  return fits_line(place.source_file, place.source_line) ||
         (is_inlined && fits_line(place.call_file, place.call_line));
}

// A kind without * and ? must exist, so that a misspelt rule does not go unnoticed.
bool is_kind(const std::string& word) {
  if (word.find_first_of("*?[") != std::string::npos || word == results_differ) return true;
  for (int kind = 0; kind <= static_cast<int>(emulator::FaultKind::trap); ++kind) {
    if (word == emulator::name(static_cast<emulator::FaultKind>(kind))) return true;
  }
  return false;
}

[[noreturn]] void refuse_rule(const std::string& file, int line, const std::string& expected,
                              std::string_view got) {
  throw Error(
      {.kind = ErrorKind::invalid_argument,
       .operand = fmt::format("{}:{}", file, line),
       .expected = expected,
       .got = fmt::format("'{}'", got),
       .hint = "a rule is KIND[, FILE[:LINE][, KERNEL]], for example: race, softmax.cu:288"});
}

void split_line(FindingRule& rule) {
  const std::size_t colon = rule.file.rfind(':');
  if (colon == std::string::npos) return;
  const char* const end = rule.file.data() + rule.file.size();
  const auto [stop, error] = std::from_chars(rule.file.data() + colon + 1, end, rule.line);
  if (error != std::errc() || stop != end) return;
  rule.file.resize(colon);
}

FindingRule parse_rule(std::string_view text, const std::string& file, int line) {
  FindingRule rule{.text = std::string(text), .kind = {}};
  std::string_view rest = text;
  rule.kind = take_field(rest);
  if (!is_kind(rule.kind))
    refuse_rule(file, line, "a kind of finding, such as race, or *", rule.kind);
  if (const std::string_view place = take_field(rest); !place.empty()) rule.file = place;
  split_line(rule);
  if (const std::string_view kernel = trimmed(rest); !kernel.empty()) rule.kernel = kernel;
  return rule;
}

// What follows "gemmery: allow " up to a colon or the end of the comment; "" without those words.
std::string_view allowed_kind(std::string_view line) {
  constexpr std::string_view words = "gemmery: allow ";
  const std::size_t at = line.find(words);
  if (at == std::string_view::npos || line.rfind("//", at) == std::string_view::npos) return {};
  line.remove_prefix(at + words.size());
  return trimmed(line.substr(0, line.find(':')));
}

bool is_without_code(std::string_view line) {
  return trimmed(line).empty() || trimmed(line).starts_with("//");
}

// Takes the text up to the end of the line.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return line;
}

}  // namespace

bool FindingRule::matches(const EmulationFinding& finding) const {
  if (!fits(kind, finding.kind) || !fits_kernel(kernel, finding.place.kernel)) return false;
  const bool has_other = finding.other.ptx_line != 0;
  return fits_place(*this, finding.place) || (has_other && fits_place(*this, finding.other));
}

std::vector<FindingRule> parse_finding_rules(std::string_view text, const std::string& file) {
  std::vector<FindingRule> rules;
  for (int line = 1; !text.empty(); ++line) {
    std::string_view each = take_line(text);
    each = trimmed(each.substr(0, each.find('#')));
    if (!each.empty()) rules.push_back(parse_rule(each, file, line));
  }
  return rules;
}

std::vector<FindingRule> find_comment_rules(std::string_view source, const std::string& file) {
  std::vector<FindingRule> rules;
  std::size_t first_above = 0;  // of the rules that wait for a line of code
  for (int line = 1; !source.empty(); ++line) {
    const std::string_view each = take_line(source);
    if (const std::string_view kind = allowed_kind(each); !kind.empty()) {
      rules.push_back(parse_rule(kind, file, line));
      rules.back().text = fmt::format("{}:{}: allow {}", file, line, kind);
      rules.back().file = kind == results_differ ? "*" : file;  // has no line
    }
    if (is_without_code(each)) continue;
    for (; first_above < rules.size(); ++first_above)
      if (rules[first_above].file == file) rules[first_above].line = static_cast<unsigned>(line);
  }
  return rules;
}

}  // namespace gemmery
