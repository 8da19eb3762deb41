// SPDX-License-Identifier: Apache-2.0
// The part of TOML that the library writes: literal strings, numbers, a date, one array of inline
// tables.
#include "tune/entry_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>
#include <xxhash.h>
#include <gemmery/error.hpp>

namespace gemmery::tuning {
namespace {

constexpr std::string_view table_head = "[[tuning]]\n";
constexpr std::string_view digest_key = "digest = ";

std::string literal(std::string_view text) {
  if (text.find_first_of("'\r\n") == std::string_view::npos) return fmt::format("'{}'", text);
  throw Error({.kind = ErrorKind::unsupported,
               .operand = "the result of tuning",
               .expected = "text without line ends and apostrophes",
               .got = std::string(text)});
}

// What is written for people only may hold anything.
std::string as_literal(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c == '\'' || c < ' ' || c == 0x7f; }, '`');
  return literal(text);
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.6}", value) : "inf";
}

// TOML has no float without a point or an exponent.
std::string as_float(double value) {
  const std::string text = number(value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string print_candidate(const TunedCandidate& candidate) {
  return fmt::format("  {{ kernel = {}, predicted_us = {}, time_us = {}, outcome = {} }},\n",
                     literal(candidate.kernel), as_float(candidate.predicted_us),
                     as_float(candidate.time_us), as_literal(candidate.outcome));
}

std::string digest_of(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

// The line that begins with this key, without it; nothing if there is none.
std::optional<std::string_view> value_of(std::string_view table, std::string_view key) {
  const std::string begin = fmt::format("\n{} = ", key);
  const std::size_t found = table.find(begin);
  if (found == std::string_view::npos) return std::nullopt;
  const std::string_view rest = table.substr(found + begin.size());
  return rest.substr(0, rest.find('\n'));
}

std::string string_of(std::string_view table, std::string_view key) {
  const auto value = value_of(table, key);
  return value && value->size() >= 2 ? std::string(value->substr(1, value->size() - 2)) : "";
}

double number_of(std::string_view table, std::string_view key) {
  return std::strtod(std::string(value_of(table, key).value_or("0")).c_str(), nullptr);
}

// The lines up to and including the digest. Returns nullopt if the digest does not match the lines
// before it.
std::optional<std::string_view> sound_part(std::string_view text) {
  const std::size_t place = text.find(fmt::format("\n{}", digest_key));
  if (place == std::string_view::npos) return std::nullopt;
  const std::string_view written = text.substr(0, place + 1);
  const std::string table = fmt::format("{}{}'{}'\n", written, digest_key, digest_of(written));
  if (!text.starts_with(table)) return std::nullopt;
  return text.substr(0, table.size());
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of('\n') == std::string_view::npos;
}

TuningEntry entry_of(std::string_view table) {
  const std::string_view head = table.substr(0, table.find("\ncandidates = "));
  return {.problem = string_of(head, "problem"),
          .conditions = {.device = string_of(head, "device"),
                         .driver = string_of(head, "driver"),
                         .compiler = string_of(head, "compiler"),
                         .gemmery = string_of(head, "gemmery")},
          .kernel = string_of(head, "kernel"),
          .median_us = number_of(head, "median_us"),
          .rounds = static_cast<int>(number_of(head, "rounds")),
          .tuned_at = std::string(value_of(head, "tuned_at").value_or(""))};
}

}  // namespace

std::string_view file_head() {
  return "# Results of gemmery tune, which discovery ranks by; docs/tuning.md describes them.\n"
         "# A table may be removed; one that was changed does not match its digest and is "
         "ignored.\n\n";
}

std::string print_entry(const TuningEntry& entry) {
  std::string text(table_head);
  text += fmt::format("problem = {}\n", literal(entry.problem));
  text += fmt::format("device = {}\n", literal(entry.conditions.device));
  text += fmt::format("driver = {}\n", literal(entry.conditions.driver));
  text += fmt::format("compiler = {}\n", literal(entry.conditions.compiler));
  text += fmt::format("gemmery = {}\n", literal(entry.conditions.gemmery));
  text += fmt::format("kernel = {}\n", literal(entry.kernel));
  text += fmt::format("median_us = {}\n", as_float(entry.median_us));
  text += fmt::format("rounds = {}\n", entry.rounds);
  text += fmt::format("tuned_at = {}\n", entry.tuned_at);
  text += "candidates = [\n";
  for (const TunedCandidate& candidate : entry.candidates) text += print_candidate(candidate);
  text += "]\n";
  return text + fmt::format("{}'{}'\n\n", digest_key, digest_of(text));
}

FileContent parse_entries(std::string_view text) {
  FileContent content;
  const std::string next_head = fmt::format("\n{}", table_head);
  std::size_t begin = text.starts_with(table_head) ? 0 : text.find(next_head);
  while (begin != std::string_view::npos) {
    begin += text[begin] == '\n' ? 1 : 0;
    const std::size_t next = text.find(next_head, begin);
    const std::size_t end = next == std::string_view::npos ? text.size() : next + 1;
    const std::string_view lines = text.substr(begin, end - begin);
    const auto table = sound_part(lines);
    if (table) content.entries.push_back({entry_of(*table), std::string(*table) + "\n"});
    if (!table || !is_blank(lines.substr(table->size()))) ++content.faulty;
    begin = next;
  }
  return content;
}

}  // namespace gemmery::tuning
