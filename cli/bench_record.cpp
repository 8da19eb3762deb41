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

namespace gemmery::cli {
namespace {

bool is_digit(char character) { return std::isdigit(static_cast<unsigned char>(character)) != 0; }

// "host_onednn" of "host_onednn_v1_f32…", "sm90" of "sm90v7_gemm_…".
std::string class_of(const std::string& kernel) {
  for (std::size_t place = kernel.find('v'); place != std::string::npos;
       place = kernel.find('v', place + 1)) {
    const bool begins = place > 0 && (kernel[place - 1] == '_' || is_digit(kernel[place - 1]));
    if (!begins || place + 1 >= kernel.size() || !is_digit(kernel[place + 1])) continue;
    return kernel.substr(0, kernel[place - 1] == '_' ? place - 1 : place);
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

std::string fact_text(const Record& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void read_facts(const Record& record, BenchRecord& bench) {
  const auto add = [&](std::string name, const char* field) {
    const auto found = record.find(field);
    if (found != record.end()) bench.facts.emplace_back(std::move(name), fact_text(*found));
  };
  add("device", "device_name");
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
                .expected = "a line that gemmery bench --json wrote",
                .got = std::move(got)});
}

Record parse_line(const std::string& line, const std::string& where) {
  try {
    Record record = Record::parse(line);
    (void)read_row(record);
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
  for (const Record& record : records) bench.rows.push_back(read_row(record));
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
