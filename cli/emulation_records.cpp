// SPDX-License-Identifier: Apache-2.0
#include "cli/emulation_records.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gemmery/error.hpp>

namespace gemmery::cli {
Record to_record(const EmulatedPlace& place) {
  Record record = {{"kernel", place.kernel}, {"block", place.block}};
  if (place.warp >= 0) record["warp"] = place.warp;
  if (place.lane >= 0) record["lane"] = place.lane;
  record["ptx_line"] = place.ptx_line;
  record["ptx"] = place.ptx_text;
  record["file"] = place.source_file;
  record["line"] = place.source_line;
  if (place.call_line != 0) {
    record["call_file"] = place.call_file;
    record["call_line"] = place.call_line;
  }
  return record;
}

std::string read_text(const std::string& file) {
  errno = std::filesystem::is_directory(file) ? EISDIR : 0;
  if (errno == 0) {
    std::ifstream stream(file, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (stream.is_open() && !stream.bad()) return text;
  }
  throw Error({.kind = ErrorKind::io,
               .operand = file,
               .expected = "a file that can be read",
               .got = std::strerror(errno)});
}

void write_finding(const EmulationFinding& finding, Output& output) {
  Record record = {{"record", "finding"}, {"kind", finding.kind}, {"message", finding.message}};
  if (finding.place.ptx_line != 0) record["at"] = to_record(finding.place);
  if (finding.other.ptx_line != 0) record["with"] = to_record(finding.other);
  record["by_the_letter"] = finding.is_by_the_letter;
  record["ended_block"] = finding.ended_block;
  record["count"] = finding.count;
  record["seeds"] = finding.seeds;
  if (!finding.rule.empty()) record["suppressed_by"] = finding.rule;
  record["report"] = finding.report;
  output.write_record(record);
}

}  // namespace gemmery::cli
