// SPDX-License-Identifier: Apache-2.0
// Tuning: the rule that chooses, and the kernels that may not win.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <thread>

#include <gemmery/gemmery.hpp>

#include "kernel/registry.hpp"
#include "tests/kernel/toy_family.hpp"
#include "tests/providers/user/registered.hpp"
#include "tests/providers/user/tiled_kernel.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tune/decision.hpp"

namespace gemmery {
namespace {

using tests::host_kernel;
using tests::Registered;

// Read once in a process, so it is set before anything asks.
const std::string& file_of_this_test() {
  static const auto* const folder = new tests::TemporaryFolder;
  static const std::string path = *folder / "tuning.toml";
  return path;
}
const bool has_own_file = setenv("GEMMERY_TUNING_FILE", file_of_this_test().c_str(), 1) == 0;

// --- the rule -----------------------------------------------------------------------------------

// Times of kernels in rounds: what a round adds to all of them is far more than their noise.
std::vector<std::vector<double>> drifting_times(std::span<const double> true_us, int rounds,
                                                std::mt19937_64& random) {
  std::lognormal_distribution<double> drift(0, 0.7), noise(0, 0.02);
  std::vector<std::vector<double>> times(true_us.size());
  for (int round = 0; round < rounds; ++round) {
    const double slowness = drift(random);
    for (std::size_t index = 0; index < true_us.size(); ++index)
      times[index].push_back(true_us[index] * slowness * noise(random));
  }
  return times;
}

TEST(TuningDecision, finds_what_is_faster_under_drift_that_is_much_larger) {
  std::mt19937_64 random(tests::random_seed());
  for (int turn = 0; turn < 200; ++turn) {
    const double times_us[] = {110, 100, 130};
    const auto decision = tuning::decide(drifting_times(times_us, 40, random));
    EXPECT_EQ(decision.winner, 1u);
    EXPECT_GT(decision.ratios[2].sure.low, 1.1);
  }
}

// The median of 100 ratios with a noise of 2.8 % has a standard deviation of 0.35 %, so that a
// ratio of 1.02 is 5.4 of them away.
TEST(TuningDecision, keeps_the_first_if_others_are_hardly_faster) {
  std::mt19937_64 random(tests::random_seed());
  const double times_us[] = {100, 99.9};
  int kept = 0;
  for (int turn = 0; turn < 200; ++turn)
    kept += tuning::decide(drifting_times(times_us, 100, random)).winner == 0 ? 1 : 0;
  EXPECT_EQ(kept, 200);
}

TEST(TuningDecision, needs_six_rounds_to_prefer_another_and_ten_to_be_settled) {
  const auto decide_after = [](std::size_t rounds) {
    return tuning::decide(
        std::vector{std::vector<double>(rounds, 2), std::vector<double>(rounds, 1)});
  };
  EXPECT_EQ(decide_after(5).winner, 0u);
  EXPECT_EQ(decide_after(6).winner, 1u);
  EXPECT_FALSE(decide_after(9).is_settled);
  EXPECT_TRUE(decide_after(10).is_settled);
}

TEST(TuningDecision, is_settled_at_once_for_a_single_kernel) {
  const std::vector<std::vector<double>> one{{3, 1, 2}};
  EXPECT_TRUE(tuning::decide(one).is_settled);
  EXPECT_EQ(tuning::median_of(one.front()), 2);
}

// --- tuning -------------------------------------------------------------------------------------

// Of no other test, so that nothing is stored before.
ProblemLine new_problem() {
  static int next = 0;
  return parse_problem("gemm " + std::to_string(64 + next++) + "x96x80 a=f32");
}

TuneOptions quick() { return {.budget_s = 60}; }

std::vector<RankedKernel> kernels_of(const ProblemLine& line) {
  return get_kernels(line.problem, device_info(Device::cpu()));
}

// What became of a kernel; "" if it was no candidate.
std::string outcome_of(const TuneResult& result, const Kernel& kernel) {
  for (const TunedCandidate& candidate : result.entry.candidates)
    if (candidate.kernel == kernel.name()) return candidate.outcome;
  return {};
}

UserKernel promising(UserKernel kernel) {
  kernel.predicted_us = [](const Query&) { return 0.001; };
  return kernel;
}

// Correct, and slower than any of ours by its sleep.
void multiply_late(const UserCall& call) {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  tests::multiply_on_host(call);
}

void leave_zeros(const UserCall& call) {
  const Tensor& out = call.arguments.out();
  std::memset(out.data(), 0, static_cast<std::size_t>(out.element_count()) * sizeof(float));
}

TEST(Tune, stores_a_winner_that_discovery_ranks_first) {
  const ProblemLine line = new_problem();
  const TuneResult result = tune(line, quick());
  ASSERT_EQ(result.outcome, TuneOutcome::stored);
  const auto kernels = kernels_of(line);
  EXPECT_EQ(kernels.front().name(), result.entry.kernel);
  EXPECT_TRUE(kernels.front().is_measured);
  // The file has six digits.
  EXPECT_NEAR(kernels.front().predicted_us, result.entry.median_us, 1e-5 * result.entry.median_us);
  const std::string text = to_string(explain(line.problem, device_info(Device::cpu())));
  EXPECT_NE(text.find("tuned: first: " + result.entry.kernel), std::string::npos) << text;
}

TEST(Tune, measures_again_only_on_demand) {
  const ProblemLine line = new_problem();
  ASSERT_EQ(tune(line, quick()).outcome, TuneOutcome::stored);
  const TuneResult again = tune(line, quick());
  EXPECT_EQ(again.outcome, TuneOutcome::stored_before);
  EXPECT_TRUE(again.entry.candidates.empty());
  TuneOptions forced = quick();
  forced.measures_again = true;
  EXPECT_EQ(tune(line, forced).outcome, TuneOutcome::stored);
  const auto list = list_tunings();
  EXPECT_EQ(std::ranges::count(list, to_string(line.problem), &StoredTuning::problem), 1);
}

TEST(Tune, lists_and_forgets) {
  const ProblemLine line = new_problem();
  ASSERT_EQ(tune(line, quick()).outcome, TuneOutcome::stored);
  const auto before = list_tunings();
  EXPECT_EQ(before.back().problem, to_string(line.problem));
  EXPECT_TRUE(before.back().holds_here);
  EXPECT_EQ(forget_tunings(std::vector{line.problem}), 1u);
  EXPECT_EQ(list_tunings().size(), before.size() - 1);
  EXPECT_EQ(forget_tunings(std::vector{line.problem}), 0u);
  EXPECT_TRUE(explain(line.problem, device_info(Device::cpu())).tuned.empty());
}

// On the CPU, as if it were a vendor's library. Its three kernels do nothing.
class LibraryOfOthers final : public tests::ToyFamily {
 public:
  LibraryOfOthers() : ToyFamily("others", Target::cpu()) {}
  bool ranks_last_until_measured() const noexcept override { return true; }
  const DeviceInfo* device_info(Device) const override {
    return &gemmery::device_info(Device::cpu());
  }
};

TEST(Tune, tries_kernels_of_a_vendor_beside_the_first_by_the_model) {
  auto owned = std::make_unique<LibraryOfOthers>();
  const LibraryOfOthers& others = *owned;
  register_family(std::move(owned));
  const ProblemLine line = new_problem();
  const auto listed = kernels_of(line);
  TuneOptions one = quick();
  one.candidates = 1;
  const TuneResult result = tune(line, one);
  kernel::remove_family(others);
  ASSERT_GT(listed.size(), 4u);
  EXPECT_NE(&listed[listed.size() - 4].family(), &others);
  ASSERT_EQ(result.entry.candidates.size(), 4u);
  EXPECT_EQ(result.entry.candidates[0].kernel, listed[0].name());
  EXPECT_EQ(result.entry.candidates[0].outcome, "winner");
  for (const int number : {1, 2, 3})
    EXPECT_TRUE(outcome_of(result, others.kernel(number)).starts_with("wrong: "))
        << outcome_of(result, others.kernel(number));
}

TEST(Tune, never_lets_a_slow_kernel_win_that_promises_to_be_fast) {
  const Registered slow(promising(host_kernel("late", multiply_late)));
  for (int turn = 0; turn < 3; ++turn) {
    const ProblemLine line = new_problem();
    EXPECT_EQ(kernels_of(line).front(), slow.kernel);
    const TuneResult result = tune(line, quick());
    ASSERT_EQ(result.outcome, TuneOutcome::stored);
    EXPECT_NE(result.entry.kernel, slow.kernel.name());
    EXPECT_NE(kernels_of(line).front(), slow.kernel);
  }
}

TEST(Tune, never_lets_a_wrong_kernel_win_however_fast_it_is) {
  const Registered wrong(promising(host_kernel("zeros", leave_zeros)));
  for (int turn = 0; turn < 3; ++turn) {
    const ProblemLine line = new_problem();
    const TuneResult result = tune(line, quick());
    ASSERT_EQ(result.outcome, TuneOutcome::stored);
    EXPECT_NE(result.entry.kernel, wrong.kernel.name());
    EXPECT_TRUE(outcome_of(result, wrong.kernel).starts_with("wrong: "))
        << outcome_of(result, wrong.kernel);
    EXPECT_NE(kernels_of(line).front(), wrong.kernel);
  }
}

TEST(Tune, tells_of_kernels_that_throw) {
  const Registered broken(promising(
      host_kernel("broken", [](const UserCall&) { throw std::runtime_error("no such unit"); })));
  const TuneResult result = tune(new_problem(), quick());
  EXPECT_EQ(result.outcome, TuneOutcome::stored);
  EXPECT_NE(outcome_of(result, broken.kernel).find("no such unit"), std::string::npos);
}

TEST(Tune, stores_nothing_if_no_candidate_passes) {
  const Registered wrong(host_kernel("zeros_alone", leave_zeros));
  const ProblemLine line = new_problem();
  TuneOptions options = quick();
  options.filter.providers = {"user"};
  const TuneResult result = tune(line, options);
  EXPECT_EQ(result.outcome, TuneOutcome::none_passed);
  EXPECT_TRUE(result.entry.kernel.empty());
  EXPECT_TRUE(explain(line.problem, device_info(Device::cpu())).tuned.empty());
}

// A registered kernel that is gone leaves discovery as it was, and is used again when it is back.
TEST(Tune, results_of_kernels_that_are_not_here_are_not_used) {
  const ProblemLine line = new_problem();
  TuneOptions options = quick();
  options.filter.providers = {"user"};
  std::string winner;
  {
    const Registered own(host_kernel("guest"));
    winner = own.kernel.name();
    ASSERT_EQ(tune(line, options).entry.kernel, winner);
    EXPECT_EQ(kernels_of(line).front(), own.kernel);
  }
  EXPECT_NE(kernels_of(line).front().name(), winner);
  EXPECT_NE(explain(line.problem, device_info(Device::cpu())).tuned.find("not used"),
            std::string::npos);
  const Registered back(host_kernel("guest"));
  EXPECT_EQ(kernels_of(line).front(), back.kernel);
}

TEST(Tune, results_of_another_device_are_not_used_and_explain_says_so) {
  const ProblemLine line = new_problem();
  ASSERT_EQ(tune(line, quick()).outcome, TuneOutcome::stored);
  DeviceInfo other = device_info(Device::cpu());
  other.name += " II";
  const auto kernels = get_kernels(line.problem, other);
  EXPECT_TRUE(std::ranges::none_of(kernels, &RankedKernel::is_measured));
  EXPECT_NE(explain(line.problem, other).tuned.find("device was "), std::string::npos);
}

TEST(Tune, a_filter_that_leaves_the_winner_out_gets_the_others_by_prediction) {
  const Registered own(host_kernel("left_out"));
  const ProblemLine line = new_problem();
  TuneOptions options = quick();
  options.filter.providers = {"user"};
  ASSERT_EQ(tune(line, options).entry.kernel, own.kernel.name());
  const auto ours = get_kernels(line.problem, device_info(Device::cpu()), {.providers = {"host"}});
  ASSERT_FALSE(ours.empty());
  EXPECT_FALSE(ours.front().is_measured);
}

TEST(Tune, refuses_what_it_cannot_do) {
  const ProblemLine line = new_problem();
  EXPECT_THROW(tune(line, {.budget_s = 0}), Error);
  EXPECT_THROW(tune(line, {.candidates = -1}), Error);
  EXPECT_THROW(tune(line, {.device = *parse_device("emulated:h200")}), Error);
  TuneOptions none = quick();
  none.filter.metadata = [](const Metadata&) { return false; };
  EXPECT_THROW(tune(line, none), Error);
}

struct Stop {};

TEST(Tune, ends_when_its_progress_throws_and_stores_nothing) {
  const ProblemLine line = new_problem();
  TuneOptions options = quick();
  options.progress = [](const TuneProgress& now) {
    EXPECT_GE(now.share, 0);
    EXPECT_LE(now.share, 1);
    if (now.stage == "timing") throw Stop();
  };
  EXPECT_THROW(tune(line, options), Stop);
  EXPECT_TRUE(explain(line.problem, device_info(Device::cpu())).tuned.empty());
}

}  // namespace
}  // namespace gemmery
