// SPDX-License-Identifier: Apache-2.0
// System calls for files that fail on demand, for use in platform::FileCalls. For one test at a
// time, with one thread.
#pragma once

#include <string>
#include <vector>

#include "platform/file_calls.hpp"

namespace gemmery::tests {

// The kind of failure.
enum class Fault {
  error,        // fails with an error number, without effect
  interrupted,  // fails with EINTR; the same call succeeds when repeated
  half,         // read and write: half of the bytes; other calls: unchanged
  lie,  // fstat and fstatat: wrong sizes and numbers; renameat: succeeds and reports a failure
};

struct FaultPlan {
  Fault fault = Fault::error;
  int error = 0;
  long first = 0;    // the first call that fails, counted from 0
  long count = 1;    // the number of consecutive calls that fail
  std::string only;  // if not empty, only calls of this function ("write") fail and are counted
};

// The table of these calls.
const platform::FileCalls& failing_calls();
void set_fault_plan(const FaultPlan& plan);
// No call fails; counting continues.
void clear_fault_plan();
long calls_made();
// The names in the order of the table: "openat", "close", …
const std::vector<std::string>& call_names();

}  // namespace gemmery::tests
