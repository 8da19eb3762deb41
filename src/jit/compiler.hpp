// SPDX-License-Identifier: Apache-2.0
// Compiles one source to a cubin or to PTX, with NVRTC or with nvcc. No cache here: every call
// compiles.
#pragma once

#include <gemmery/target.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "core/code_form.hpp"

namespace gemmery::jit {

struct CompileRequest {
  std::string source;  // with <…> includes of embedded headers only, or has_own_headers
  std::string entry;   // the extern "C" __global__ function
  Target target;
  CodeForm form = CodeForm::cubin;
  std::vector<std::string> extra_options;  // a -std among them takes the place of ours
  // Whether "…" is looked for beside the including file, and the source's in the working directory.
  bool has_own_headers = false;

  friend bool operator==(const CompileRequest&, const CompileRequest&) = default;
};

// What ptxas says of the entry.
struct CodeUsage {
  int registers = 0;
  int static_shared_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int stack_bytes = 0;

  friend bool operator==(const CodeUsage&, const CodeUsage&) = default;
};

// In the order in which files hold them, each with what no code can have more of.
struct UsageField {
  const char* name;
  int CodeUsage::*value;
  int most = 1 << 30;
};
inline constexpr std::array<UsageField, 5> usage_fields{
    {{"registers", &CodeUsage::registers, 1024},
     {"static shared bytes", &CodeUsage::static_shared_bytes},
     {"spill store bytes", &CodeUsage::spill_store_bytes},
     {"spill load bytes", &CodeUsage::spill_load_bytes},
     {"stack bytes", &CodeUsage::stack_bytes}}};

// Code for one target, with what the compiler said of it.
struct CompiledCode {
  std::vector<std::byte> cubin;  // or, where that was the form asked for,
  std::string ptx;               // with the lines of the source
  std::string log;
  CodeUsage usage;        // of a cubin
  double compile_ms = 0;  // 0 where it came from a cache
  bool was_kept = false;  // whether it did
};

// The options that NVRTC gets for a request, in order: those that shape the code, which are part of
// the key of what is built, and with them those that do not.
std::vector<std::string> code_options(const CompileRequest& request);
std::vector<std::string> compile_options(const CompileRequest& request);

// Whether an option names the language's standard; two of them are a warning.
bool names_standard(const std::vector<std::string>& options);

// How many compilations run at a time: GEMMERY_NUM_COMPILE_JOBS, else the cores. Throws Error
// (invalid_argument) for a variable that is no such number.
int job_limit();

// By the compiler that GEMMERY_COMPILER names. Throws Error: compile with the compiler's log for
// source that it refuses or warns about, Cancelled where the scope of this thread asks for it,
// unsupported for a target that it does not know or a version that is known to make wrong code,
// unavailable without a compiler or in a process
// that was forked in the middle of a compilation. At most GEMMERY_NUM_COMPILE_JOBS run at a time
// (by default as many as there are cores); one that takes longer than GEMMERY_COMPILE_TIMEOUT
// seconds (by default 300) is cancelled.
CompiledCode compile(const CompileRequest& request);

}  // namespace gemmery::jit
