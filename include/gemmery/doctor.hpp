// SPDX-License-Identifier: Apache-2.0
// A report on this machine: which libraries were found, where, in which version, and what each
// enables.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <gemmery/cache.hpp>
#include <gemmery/export.hpp>

namespace gemmery {

struct LibraryFinding {
  std::string name = {};  // "NVRTC"
  bool found = false;
  std::string path = {};  // absolute; empty if not found
  std::string version = {};
  std::string enables = {};   // "compiling kernels from source"
  std::string searched = {};  // where it was looked for, if it was not found
};

struct DoctorReport {
  std::string gemmery_version;
  std::string cpu;  // model and instruction sets that kernels use
  std::vector<LibraryFinding> libraries;
  std::vector<std::string> gpus;      // one line each; empty without a driver
  std::vector<std::string> emulated;  // devices that are always here: "emulated:h200"
  // For known devices, by name: the facts that no source confirms, such as "clock".
  std::map<std::string, std::string> unconfirmed_facts;
  CacheReport cache;  // of compiled code, on disk
};

// Does not throw for missing libraries and devices: it reports them.
GEMMERY_API DoctorReport doctor();
GEMMERY_API std::string to_string(const DoctorReport& report);

}  // namespace gemmery
