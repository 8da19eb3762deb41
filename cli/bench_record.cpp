// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_record.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <gemmery/doctor.hpp>
#include <gemmery/error.hpp>
#include <gemmery/problem.hpp>

namespace gemmery::cli {
namespace {

bool is_digit(char character) { return std::isdigit(static_cast<unsigned char>(character)) != 0; }

// Where the digits at its end begin: 5 for "sm90v7".
std::size_t digits_begin(std::string_view word) {
  const std::size_t last = word.find_last_not_of("0123456789");
  return last == std::string_view::npos ? 0 : last + 1;
}

// "sm90" of "sm90v7", "simt" of "simt1", "host_onednn" of "host_onednn_v1"; nothing for a word that
// ends in no version.
std::string_view without_version(std::string_view words) {
  const std::size_t begin = digits_begin(words);
  if (begin == words.size() || begin == 0) return {};
  std::string_view family = words.substr(0, begin);
  const bool has_v = family.ends_with('v') && family.size() > 1 &&
                     (family[family.size() - 2] == '_' || is_digit(family[family.size() - 2]));
  if (has_v) family.remove_suffix(family[family.size() - 2] == '_' ? 2 : 1);
  return family;
}

// A kernel's name up to its version, which ends one of its first three words; the whole name of one
// without.
std::string class_of(const std::string& kernel) {
  std::size_t end = 0;
  for (int word = 0; word < 3 && end != std::string::npos; ++word) {
    end = kernel.find('_', end == 0 ? 0 : end + 1);
    const std::string_view family = without_version(std::string_view(kernel).substr(0, end));
    if (!family.empty()) return std::string(family);
  }
  return kernel;
}

double number_in(const Record& record, const char* name) {
  const auto found = record.find(name);
  return found != record.end() && found->is_number() ? found->get<double>() : 0;
}

BenchRow read_row(const Record& record) {
  BenchRow row{.problem = record.at("problem"),
               .kernel = record.at("kernel_name"),
               .kernel_class = {},
               .median_us = record.at("median_us"),
               .quartile_low_us = record.at("quartile_low_us"),
               .quartile_high_us = record.at("quartile_high_us"),
               .samples_us = {},
               .flops_per_second = number_in(record, "flops_per_second"),
               .roofline_share = number_in(record, "roofline_share"),
               .arithmetic_us = number_in(record, "arithmetic_us"),
               .memory_us = number_in(record, "memory_us"),
               .bytes = number_in(record, "bytes")};
  row.kernel_class = class_of(row.kernel);
  if (record.contains("samples_us"))
    row.samples_us = record["samples_us"].get<std::vector<double>>();
  return row;
}

// --- races --------------------------------------------------------------------------------------

bool is_of_race(const Record& record) {
  return record.contains("ours_us") || record.contains("error");
}

BenchRow row_of_race(const Record& record, std::string kernel, const char* time) {
  const std::string problem = record.at("problem");
  const GemmProblem parsed = parse_problem(problem).problem;
  BenchRow row;
  row.problem = problem;
  row.kernel = std::move(kernel);
  row.kernel_class = class_of(row.kernel);
  row.median_us = row.quartile_low_us = row.quartile_high_us = record.at(time);
  row.bytes = parsed.bytes();
  if (row.median_us > 0) row.flops_per_second = parsed.flops() / row.median_us * 1e6;
  return row;
}

// Adds the rows of a line; none of a problem that failed.
void add_race(const Record& record, BenchRecord& bench) {
  if (record.contains("error")) return;
  bench.rows.push_back(row_of_race(record, record.at("kernel"), "ours_us"));
  if (!record.contains("theirs_us")) return;
  BenchRow row = row_of_race(record, record.at("peer"), "theirs_us");
  const double ratio = record.at("ratio_median");
  const Record quartiles = record.value("ratio_quartiles", Record::array({ratio, ratio}));
  row.paired = {.kernel = record.at("kernel"),
                .median = ratio,
                .quartile_low = quartiles.at(0),
                .quartile_high = quartiles.at(1)};
  bench.rows.push_back(std::move(row));
}

void add_rows(const Record& record, BenchRecord& bench) {
  if (is_of_race(record)) return add_race(record, bench);
  bench.rows.push_back(read_row(record));
}

// --- facts --------------------------------------------------------------------------------------

std::string fact_text(const Record& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void read_facts(const Record& record, BenchRecord& bench) {
  const auto add = [&](std::string name, const char* field) {
    const auto found = record.find(field);
    if (found != record.end()) bench.facts.emplace_back(std::move(name), fact_text(*found));
  };
  add("device", record.contains("device_name") ? "device_name" : "device");
  add("competitor", "peer");
  add("its version", "peer_version");
  add("commit", "commit");
  if (number_in(record, "clock_ghz") > 0)
    bench.facts.emplace_back("clock", fmt::format("{:.3g} GHz", number_in(record, "clock_ghz")));
  add("operands", "data");
  add("gemmery", "gemmery_version");
  const auto versions = record.find("versions");
  if (versions == record.end() || !versions->is_object()) return;
  for (const auto& [name, version] : versions->items())
    bench.facts.emplace_back(name, fact_text(version));
}

Error bad_record(const std::string& where, std::string got) {
  return Error({.kind = ErrorKind::invalid_argument,
                .operand = where,
                .expected = "a line that gemmery bench --json or a race wrote",
                .got = std::move(got)});
}

Record parse_line(const std::string& line, const std::string& where) {
  try {
    Record record = Record::parse(line);
    BenchRecord probe;
    add_rows(record, probe);
    return record;
  } catch (const Record::exception& error) {
    throw bad_record(where, error.what());
  }
}

// Of this program, and of the library that was built with it.
std::string compiler_text() {
#if defined(__clang__)
  return __VERSION__;  // begins with its name
#else
  return std::string("GCC ") + __VERSION__;
#endif
}

}  // namespace

void add_machine(Record& record) {
  static const DoctorReport report = doctor();
  record["gemmery_version"] = report.gemmery_version;
  record["versions"] = {{"compiled by", compiler_text()}};
  for (const LibraryFinding& library : report.libraries)
    record["versions"][library.name] = library.found ? library.version : "not found";
}

BenchRecord read_records(const std::vector<Record>& records) {
  BenchRecord bench;
  for (const Record& record : records) add_rows(record, bench);
  if (!records.empty()) read_facts(records.front(), bench);
  return bench;
}

BenchRecord read_record_file(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    throw Error({.kind = ErrorKind::io,
                 .operand = path,
                 .expected = "a file that can be read",
                 .got = std::strerror(errno)});
  std::vector<Record> records;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!line.empty())
      records.push_back(parse_line(line, fmt::format("{}, line {}", path, number)));
  }
  if (records.empty()) throw bad_record(path, "an empty file");
  BenchRecord bench = read_records(records);
  bench.name = path.substr(path.find_last_of('/') + 1);
  return bench;
}

std::vector<std::string> problems_of(const BenchRecord& record) {
  std::vector<std::string> problems;
  for (const BenchRow& row : record.rows)
    if (std::ranges::find(problems, row.problem) == problems.end()) problems.push_back(row.problem);
  return problems;
}

}  // namespace gemmery::cli
