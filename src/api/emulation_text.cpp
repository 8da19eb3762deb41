// SPDX-License-Identifier: Apache-2.0
// Findings and reports of the emulator as people read them.
#include <gemmery/emulate.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace gemmery {
namespace {

constexpr std::size_t most_seeds_named = 8;

std::string seeds_text(const std::vector<std::uint64_t>& seeds) {
  std::string text = seeds.size() == 1 ? "seed " : "seeds ";
  for (std::size_t at = 0; at < seeds.size(); ++at) {
    if (at == most_seeds_named) return text + ", ...";
    text += (at == 0 ? "" : ", ") + std::to_string(seeds[at]);
  }
  return text;
}

std::string times_text(std::uint64_t count) {
  return count == 1 ? "once" : fmt::format("{} times", count);
}

// "1 by which a wrong result is possible, 2 by the letter of the memory model"
std::string counts_text(const std::vector<EmulationFinding>& findings) {
  const auto suppressed = std::ranges::count_if(
      findings, [](const EmulationFinding& each) { return !each.rule.empty(); });
  const auto by_letter = std::ranges::count_if(findings, [](const EmulationFinding& each) {
    return each.rule.empty() && each.is_by_the_letter;
  });
  const auto all = static_cast<std::ptrdiff_t>(findings.size());
  if (all == 0) return "no findings";
  std::string text =
      fmt::format("findings: {} by which a wrong result is possible", all - suppressed - by_letter);
  if (by_letter != 0) text += fmt::format(", {} by the letter of the memory model", by_letter);
  if (suppressed != 0) text += fmt::format(", {} suppressed", suppressed);
  return text;
}

}  // namespace

std::string to_string(const EmulationFinding& finding) {
  std::string text = fmt::format("{}\n  {}, {}", finding.report, times_text(finding.count),
                                 seeds_text(finding.seeds));
  if (finding.ended_block) text += "; the block could not go on";
  if (finding.is_by_the_letter)
    text += "; by the letter of the memory model, no wrong result follows from it here";
  if (!finding.rule.empty()) text += "; suppressed by the rule: " + finding.rule;
  return text;
}

std::string to_string(const EmulationReport& report) {
  std::string text;
  for (const EmulationFinding& finding : report.findings) text += to_string(finding) + "\n";
  for (const std::string& rule : report.unused_rules)
    text += "the rule matches no finding: " + rule + "\n";
  if (report.timed_out) text += "time ran out; what is above was found by then\n";
  return text + fmt::format("{}: {} schedule{}, {} lane-instructions; {}", report.kernel,
                            report.schedules, report.schedules == 1 ? "" : "s",
                            report.lane_instructions, counts_text(report.findings));
}

}  // namespace gemmery
