// SPDX-License-Identifier: Apache-2.0
// Records of `bench` as one HTML page that needs nothing else: charts, the machine, all figures.
#pragma once

#include <string>

#include "cli/bench_record.hpp"

namespace gemmery::cli {

// Roofline, ratios to each competitor, times and the distribution of samples for each problem.
std::string report_page(const BenchRecord& record);

// Times of the second record over those of the first, for each kernel and problem of both.
std::string comparison_page(const BenchRecord& before, const BenchRecord& after);

// A kernel on a problem in both records.
struct ComparedRow {
  const BenchRow* before;
  const BenchRow* after;
  double ratio() const { return after->median_us / before->median_us; }
  // From the quartiles that make it least and greatest.
  double least_ratio() const { return after->quartile_low_us / before->quartile_high_us; }
  double greatest_ratio() const { return after->quartile_high_us / before->quartile_low_us; }
};
std::vector<ComparedRow> compare_records(const BenchRecord& before, const BenchRecord& after);

// Writes a whole file: readers see the old one or the new one. Throws Error (io).
void write_page(const std::string& path, const std::string& page);

}  // namespace gemmery::cli
