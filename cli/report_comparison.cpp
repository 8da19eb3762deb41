// SPDX-License-Identifier: Apache-2.0
// Two records, kernel by kernel.
#include <algorithm>

#include <fmt/format.h>

#include "cli/quantities.hpp"
#include "cli/report.hpp"
#include "cli/report_frame.hpp"
#include "cli/report_parts.hpp"

namespace gemmery::cli {
namespace {

const BenchRow* find_row(const BenchRecord& record, const BenchRow& like) {
  const auto found = std::ranges::find_if(record.rows, [&](const BenchRow& row) {
    return row.problem == like.problem && row.kernel == like.kernel;
  });
  return found == record.rows.end() ? nullptr : &*found;
}

Html machines(const BenchRecord& before, const BenchRecord& after) {
  const auto machine = [](const char* which, const BenchRecord& record) {
    return element("div", element("h3", text(fmt::format("{}: {}", which, record.name))) +
                              facts_list(record.facts));
  };
  return element("div", {{"class", "pair"}}, machine("Before", before) + machine("After", after));
}

Html ratios(const std::vector<ComparedRow>& rows, const KernelClasses& classes) {
  std::vector<RatioBar> bars;
  for (const ComparedRow& row : rows)
    bars.push_back({.name = row.after->problem + ": " + row.after->kernel,
                    .kind = classes.kind_of(*row.after),
                    .ratio = row.ratio(),
                    .least = row.least_ratio(),
                    .greatest = row.greatest_ratio()});
  return classes.legend() + ratio_bars(bars);
}

Html distributions(const std::vector<ComparedRow>& rows, const KernelClasses& classes) {
  Html parts;
  for (const ComparedRow& row : rows) {
    parts += element("h3", text(row.after->problem + ": " + row.after->kernel));
    for (const auto& [which, of] : {std::pair{"before", row.before}, {"after", row.after}})
      parts += labelled_row(which, time_text(of->median_us), sample_strip(*of, classes));
  }
  return parts;
}

Html figures(const std::vector<ComparedRow>& rows) {
  HtmlTable table("Medians of a run; the last column is after over before, by quartiles.",
                  {"problem", "kernel", ">before", ">after", ">ratio", ">from .. to"});
  for (const ComparedRow& row : rows)
    table.add_row(
        {row.after->problem, row.after->kernel, time_text(row.before->median_us),
         time_text(row.after->median_us), ratio_text(row.ratio()),
         fmt::format("{} .. {}", ratio_text(row.least_ratio()), ratio_text(row.greatest_ratio()))});
  return table.html();
}

// What only one of the records has.
Html unmatched(const BenchRecord& record, const BenchRecord& other) {
  Html items;
  for (const BenchRow& row : record.rows)
    if (find_row(other, row) == nullptr)
      items += element("li", text(row.problem + ": " + row.kernel));
  if (items.is_empty()) return {};
  return element("h3", text("Only in " + record.name)) + element("ul", items);
}

}  // namespace

std::vector<ComparedRow> compare_records(const BenchRecord& before, const BenchRecord& after) {
  std::vector<ComparedRow> rows;
  for (const BenchRow& row : after.rows)
    if (const BenchRow* const same = find_row(before, row)) rows.push_back({same, &row});
  return rows;
}

std::string comparison_page(const BenchRecord& before, const BenchRecord& after) {
  KernelClasses classes;
  classes.add(before);
  classes.add(after);
  const std::vector<ComparedRow> rows = compare_records(before, after);
  Html page = section("Machines", "Where and with what each was timed.", machines(before, after));
  page +=
      section("Time after over before",
              "Left of the dashed line at 1 a kernel has become faster. The lines within are by "
              "quartiles: one that crosses 1 shows no difference beyond the noise of a run.",
              ratios(rows, classes));
  page += section("Distribution of samples", strip_words(), distributions(rows, classes));
  page += section("All figures", "The same numbers as a table.", figures(rows));
  const Html rest = unmatched(before, after) + unmatched(after, before);
  if (!rest.is_empty()) page += section("Not compared", "Timed in one record only.", rest);
  return whole_page("Comparison of " + before.name + " and " + after.name, page);
}

}  // namespace gemmery::cli
