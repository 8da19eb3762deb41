// SPDX-License-Identifier: Apache-2.0
// Parallel compilations, on the threads of parallel loops.
#include <gemmery/artifact.hpp>
#include <gemmery/family.hpp>

#include <algorithm>
#include <mutex>
#include <thread>

#include "jit/cancellation.hpp"
#include "jit/compiler.hpp"
#include "platform/parallel.hpp"
#include "runtime/stored_artifact.hpp"

namespace gemmery {
namespace {

CompileResult compile_one(const CompileJob& job, const CompileOptions& options) {
  try {
    const jit::ScopedCancellation scope(options.stop);
    Artifact artifact = job.kernel.compile(job.target);
    if (options.with_ptx) runtime::make_ptx(artifact);
    return {.job = job, .artifact = std::move(artifact)};
  } catch (const Error& error) {
    return {.job = job, .error = error};
  } catch (const std::exception& error) {
    return {.job = job,
            .error = Error({.kind = ErrorKind::compile,
                            .operand = job.kernel.name() + " for " + to_string(job.target),
                            .got = error.what()})};
  }
}

}  // namespace

std::vector<CompileResult> compile_all(std::span<const CompileJob> jobs,
                                       const CompileOptions& options) {
  std::vector<CompileResult> results;
  for (const CompileJob& job : jobs) results.push_back({.job = job});
  std::mutex ending;
  std::size_t done = 0;
  const auto compile_chunk = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      CompileResult& result = results[static_cast<std::size_t>(index)];
      result = compile_one(result.job, options);
      const std::lock_guard lock(ending);
      ++done;
      if (options.progress) options.progress(result, done, results.size());
    }
  };
  const int threads = options.jobs > 0 ? options.jobs : jit::job_limit();
  platform::parallel_for(static_cast<std::int64_t>(results.size()), 1, compile_chunk, threads);
  return results;
}

std::vector<CompileResult> compile_all(std::span<const Kernel> kernels, Target target,
                                       const CompileOptions& options) {
  std::vector<CompileJob> jobs;
  for (const Kernel& kernel : kernels) jobs.push_back({kernel, target});
  return compile_all(jobs, options);
}

}  // namespace gemmery
