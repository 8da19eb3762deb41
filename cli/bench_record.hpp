// SPDX-License-Identifier: Apache-2.0
// What one `gemmery bench` has recorded, as reports and comparisons read it: the lines of --json.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/output.hpp"

namespace gemmery::cli {

// A kernel on a problem. Times are in microseconds per run.
struct BenchRow {
  std::string problem;
  std::string kernel;
  std::string kernel_class;  // the kernel's name up to its version: "host_onednn", "sm90"
  double median_us = 0;
  double quartile_low_us = 0;
  double quartile_high_us = 0;
  std::vector<double> samples_us;  // in the order of time; empty in records of earlier versions
  double flops_per_second = 0;
  double roofline_share = 0;
  // The least times by arithmetic and by memory traffic; 0 if unknown.
  double arithmetic_us = 0;
  double memory_us = 0;
  double bytes = 0;

  // Of a library that was timed in turn with a kernel: its time over that kernel's, by pairs.
  struct PairedRatio {
    std::string kernel;
    double median = 0;
    double quartile_low = 0;
    double quartile_high = 0;
  };
  std::optional<PairedRatio> paired = {};

  double flops() const { return flops_per_second * median_us * 1e-6; }
};

struct BenchRecord {
  std::string name;  // of its file; empty for one that was just made
  std::vector<std::pair<std::string, std::string>> facts;  // device, clock, compiler, versions
  std::vector<BenchRow> rows;
};

// Adds what a record says of the machine and the program.
void add_machine(Record& record);

// From records as `bench --json` writes them.
BenchRecord read_records(const std::vector<Record>& records);

// Of a file with one JSON object per line, which gemmery bench --json wrote, or of the races in
// bench/results: a line of a race is the first kernel and, if it ran the problem, its competitor.
// Throws Error: io if it cannot be read, invalid_argument,
// with the line, for what is no record.
BenchRecord read_record_file(const std::string& path);

// The problems of a record, in its order.
std::vector<std::string> problems_of(const BenchRecord& record);

}  // namespace gemmery::cli
