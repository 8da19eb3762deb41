// SPDX-License-Identifier: Apache-2.0
// Compiled kernels as files, and many compilations at once: ahead of time, on a machine that needs
// no GPU, for machines that need no compiler.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <gemmery/error.hpp>
#include <gemmery/export.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/target.hpp>

namespace gemmery {

// --- many compilations ---------------------------------------------------------------------------

struct CompileJob {
  Kernel kernel;
  Target target;
};

// The outcome of one job: an artifact, or the error.
struct CompileResult {
  CompileJob job;
  std::optional<Artifact> artifact = std::nullopt;
  std::optional<Error> error = std::nullopt;
};

struct CompileOptions {
  int jobs = 0;  // at a time; 0: GEMMERY_NUM_COMPILE_JOBS, else one per core
  // Also makes the PTX of each kernel, which files can keep and emulated devices run.
  bool with_ptx = false;
  // Called after each compilation, by one thread at a time, with the result, the number of finished
  // jobs and the number of all jobs.
  std::function<void(const CompileResult&, std::size_t done, std::size_t all)> progress = {};
  // Requests cancellation: running compilations are cancelled, and no other one starts.
  std::stop_token stop = {};
};

// Compiles in parallel; results are in the order of the jobs. A failed job does not affect others.
// If `progress` throws, jobs that have not begun are dropped and the exception is rethrown.
GEMMERY_API std::vector<CompileResult> compile_all(std::span<const CompileJob> jobs,
                                                   const CompileOptions& options = {});
GEMMERY_API std::vector<CompileResult> compile_all(std::span<const Kernel> kernels, Target target,
                                                   const CompileOptions& options = {});

// --- files ---------------------------------------------------------------------------------------

// An artifact with the problem lines that it was compiled for, which are kept with it.
struct StoredArtifact {
  Artifact artifact;
  std::vector<std::string> problems = {};
};

struct SaveOptions {
  // Also keeps PTX, which emulated devices run; it is compiled now if it is missing.
  bool with_ptx = false;
};

// Writes one self-contained file: cubins, sources, logs, designs, resources. Code that is given
// twice for a target is stored once, with the problems of both. The file is written under a
// temporary name and renamed. Throws Error: unsupported for kernels that are not compiled (those of
// the CPU), io.
GEMMERY_API void save_artifacts(const std::string& path, std::span<const StoredArtifact> artifacts,
                                const SaveOptions& options = {});

// Loads the artifacts of a file, one for each kernel with all its targets; no compiler is needed.
// Families of users must be registered before. Throws Error: io for a file that cannot be read or
// is damaged; unsupported for one of another format, or with a family, a version of a family, a
// kernel or a target that this library does not have. Code that was never launched is unloaded from
// its devices when the last copy of the artifact is destroyed; launched code stays loaded, equal
// code only once.
GEMMERY_API std::vector<StoredArtifact> load_artifacts(const std::string& path);

// --- looking into files --------------------------------------------------------------------------

// The entry of a file for one kernel and one target, even if this library cannot load it.
struct ArtifactSummary {
  std::string kernel_name;
  std::string provider;
  std::string family;
  int family_version = 0;
  Target target;
  std::vector<DesignField> design;
  std::string epilogue;
  std::vector<std::string> problems;
  std::string source;
  std::string log;
  double compile_ms = 0;
  std::optional<CodeResources> resources;  // of the cubin
  std::size_t cubin_bytes = 0;             // 0: none
  std::size_t ptx_bytes = 0;
  std::string refusal;  // why `load_artifacts` refuses it; empty if it does not
  // Counts of machine instructions by their names with modifiers, if this machine has a
  // disassembler; otherwise the reason.
  std::map<std::string, int> instructions;
  std::string no_instructions;
};

struct ArtifactFileSummary {
  std::string library_version;  // of the library that wrote it
  std::size_t bytes = 0;
  std::vector<ArtifactSummary> kernels;
};

// Throws Error (io, unsupported) if the file is damaged or has another format.
GEMMERY_API ArtifactFileSummary inspect_artifacts(const std::string& path);

// The same for an artifact in memory, one for each of its targets. Throws Error (unsupported) for
// kernels that are not compiled (those of the CPU).
GEMMERY_API std::vector<ArtifactSummary> summarize(const Artifact& artifact);

// --- looking into code ---------------------------------------------------------------------------

// A kernel's code for one target.
struct KernelCode {
  std::string kernel_name;
  Target target;
  std::string source;            // CUDA C++, which includes the library's device headers
  std::string ptx;               // empty: none
  std::vector<std::byte> cubin;  // an ELF file; empty: none
};

// The code of an artifact for each of its targets. `with_ptx`: compiles PTX that is missing. Throws
// Error: unsupported for kernels that are not compiled (those of the CPU); compile.
GEMMERY_API std::vector<KernelCode> code_of(const Artifact& artifact, bool with_ptx = false);

// The code in a file, also of kernels that this library cannot load. Throws as `inspect_artifacts`.
GEMMERY_API std::vector<KernelCode> code_in_file(const std::string& path);

// The machine code of a cubin as text (SASS). Throws Error (unavailable) if this machine has no
// nvdisasm (GEMMERY_NVDISASM names one), or if it refuses the cubin.
GEMMERY_API std::string disassemble(std::span<const std::byte> cubin);

// A source with the text of the library's device headers in place of the lines that include them:
// one file, which a compiler takes without the library. The headers are those of this version.
GEMMERY_API std::string with_headers(std::string_view source);

}  // namespace gemmery
