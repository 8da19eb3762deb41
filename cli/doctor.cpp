// SPDX-License-Identifier: Apache-2.0
// gemmery doctor: devices and libraries of this machine, and the features that they enable.
#include <sstream>

#include <gemmery/doctor.hpp>

#include "cli/verbs.hpp"

namespace gemmery::cli {
namespace {

Record library_record(const LibraryFinding& library) {
  return {{"name", library.name},       {"found", library.found},
          {"path", library.path},       {"version", library.version},
          {"enables", library.enables}, {"searched", library.searched}};
}

Record doctor_record(const DoctorReport& report) {
  Record record = {
      {"gemmery_version", report.gemmery_version}, {"cpu", report.cpu}, {"gpus", report.gpus}};
  record["emulated"] = report.emulated;
  record["unconfirmed_facts"] = report.unconfirmed_facts;
  record["cache"] = {{"folder", report.cache.folder},     {"is_usable", report.cache.is_usable},
                     {"refusal", report.cache.refusal},   {"entries", report.cache.entries},
                     {"bytes", report.cache.bytes},       {"most_bytes", report.cache.most_bytes},
                     {"hits", report.cache.counters.hits}};
  record["libraries"] = Record::array();
  for (const LibraryFinding& library : report.libraries)
    record["libraries"].push_back(library_record(library));
  return record;
}

}  // namespace

ExitCode report_doctor(const Options&, Output& output) {
  const DoctorReport report = doctor();
  if (output.is_text()) {
    std::istringstream lines(to_string(report));
    for (std::string line; std::getline(lines, line);) output.write_prose(line);
  } else {
    output.write_record(doctor_record(report));
  }
  return ExitCode::success;
}

}  // namespace gemmery::cli
