// SPDX-License-Identifier: Apache-2.0
// Runs one cluster: turns of its warps in an order given by the seed, with asynchronous operations
// in between.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/machine/launch.hpp"
#include "emulator/machine/plan.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

// The parameters that randomise a schedule.
struct ScheduleShape {
  // Warp instructions in a turn: most turns are long, for speed; some are short, to break up
  // patterns.
  std::uint32_t long_turn_least = 32, long_turn_most = 512;
  std::uint32_t short_turn_most = 16;
  std::uint32_t one_turn_is_short_in = 4;
  // One turn in so many favours other lanes than those with the lowest pc, so that lanes of a warp
  // that wait for each other in loops make progress (independent thread scheduling).
  std::uint32_t one_turn_is_unfair_in = 8;
  // The number of rounds without progress, in each of which all waits with a time limit time out,
  // after which the cluster is deadlocked.
  std::uint32_t idle_rounds = 64;
};

class ClusterRun {
 public:
  ClusterRun(Cluster& cluster, const Plan& plan, std::uint64_t step_limit,
             ScheduleShape shape = {});

  // Must be called after Cluster::reset.
  void restart();
  // One turn of one warp. False once all warps have exited and everything in flight has completed.
  // Throws Fault with its place filled in.
  bool take_turn();

  Cluster& cluster() noexcept { return cluster_; }
  LaunchStatistics statistics() const noexcept { return statistics_; }

 private:
  bool run_one();
  Warp* pick_warp();
  void force_progress();
  bool let_waits_time_out();
  std::uint32_t random_turn();
  void run_warp(Warp& warp);
  void run_fragment(Warp& warp, Fragment& fragment, std::uint32_t& budget);
  Step execute(Warp& warp, Fragment& fragment, const PlannedStep& step, LaneMask active);
  void retire(const Warp& warp);

  Cluster& cluster_;
  const Plan& plan_;
  const std::uint64_t step_limit_;
  const ScheduleShape shape_;
  std::vector<Warp*> warps_;  // warps with live lanes
  LaunchStatistics statistics_;
  std::uint64_t retried_at_progress_ = 0;
  std::uint64_t idle_since_progress_ = 0;
  std::uint32_t idle_rounds_ = 0;
};

}  // namespace gemmery::emulator
