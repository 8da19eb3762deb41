// SPDX-License-Identifier: Apache-2.0
// The resident memory of this process, which grows if memory leaks.
#pragma once

#include <unistd.h>

#include <fstream>

namespace gemmery::tests {

inline double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double all_pages = 0;
  double resident_pages = 0;
  file >> all_pages >> resident_pages;
  return resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1024 * 1024);
}

}  // namespace gemmery::tests
