// SPDX-License-Identifier: Apache-2.0
// System calls of files that fail when a test says so: in the place of the real ones behind
// platform::FileCalls. For one test at a time, with one thread.
#pragma once

#include <string>
#include <vector>

#include "platform/file_calls.hpp"

namespace gemmery::tests {

// What happens to a call instead of what it asks for.
enum class Fault {
  error,        // it fails with an error number and nothing is done
  interrupted,  // it fails with EINTR, the same call succeeds when made again
  half,         // read and write: half of the bytes; other calls: as they are
  lie,  // fstat and fstatat: sizes and numbers are made up; renameat: done, and says it failed
};

struct FaultPlan {
  Fault fault = Fault::error;
  int error = 0;
  long first = 0;    // the first call that it happens to, counted from 0 …
  long count = 1;    // … and how many in a row
  std::string only;  // this call alone: "write"; counted are then its calls only
};

// The table of these calls.
const platform::FileCalls& failing_calls();
void set_fault_plan(const FaultPlan& plan);
// Nothing fails; calls are counted on.
void clear_fault_plan();
long calls_made();
// Of the table, in its order: "openat", "close", …
const std::vector<std::string>& call_names();

}  // namespace gemmery::tests
