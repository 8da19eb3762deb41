// SPDX-License-Identifier: Apache-2.0
#include "cli/report.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <gemmery/error.hpp>

#include "cli/quantities.hpp"
#include "cli/report_chart.hpp"
#include "cli/report_frame.hpp"
#include "cli/report_parts.hpp"

namespace gemmery::cli {
namespace {

std::vector<const BenchRow*> rows_of(const BenchRecord& record, const std::string& problem) {
  std::vector<const BenchRow*> rows;
  for (const BenchRow& row : record.rows)
    if (row.problem == problem) rows.push_back(&row);
  return rows;
}

// --- ratios -------------------------------------------------------------------------------------

RatioBar ratio_to(const BenchRow& row, const BenchRow& first, int kind) {
  if (row.paired && row.paired->kernel == first.kernel)
    return {.name = row.problem,
            .kind = kind,
            .ratio = row.paired->median,
            .least = row.paired->quartile_low,
            .greatest = row.paired->quartile_high};
  return {.name = row.problem,
          .kind = kind,
          .ratio = row.median_us / first.median_us,
          .least = row.quartile_low_us / first.quartile_high_us,
          .greatest = row.quartile_high_us / first.quartile_low_us};
}

// For each class, its fastest kernel of each problem against the first kernel; by the names of both
// classes.
Html competitors(const BenchRecord& record, const KernelClasses& classes) {
  std::map<std::string, std::vector<RatioBar>> bars;
  for (const std::string& problem : problems_of(record)) {
    const auto rows = rows_of(record, problem);
    std::map<std::string, const BenchRow*> fastest;
    for (const BenchRow* const row : rows) {
      const BenchRow*& known = fastest[row->kernel_class];
      if (known == nullptr || row->median_us < known->median_us) known = row;
    }
    for (const auto& [name, row] : fastest)
      if (name != rows.front()->kernel_class)
        bars[name + " over " + rows.front()->kernel_class].push_back(
            ratio_to(*row, *rows.front(), classes.kind_of(*row)));
  }
  Html parts;
  for (const auto& [name, list] : bars) parts += element("h3", text(name)) + ratio_bars(list);
  return parts.is_empty() ? element("p", text("One class of kernels was timed; --top 0 times all."))
                          : parts;
}

// --- problems -----------------------------------------------------------------------------------

std::string value_text(const BenchRow& row) {
  return fmt::format("{}, {}", time_text(row.median_us), rate_text(row.flops_per_second));
}

Html time_bar(const BenchRow& row, double longest_us, const KernelClasses& classes) {
  const Axis axis(Axis::Scale::linear, 0, longest_us);
  const Html content = bar({.kind = classes.kind_of(row),
                            .begin = 0,
                            .end = axis.percent(row.median_us),
                            .whisker_low = axis.percent(row.quartile_low_us),
                            .whisker_high = axis.percent(row.quartile_high_us)},
                           row.kernel);
  return picture(18, fmt::format("median {}", time_text(row.median_us)), content);
}

Html problem_part(const std::string& problem, const std::vector<const BenchRow*>& rows,
                  const KernelClasses& classes) {
  double longest_us = 0;
  for (const BenchRow* const row : rows) longest_us = std::max(longest_us, row->quartile_high_us);
  Html part = element("h3", text(problem));
  for (const BenchRow* const row : rows)
    part += labelled_row(row->kernel, value_text(*row),
                         time_bar(*row, longest_us, classes) + sample_strip(*row, classes));
  return part;
}

Html problem_parts(const BenchRecord& record, const KernelClasses& classes) {
  Html parts = classes.legend();
  for (const std::string& problem : problems_of(record))
    parts += problem_part(problem, rows_of(record, problem), classes);
  return parts;
}

Html figures(const BenchRecord& record) {
  HtmlTable table("Times are medians and quartiles of a run.",
                  {"problem", "kernel", ">median", ">quartiles", ">samples", ">rate", ">roofline"});
  for (const BenchRow& row : record.rows)
    table.add_row(
        {row.problem, row.kernel, time_text(row.median_us),
         fmt::format("{} .. {}", time_text(row.quartile_low_us), time_text(row.quartile_high_us)),
         std::to_string(row.samples_us.size()), rate_text(row.flops_per_second),
         share_text(row.roofline_share)});
  return table.html();
}

// Records of races have no peaks.
std::string roofline_words(const BenchRecord& record) {
  const bool has_peaks = std::ranges::any_of(
      record.rows, [](const BenchRow& row) { return row.arithmetic_us > 0 || row.memory_us > 0; });
  return std::string("A mark is a kernel on a problem.") +
         (has_peaks
              ? " The lines are the device's peaks of arithmetic, one for each kind of types, "
                "and the bandwidth of its memory."
              : "");
}

}  // namespace

std::string report_page(const BenchRecord& record) {
  KernelClasses classes;
  classes.add(record);
  Html page = section("Machine", "Where and with what it was timed.", facts_list(record.facts));
  page += section("Roofline", roofline_words(record), roofline(record, classes));
  page += section("Ratio to each competitor",
                  "Time over that of the kernel that discovery ranks first. Beyond the dashed line "
                  "at 1 a kernel is slower than the first. The lines within are by quartiles.",
                  competitors(record, classes));
  page +=
      section("Problems",
              "Bars are medians, from zero, with a line between the quartiles. " + strip_words(),
              problem_parts(record, classes));
  page += section("All figures", "The same numbers as a table.", figures(record));
  const std::size_t count = problems_of(record).size();
  return whole_page(fmt::format("Kernels on {} problem{}", count, count == 1 ? "" : "s"), page);
}

void write_page(const std::string& path, const std::string& page) {
  const std::string aside = path + ".part";
  std::ofstream file(aside, std::ios::binary);
  file << page;
  file.close();
  if (file && std::rename(aside.c_str(), path.c_str()) == 0) return;
  std::remove(aside.c_str());
  throw Error({.kind = ErrorKind::io,
               .operand = "--report " + path,
               .expected = "a file that can be written",
               .got = "an error of the file system"});
}

}  // namespace gemmery::cli
