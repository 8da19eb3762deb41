// SPDX-License-Identifier: Apache-2.0
// Kernels with source compile for all their targets, without spilling more than allowed. A short
// run uses the same random sample every time; GEMMERY_SOAK=1 draws a new, larger one. No GPU is
// needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include <gemmery/gemmery.hpp>

#include "platform/parallel.hpp"
#include "tests/conformance/suite.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/spill_allowance.hpp"

namespace gemmery::conformance {
namespace {

struct Job {
  Kernel kernel;
  Target target;
};

std::vector<Job> draw_jobs(std::size_t count, Choices& choices) {
  std::vector<Kernel> kernels;
  for_each_kernel([&](const Kernel& kernel) {
    if (kernel.family().availability() && !kernel.family().targets(kernel).front().is_cpu())
      kernels.push_back(kernel);
  });
  std::vector<Job> jobs;
  for (const Kernel& kernel : choose_kernels(std::move(kernels), count, choices))
    jobs.push_back(
        {with_pointers(kernel, choices), choices.one_of(kernel.family().targets(kernel))});
  return jobs;
}

// The designs of kernels are template arguments by reference: newer compilers (NVRTC 13.5) read
// arguments by value from memory, objects whose mangled names begin like this.
constexpr std::string_view argument_in_memory = "_ZTAX";

// Compiles one kernel. Returns a failure message, or "".
std::string compile_and_judge(const Job& job) {
  try {
    const Artifact artifact = job.kernel.compile(job.target);
    if (artifact.source().empty()) return "no source";
    const auto resources = artifact.resources();
    if (!resources) return "nothing is known of its resources";
    const auto spilled = resources->spill_store_bytes + resources->spill_load_bytes;
    if (spilled > tests::allowed_spills(job.kernel, job.target))
      return fmt::format("spills {} bytes and loads {} back, with {} registers",
                         resources->spill_store_bytes, resources->spill_load_bytes,
                         resources->registers);
    const std::vector<std::byte> code = code_of(artifact).front().cubin;
    if (!std::ranges::search(code, std::as_bytes(std::span(argument_in_memory))).empty())
      return "a template argument is an object in memory";
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

bool has_compiler(const Job& job) {
  try {
    (void)job.kernel.compile(job.target);
    return true;
  } catch (const Error& error) {
    return error.kind() != ErrorKind::unavailable;
  }
}

TEST(Compilation, kernels_compile_for_their_targets_without_spills) {
  Choices choices(tests::compilation_seed());
  const std::vector<Job> jobs = draw_jobs(is_soak() ? 600 : 12, choices);
  if (jobs.empty()) GTEST_SKIP() << "no family that compiles";
  if (!has_compiler(jobs.front())) GTEST_SKIP() << "no NVRTC on this machine";
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  {
    std::vector<std::jthread> workers;
    for (int worker = 0; worker < platform::thread_count(); ++worker) {
      workers.emplace_back([&] {
        for (std::size_t index = next++; index < jobs.size(); index = next++) {
          const std::string complaint = compile_and_judge(jobs[index]);
          const std::scoped_lock lock(mutex);
          EXPECT_TRUE(complaint.empty()) << jobs[index].kernel.name() << " for "
                                         << to_string(jobs[index].target) << ": " << complaint;
        }
      });
    }
  }
  std::cout << jobs.size() << " kernels compiled\n";
}

}  // namespace
}  // namespace gemmery::conformance
