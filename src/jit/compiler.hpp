// SPDX-License-Identifier: Apache-2.0
// Compiles one source to a cubin or to PTX, with NVRTC or with nvcc. No cache: every call compiles.
#pragma once

#include <gemmery/target.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "core/code_form.hpp"

namespace gemmery::jit {

struct CompileRequest {
  std::string source;  // includes <…> of embedded headers only, unless has_own_headers
  std::string entry;   // the extern "C" __global__ function
  Target target;
  CodeForm form = CodeForm::cubin;
  std::vector<std::string> extra_options;  // a -std among them replaces ours
  // True if "…" is searched for beside the including file, and in the working directory for the
  // source.
  bool has_own_headers = false;

  friend bool operator==(const CompileRequest&, const CompileRequest&) = default;
};

// The resources that ptxas reports for the entry.
struct CodeUsage {
  int registers = 0;
  int static_shared_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int stack_bytes = 0;

  friend bool operator==(const CodeUsage&, const CodeUsage&) = default;
};

// In the order of artifact files, each with the largest value that code can have.
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

// Code for one target, with the compiler's report on it.
struct CompiledCode {
  std::vector<std::byte> cubin;  // or, if that form was asked for,
  std::string ptx;               // with line information
  std::string log;
  CodeUsage usage;        // of a cubin
  double compile_ms = 0;  // 0 where it came from a cache
  bool was_kept = false;  // true if it did
};

// The options that NVRTC gets for a request, in order: those that shape the code, which are part of
// the key, and those that do not.
std::vector<std::string> code_options(const CompileRequest& request);
std::vector<std::string> compile_options(const CompileRequest& request);

// True if an option sets the language standard; NVRTC warns about two of them.
bool names_standard(const std::vector<std::string>& options);

// The number of simultaneous compilations: GEMMERY_NUM_COMPILE_JOBS, else the number of cores.
// Throws Error (invalid_argument) for any other value of the variable.
int job_limit();

// Compiles with the compiler that GEMMERY_COMPILER names. Throws Error: compile, with the
// compiler's log, for source that it refuses or warns about; Cancelled if this thread's scope
// requests it; unsupported for a target that the compiler does not know, or a version that is known
// to miscompile; unavailable without a compiler, or in a process that was forked during a
// compilation. At most GEMMERY_NUM_COMPILE_JOBS (default: the number of cores) run at a time. One
// that takes longer than GEMMERY_COMPILE_TIMEOUT seconds (default: 300) is cancelled.
CompiledCode compile(const CompileRequest& request);

}  // namespace gemmery::jit
