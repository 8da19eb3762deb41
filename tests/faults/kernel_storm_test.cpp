// SPDX-License-Identifier: Apache-2.0
// RELIABILITY G10 with real kernels: many processes, each with its own builder and NVRTC, need the
// same kernels from one empty cache at once.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include <xxhash.h>

#include "jit/build.hpp"
#include "jit/nvrtc.hpp"
#include "tests/faults/failing_calls.hpp"
#include "tests/faults/sample_code.hpp"
#include "tests/faults/shared_tally.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::tests {
namespace {

constexpr int kernels = 20;

// Different constants in each run, so that no existing cache has the kernels.
jit::CompileRequest request_of(int number, std::uint64_t seed) {
  const std::string factor = std::to_string(seed % 100'000 + static_cast<std::uint64_t>(number));
  return {.source =
              "extern \"C\" __global__ void entry(float* out) {\n"
              "  out[threadIdx.x] *= " +
              factor + ".5f + blockIdx.x;\n}\n",
          .entry = "entry",
          .target = {90, 'a'},
          .extra_options = {}};
}

// Counters that all processes share.
struct Tally {
  std::atomic<int> is_open{0};
  std::atomic<int> failures{0};
  std::atomic<int> compiles[kernels]{};
  std::atomic<std::uint64_t> digests[kernels]{};  // of the code; 0: not compiled yet
};

// Whether all processes have the same bytes, from the cache or the compiler.
bool is_the_code_of_all(const SharedTally<Tally>& tally, int number,
                        const jit::CompiledCode& code) {
  const std::uint64_t digest = XXH3_64bits(code.cubin.data(), code.cubin.size()) | 1;
  std::uint64_t expected = 0;
  return !code.cubin.empty() &&
         (tally->digests[number].compare_exchange_strong(expected, digest) || expected == digest);
}

void need_all(jit::Builder& builder, const SharedTally<Tally>& tally, int process,
              std::uint64_t seed) {
  for (int turn = 0; turn < kernels; ++turn) {
    const int number = (turn + process) % kernels;
    try {
      const auto code = builder.build(request_of(number, seed));
      if (code->compile_ms > 0) ++tally->compiles[number];
      if (!is_the_code_of_all(tally, number, *code)) ++tally->failures;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      ++tally->failures;
    }
  }
}

int process_count() { return std::getenv("GEMMERY_SOAK") != nullptr ? 64 : 8; }

class KernelStorm : public testing::Test {
 protected:
  void SetUp() override {
    if (!is_compiler_here()) GTEST_SKIP() << "no NVRTC";
    settings_ = settings_at(folder_ / "cache");
    settings_.patience = std::chrono::seconds(60);
  }

  // Determined in a child process, since the storm must begin in processes that have not opened a
  // compiler.
  static bool is_compiler_here() {
    return holds_in_child([] { return jit::compiler_status().found; });
  }

  struct Outcome {
    int compiles = 0;
    int most = 0;  // the maximum for one kernel
  };

  Outcome storm(const platform::FileCalls& calls = platform::system_file_calls()) {
    const std::uint64_t seed = random_seed();
    const int processes = process_count();
    const SharedTally<Tally> tally;
    const auto start = std::chrono::steady_clock::now();
    for (int process = 0; process < processes; ++process) {
      if (fork() != 0) continue;
      alarm(580);
      while (tally->is_open == 0) std::this_thread::yield();
      jit::Builder builder(std::make_shared<jit::DiskCache>(settings_, calls),
                           jit::chosen_compiler_steps());
      need_all(builder, tally, process, seed);
      _exit(0);
    }
    tally->is_open = 1;
    EXPECT_EQ(count_failed_children(processes), 0);
    EXPECT_EQ(tally->failures, 0);
    Outcome outcome;
    for (const std::atomic<int>& count : tally->compiles) {
      outcome.compiles += count;
      outcome.most = std::max(outcome.most, count.load());
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    std::printf("%d processes x %d kernels: %d compilations, %d at most of one kernel, %.1f s\n",
                processes, kernels, outcome.compiles, outcome.most, elapsed.count());
    return outcome;
  }

  TemporaryFolder folder_{std::filesystem::temp_directory_path()};  // on a disk
  jit::CacheSettings settings_;
};

TEST_F(KernelStorm, on_a_local_file_system_each_kernel_is_compiled_once_and_then_never) {
  const Outcome cold = storm();
  EXPECT_EQ(cold.compiles, kernels);
  EXPECT_EQ(cold.most, 1);
  EXPECT_EQ(storm().compiles, 0) << "processes that come later";
}

TEST_F(KernelStorm, on_a_file_system_without_locks_each_process_compiles_a_kernel_once_at_most) {
  set_fault_plan({.error = ENOSYS, .count = 1'000'000'000, .only = "fstatfs"});
  const Outcome outcome = storm(failing_calls());
  EXPECT_GE(outcome.compiles, kernels);
  EXPECT_LE(outcome.most, process_count());
  clear_fault_plan();
}

// Locks whose holders never release them: the others continue without them after a time.
TEST_F(KernelStorm, with_dead_locks_each_process_compiles_a_kernel_once_at_most) {
  settings_.patience = std::chrono::milliseconds(20);
  jit::DiskCache holder(settings_);
  const auto own = holder.open_own();
  const auto locks = own.root->lock_folder();
  ASSERT_TRUE(locks);
  std::vector<platform::FileLock> held;
  for (int stripe = 0; stripe < 256; ++stripe) {
    char name[3];
    std::snprintf(name, sizeof name, "%02x", static_cast<unsigned>(stripe));
    auto lock = platform::FileLock::acquire(*locks, name, {});
    ASSERT_TRUE(lock);
    held.push_back(*std::move(lock));
  }
  const Outcome outcome = storm();
  EXPECT_GE(outcome.compiles, kernels);
  EXPECT_LE(outcome.most, process_count());
}

}  // namespace
}  // namespace gemmery::tests
