// SPDX-License-Identifier: Apache-2.0
// barrier.cluster.arrive and .wait: every thread of the cluster arrives once, and waits before it
// arrives again. Threads that have exited are not waited for.
#include <bit>
#include <string>

#include "emulator/instruction/copy/copy_operands.hpp"
#include "emulator/instruction/synchronisation/synchronisation_rows.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint32_t is_relaxed = 1;

using WarpState = ClusterBarrier::WarpState;

WarpState& state_of(const Warp& warp) {
  ClusterBarrier& barrier = warp.cta.cluster.barrier;
  if (barrier.warps.empty()) {
    const Cluster& cluster = warp.cta.cluster;
    barrier.warps.resize(cluster.ctas.size() * cluster.grid.warps_per_cta());
  }
  return barrier.warps[warp.agent];
}

bool has_come(const Warp& warp, const ClusterBarrier& barrier) {
  return warp.live == 0 || barrier.warps[warp.agent].has_arrived;
}

bool is_complete(const Cluster& cluster) {
  if (cluster.barrier.arrived_warps == 0) return false;
  std::uint32_t live = 0;
  for (const auto& cta : cluster.ctas) live += cta->live_warps;
  if (cluster.barrier.arrived_warps < live) return false;
  for (const auto& cta : cluster.ctas) {
    for (const auto& warp : cta->warps) {
      if (!has_come(*warp, cluster.barrier)) return false;
    }
  }
  return true;
}

void complete(ClusterBarrier& barrier) {
  ++barrier.generation;
  barrier.arrived_warps = 0;
  for (WarpState& state : barrier.warps) state.has_arrived = false;
  std::swap(barrier.completed, barrier.gathering);
  barrier.gathering.clear();
  std::swap(barrier.executed, barrier.executing);
  barrier.executing = {};
}

// Lanes may arrive on different paths, or exit while the others wait.
void count_warp_if_whole(Warp& warp) {
  ClusterBarrier& barrier = warp.cta.cluster.barrier;
  WarpState& state = state_of(warp);
  if (state.has_arrived || state.generation != barrier.generation) return;
  if (state.arrived_lanes == 0 || (warp.live & ~state.arrived_lanes) != 0) return;
  state.has_arrived = true;
  ++barrier.arrived_warps;
  warp.synchronise_lanes();
}

void release_to(Warp& warp, const Operation& operation, Knowledge& gathering) {
  if (operation.flags != is_relaxed) {
    warp.release(gathering);
  } else if (warp.fence.has_released) {
    gathering.join(warp.fence.released);
  }
}

Step run_cluster_arrive(Warp& warp, const Operation& operation, LaneMask active) {
  ClusterBarrier& barrier = warp.cta.cluster.barrier;
  WarpState& state = state_of(warp);
  if ((state.arrived_lanes & active) != 0) {
    throw_fault(
        FaultKind::barrier_misuse, std::countr_zero(state.arrived_lanes & active),
        "barrier.cluster.arrive again (after PTX line " +
            std::to_string(warp.cta.cluster.grid.image->place_of(state.arrive_pc).ptx_line) +
            ") without barrier.cluster.wait between them; each arrive needs its wait");
  }
  barrier.executing.join(warp.known.happened);
  release_to(warp, operation, barrier.gathering);
  state.generation = barrier.generation;
  state.arrived_lanes |= active;
  state.arrive_pc = operation.pc;
  count_warp_if_whole(warp);
  if (is_complete(warp.cta.cluster)) complete(barrier);
  return Step::next;
}

std::string describe_cluster_wait(const Warp& warp, const Fragment&) {
  const Cluster& cluster = warp.cta.cluster;
  std::string missing;
  for (const auto& cta : cluster.ctas) {
    for (const auto& other : cta->warps) {
      if (has_come(*other, cluster.barrier)) continue;
      if (!missing.empty()) missing += ", ";
      missing += "CTA " + std::to_string(cta->rank) + " warp " + std::to_string(other->index);
    }
  }
  return "the barrier of the cluster: not come are " + (missing.empty() ? "none" : missing);
}

void acquire_from(Warp& warp, const Operation& operation, const Knowledge& completed) {
  if (operation.flags != is_relaxed) {
    warp.acquire(completed);
    return;
  }
  warp.fence.observed.join(completed);
  warp.fence.has_observed = true;
}

Step run_cluster_wait(Warp& warp, const Operation& operation, LaneMask active) {
  ClusterBarrier& barrier = warp.cta.cluster.barrier;
  WarpState& state = state_of(warp);
  const LaneMask early = active & ~state.arrived_lanes;
  if (early != 0) {
    throw_fault(FaultKind::barrier_misuse, std::countr_zero(early),
                "barrier.cluster.wait without a barrier.cluster.arrive before it; each thread "
                "arrives, then waits");
  }
  if (barrier.generation == state.generation) {
    count_warp_if_whole(warp);
    if (is_complete(warp.cta.cluster)) complete(barrier);
  }
  if (barrier.generation == state.generation) {
    warp.describe_wait = describe_cluster_wait;
    return Step::blocked;
  }
  state.arrived_lanes &= ~active;
  acquire_from(warp, operation, barrier.completed);
  warp.cta.remote_uses.learn(barrier.executed);
  return Step::next;
}

}  // namespace

void decode_cluster_barrier(DecodeContext& context, const Instruction& instruction,
                            Operation& operation) {
  Form form(context, instruction, operation);
  form.take("cluster");
  const bool is_arrival = form.take("arrive");
  if (!is_arrival && !form.take("wait")) form.refuse("expected .arrive or .wait");
  if (is_arrival) {
    if (!form.take("release") && form.take("relaxed")) operation.flags = is_relaxed;
  } else if (!form.take("acquire") && form.take("relaxed")) {
    operation.flags = is_relaxed;
  }
  operation.needs_convergence = form.take("aligned");
  form.finish();
  form.expect_operands(0);
  operation.execute = is_arrival ? run_cluster_arrive : run_cluster_wait;
  operation.has_side_effect = true;  // a wait, too, may find that the last thread has exited
}

}  // namespace gemmery::emulator
