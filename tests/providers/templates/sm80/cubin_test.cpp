// SPDX-License-Identifier: Apache-2.0
// Machine code of the family sm80, for each design and target: no spills beyond what the design
// allows, the promised instruction is present, and simt kernels have no instruction of its kind.
// GEMMERY_SOAK=1 compiles 60 designs (GEMMERY_TEST_CUBINS: another number) without groups and as
// many with groups, for all targets, and prints the compile times.
#include <gtest/gtest.h>
#include <gemmery/gemmery.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "jit/disassembler.hpp"
#include "platform/parallel.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/spill_allowance.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery {
namespace {

class Sm80Cubins : public tests::WithNvrtc {
 protected:
  std::mt19937_64 random_{tests::compilation_seed()};
};

bool is_soak() {
  const char* const text = std::getenv("GEMMERY_SOAK");
  return text != nullptr && std::string_view(text) == "1";
}

std::size_t design_count(std::size_t of_short_run) {
  if (const char* const wanted = std::getenv("GEMMERY_TEST_CUBINS"))
    return std::strtoul(wanted, nullptr, 10);
  return is_soak() ? 60 : of_short_run;
}

enum class WithGroups : bool { no, yes };

std::vector<Kernel> draw_kernels(std::string_view family, WithGroups groups, std::size_t count,
                                 std::mt19937_64& random) {
  std::vector<Kernel> all;
  for_each_kernel([&](const Kernel& kernel) {
    if (kernel.family().name() != family) return;
    const bool has_groups = kernel.name().find("_groups") != std::string::npos;
    if (has_groups == (groups == WithGroups::yes)) all.push_back(kernel);
  });
  std::ranges::shuffle(all, random);
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size())), all.end());
  return all;
}

// Tensor-core instructions by the types that they multiply.
constexpr std::string_view tensor_instructions[] = {"HMMA", "IMMA", "DMMA", "QMMA"};

// The instructions of a design: 8-bit floats are multiplied directly on Ada and sm_120, as float16
// elsewhere; float64 by DMMA.
std::vector<std::string_view> promised(const Kernel& kernel) {
  const DType a = kernel.operands().a.dtype;
  if (a == DType::float64) return {"DMMA"};
  if (is_integer(a)) return {"IMMA"};
  if (bit_width(a) == 8) return {"QMMA", "HMMA"};
  return {"HMMA"};
}

struct Compiled {
  double milliseconds = 0;
  int spilled_bytes = 0;
  std::optional<std::map<std::string, int>> instructions;
};

Compiled compile(const Kernel& kernel, Target target, const std::string& path) {
  const Artifact artifact = kernel.compile(target);
  Compiled compiled;
  compiled.milliseconds = artifact.compile_ms();
  if (const auto resources = artifact.resources())
    compiled.spilled_bytes =
        static_cast<int>(resources->spill_store_bytes + resources->spill_load_bytes);
  const StoredArtifact artifacts[] = {{.artifact = artifact, .problems = {}}};
  save_artifacts(path, artifacts);
  const ArtifactSummary summary = inspect_artifacts(path).kernels.front();
  if (summary.no_instructions.empty()) compiled.instructions = summary.instructions;
  return compiled;
}

bool has_any(const std::map<std::string, int>& mix, std::string_view kind) {
  return std::ranges::any_of(mix, [&](const auto& row) { return row.first.starts_with(kind); });
}

struct Compilation {
  Kernel kernel;
  Target target;

  std::string label() const { return kernel.name() + " for " + to_string(target); }
};

// For all targets of each kernel in a long run, for one target in a short run.
std::vector<Compilation> compilations_of(const std::vector<Kernel>& kernels,
                                         std::mt19937_64& random) {
  std::vector<Compilation> all;
  for (const Kernel& kernel : kernels) {
    const std::vector<Target> targets = kernel.family().targets(kernel);
    if (is_soak()) {
      for (const Target target : targets) all.push_back({kernel, target});
    } else {
      all.push_back({kernel, targets[random() % targets.size()]});
    }
  }
  return all;
}

// Compiles on all threads, and reports failures when they are found.
class Promises {
 public:
  void expect_of(const std::vector<Compilation>& compilations) {
    platform::parallel_for(static_cast<std::int64_t>(compilations.size()), 1,
                           [&](std::int64_t begin, std::int64_t end) {
                             for (std::int64_t index = begin; index < end; ++index)
                               visit(compilations[static_cast<std::size_t>(index)], index);
                           });
    std::ranges::sort(times_);
    std::cout << fmt::format(
        "{} compilations, median {:.0f} ms, longest {:.0f} ms, {} unseen by a disassembler\n",
        times_.size(), times_[times_.size() / 2], times_.back(), without_disassembler_);
  }

 private:
  void visit(const Compilation& job, std::int64_t index) {
    const Compiled compiled =
        compile(job.kernel, job.target, fmt::format("{}/{}.gemmery", folder_.path(), index));
    const std::lock_guard lock(noting_);
    times_.push_back(compiled.milliseconds);
    EXPECT_LE(compiled.spilled_bytes, tests::allowed_spills(job.kernel, job.target)) << job.label();
    if (!compiled.instructions) {
      ++without_disassembler_;
      return;
    }
    const auto kinds = promised(job.kernel);
    EXPECT_TRUE(std::ranges::any_of(kinds, [&](std::string_view kind) {
      return has_any(*compiled.instructions, kind);
    })) << job.label();
  }

  tests::TemporaryFolder folder_;
  std::mutex noting_;  // guards what follows
  std::vector<double> times_;
  int without_disassembler_ = 0;
};

void expect_what_designs_promise(const std::vector<Kernel>& kernels, std::mt19937_64& random) {
  Promises().expect_of(compilations_of(kernels, random));
}

TEST_F(Sm80Cubins, keep_to_their_registers_and_have_the_instruction_that_they_promise) {
  expect_what_designs_promise(draw_kernels("sm80", WithGroups::no, design_count(4), random_),
                              random_);
}

TEST_F(Sm80Cubins, of_groups_keep_to_their_registers_and_have_the_instruction_that_they_promise) {
  expect_what_designs_promise(draw_kernels("sm80", WithGroups::yes, design_count(3), random_),
                              random_);
}

// A division by a run-time value begins with a reciprocal.
constexpr std::string_view reciprocal = "MUFU";

TEST_F(Sm80Cubins, of_simt_have_no_tensor_core_instruction_and_no_division) {
  const tests::TemporaryFolder folder;
  for (const Kernel& kernel : draw_kernels("simt", WithGroups::no, is_soak() ? 12 : 2, random_)) {
    const Compiled compiled =
        compile(kernel, parse_target("sm_80"), folder.path() + "/kernel.gemmery");
    if (!compiled.instructions) GTEST_SKIP() << "no nvdisasm";
    for (const std::string_view kind : tensor_instructions)
      EXPECT_FALSE(has_any(*compiled.instructions, kind)) << kernel.name() << " has " << kind;
    EXPECT_FALSE(has_any(*compiled.instructions, reciprocal)) << kernel.name() << " divides";
  }
}

}  // namespace
}  // namespace gemmery
