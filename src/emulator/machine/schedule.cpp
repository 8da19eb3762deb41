// SPDX-License-Identifier: Apache-2.0
// The machine's loop: selects a warp and lanes, runs them for a while, handles the result.
#include "emulator/machine/schedule.hpp"

#include <algorithm>
#include <bit>

#include "emulator/machine/wait_report.hpp"
#include "emulator/machine/wgmma_guard.hpp"

namespace gemmery::emulator {

namespace {

constexpr std::uint64_t never_blocked = ~std::uint64_t{0};
constexpr std::uint32_t no_pc = ~std::uint32_t{0};

// --- fragments of one warp -----------------------------------------------------------------------

// Merges fragments at the same pc, except in the middle of an operation that blocked them.
void merge_fragments(Warp& warp) {
  std::vector<Fragment>& fragments = warp.fragments;
  for (std::size_t first = 0; first + 1 < fragments.size(); ++first)
    for (std::size_t second = first + 1; second < fragments.size();) {
      Fragment& kept = fragments[first];
      const Fragment& other = fragments[second];
      if (kept.pc != other.pc || kept.resume != 0 || other.resume != 0) {
        ++second;
        continue;
      }
      kept = {.pc = kept.pc, .lanes = kept.lanes | other.lanes};
      fragments.erase(fragments.begin() + static_cast<std::ptrdiff_t>(second));
    }
}

// Retries blocked operations, except those that wait for the warp's other lanes.
void unblock(Warp& warp) {
  for (Fragment& fragment : warp.fragments) fragment.is_blocked = fragment.waits_for_warp;
}

void block(Warp& warp, Fragment& fragment) {
  fragment.is_blocked = fragment.was_blocked = true;
  fragment.waits_for_warp = fragment.has_timed_out = false;
  fragment.may_time_out = warp.may_time_out;
  fragment.describe_wait = warp.describe_wait;
  warp.may_time_out = false;
  warp.describe_wait = nullptr;
}

void go_on(Fragment& fragment) {
  if (fragment.was_blocked) fragment = {.pc = fragment.pc, .lanes = fragment.lanes};
  fragment.resume = 0;
  ++fragment.pc;
}

bool can_run(const Warp& warp, const Fragment& fragment) {
  if (!fragment.is_blocked) return true;
  return fragment.waits_for_warp && fragment.lanes == warp.live;  // the others have exited
}

// The fragment with the `favoured` lanes, if it can run; otherwise the one with the lowest pc, so
// that lanes converge again; nullptr: all are blocked.
Fragment* choose_fragment(Warp& warp, LaneMask favoured) {
  Fragment* chosen = nullptr;
  for (Fragment& fragment : warp.fragments) {
    if (!can_run(warp, fragment)) continue;
    if ((fragment.lanes & favoured) != 0) return &fragment;
    if (chosen == nullptr || fragment.pc < chosen->pc) chosen = &fragment;
  }
  return chosen;
}

// The pc at which a fragment that advances step by step reaches the next one.
std::uint32_t meeting_pc(const Warp& warp, const Fragment& fragment) {
  std::uint32_t nearest = no_pc;
  for (const Fragment& other : warp.fragments)
    if (other.pc > fragment.pc) nearest = std::min(nearest, other.pc);
  return nearest;
}

// After Step::jumped: moves lanes to their targets and removes exited ones. True if all of them
// still form this fragment; otherwise it may be gone.
bool settle(Warp& warp, Fragment& fragment) {
  LaneMask rest = fragment.lanes & warp.live;
  if (warp.sent.size() == 1 && warp.sent.front().lanes == rest && rest != 0) {
    fragment = {.pc = warp.sent.front().pc, .lanes = rest};
    warp.sent.clear();
    return true;
  }
  for (const Warp::Placement& placement : warp.sent) {
    const LaneMask lanes = placement.lanes & rest;
    rest &= ~lanes;
    if (lanes != 0) warp.fragments.push_back({.pc = placement.pc, .lanes = lanes});
  }
  warp.sent.clear();
  fragment = {.pc = fragment.pc + 1, .lanes = rest};
  if (rest == 0) std::erase_if(warp.fragments, [](const Fragment& at) { return at.lanes == 0; });
  return false;
}

bool all_wait_for_warp(const Warp& warp) {
  return std::ranges::all_of(warp.fragments,
                             [](const Fragment& fragment) { return fragment.waits_for_warp; });
}

// --- one step ------------------------------------------------------------------------------------

LaneMask guarded_lanes(const Warp& warp, const PlannedStep& step, LaneMask lanes) {
  if (step.guard != no_register && (lanes & ~warp.defined[step.guard]) != 0) [[unlikely]]
    warp.require_defined({.reg = step.guard}, lanes, "whether an instruction is executed");
  LaneMask holds = *reinterpret_cast<const LaneMask*>(warp.registers + step.guard_offset);
  if (step.is_guard_negated) holds = ~holds;
  return lanes & holds;
}

void propagate_definedness(Warp& warp, const PlannedStep& step, LaneMask active) {
  LaneMask* const defined = warp.defined.data();
  LaneMask of_sources = all_lanes;
  for (std::uint32_t at = 0; at < step.read_count; ++at) of_sources &= defined[step.reads[at]];
  for (std::uint32_t at = 0; at < step.write_count; ++at) {
    LaneMask& of_destination = defined[step.writes[at]];
    of_destination ^= (of_destination ^ of_sources) & active;
  }
}

// For an operation that needs the whole warp: true if all lanes are there. A guard must be true for
// all lanes or none. Exited lanes count as missing (PTX ISA: .aligned means all threads in the
// warp), except at barriers of a CTA, which on Volta and later do not wait for them.
bool is_converged(const Warp& warp, const Fragment& fragment, const PlannedStep& step,
                  LaneMask active) {
  if (fragment.lanes != warp.live) return false;
  if (fragment.lanes != warp.existing && !step.tolerates_exited) throw divergence_fault(warp);
  if (active != fragment.lanes)
    throw guarded_divergence_fault(warp, fragment.pc, fragment.lanes, active);
  return true;
}

}  // namespace

ClusterRun::ClusterRun(Cluster& cluster, const Plan& plan, std::uint64_t step_limit,
                       ScheduleShape shape)
    : cluster_(cluster), plan_(plan), step_limit_(step_limit), shape_(shape) {
  restart();
}

void ClusterRun::restart() {
  warps_.clear();
  for (const auto& cta : cluster_.ctas)
    for (const auto& warp : cta->warps) warps_.push_back(warp.get());
  retried_at_progress_ = idle_since_progress_ = never_blocked;
  idle_rounds_ = 0;
}

bool ClusterRun::take_turn() {
  try {
    return run_one();
  } catch (ConflictFault& fault) {
    add_other_side(fault, cluster_);
    throw;
  }
}

bool ClusterRun::run_one() {
  complete_due(cluster_, warps_.empty());
  if (warps_.empty()) {
    statistics_.warp_instructions += cluster_.steps;
    return false;
  }
  if (cluster_.steps >= step_limit_) throw timeout_fault(cluster_, step_limit_);
  Warp* const warp = pick_warp();
  if (warp == nullptr)
    force_progress();
  else
    run_warp(*warp);
  return true;
}

// A random warp that can run or retry.
Warp* ClusterRun::pick_warp() {
  const std::size_t count = warps_.size();
  std::size_t at = cluster_.random() % count;
  for (std::size_t tried = 0; tried < count; ++tried) {
    if (warps_[at]->tried_at_wakes != cluster_.wakes) return warps_[at];
    if (++at == count) at = 0;
  }
  return nullptr;
}

// All warps are blocked. First completes a pending copy; if there is none, retries every warp once,
// since an operation may have had an effect without waking a warp; else lets waits with a time
// limit time out.
void ClusterRun::force_progress() {
  if (complete_next(cluster_)) return;
  if (retried_at_progress_ != cluster_.progress) {
    retried_at_progress_ = cluster_.progress;
    for (Warp* const warp : warps_) warp->tried_at_wakes = never_blocked;
    return;
  }
  if (!let_waits_time_out()) throw deadlock_fault(cluster_);
}

bool ClusterRun::let_waits_time_out() {
  if (idle_since_progress_ != cluster_.progress) idle_rounds_ = 0;
  idle_since_progress_ = cluster_.progress;
  if (++idle_rounds_ > shape_.idle_rounds) return false;
  bool has_any = false;
  for (Warp* const warp : warps_)
    for (Fragment& fragment : warp->fragments) {
      if (!fragment.may_time_out) continue;
      fragment.has_timed_out = true;
      warp->tried_at_wakes = never_blocked;
      has_any = true;
    }
  return has_any;
}

std::uint32_t ClusterRun::random_turn() {
  const std::uint64_t bits = cluster_.random();
  const std::uint32_t kind = static_cast<std::uint32_t>(bits) & 0xffff;
  const std::uint32_t length = static_cast<std::uint32_t>(bits >> 32);
  if (kind % shape_.one_turn_is_short_in == 0) return 1 + length % shape_.short_turn_most;
  return shape_.long_turn_least + length % (shape_.long_turn_most - shape_.long_turn_least + 1);
}

void ClusterRun::retire(const Warp& warp) {
  const auto at = std::ranges::find(warps_, &warp);
  std::swap(*at, warps_.back());
  warps_.pop_back();
}

void ClusterRun::run_warp(Warp& warp) {
  cluster_.running = &warp;
  std::uint32_t budget = random_turn();
  LaneMask favoured = 0;
  if (warp.fragments.size() > 1 && cluster_.random() % shape_.one_turn_is_unfair_in == 0)
    favoured = warp.fragments[cluster_.random() % warp.fragments.size()].lanes;
  const std::uint64_t wakes_before = cluster_.wakes;
  warp.tried_at_wakes = never_blocked;
  unblock(warp);
  while (budget > 0) {
    if (warp.fragments.size() > 1) merge_fragments(warp);
    Fragment* const fragment = choose_fragment(warp, favoured);
    if (fragment == nullptr) break;
    warp.running = fragment;
    run_fragment(warp, *fragment, budget);
    if (warp.fragments.empty()) return retire(warp);
  }
  if (budget == 0) return;
  if (all_wait_for_warp(warp)) throw divergence_fault(warp);
  // The warp's own action may have ended a wait of its other lanes: then it is retried.
  if (cluster_.wakes == wakes_before) warp.tried_at_wakes = cluster_.wakes;
}

// Runs until the budget is spent, the lanes are blocked, diverge, or meet others of the warp.
void ClusterRun::run_fragment(Warp& warp, Fragment& fragment, std::uint32_t& budget) try {
  const std::uint32_t stop = meeting_pc(warp, fragment);
  while (budget > 0) {
    const PlannedStep& step = plan_[fragment.pc];
    LaneMask active = fragment.lanes;
    if (step.has_guard) active = guarded_lanes(warp, step, active);
    Step result = Step::next;
    if (active != 0) {
      result = execute(warp, fragment, step, active);
      if (result == Step::blocked) return;
    }
    --budget;
    ++cluster_.steps;
    if (result == Step::jumped) {
      if (!settle(warp, fragment) || warp.fragments.size() > 1) return;
      continue;
    }
    go_on(fragment);
    if (result == Step::yield) budget = 0;
    if (fragment.pc == stop) return;
  }
} catch (Fault& fault) {
  add_place(fault, warp, warp.running->pc);
  throw;
}

inline Step ClusterRun::execute(Warp& warp, Fragment& fragment, const PlannedStep& step,
                                LaneMask active) {
  if (step.needs_convergence && !is_converged(warp, fragment, step, active)) {
    fragment.is_blocked = fragment.was_blocked = fragment.waits_for_warp = true;
    return Step::blocked;
  }
  if (step.touches_wgmma_register && !warp.wgmma.in_flight.empty()) [[unlikely]]
    check_in_flight(warp, step);
  const std::uint64_t resume_before = fragment.resume;
  warp.has_timed_out = fragment.has_timed_out;
  const Step result = step.execute(warp, *step.operation, active);
  if (result == Step::blocked) {
    block(warp, fragment);
    // An arrival that then waits for the others is a side effect; a test of a barrier is not.
    if (resume_before != 0 || fragment.resume == 0) return result;
  } else {
    statistics_.lane_instructions += static_cast<std::uint32_t>(std::popcount(active));
    if (step.propagates_definedness) propagate_definedness(warp, step, active);
    if (step.writes_wgmma_register) note_touched(warp, step, plan_);
  }
  if (step.has_side_effect) {
    ++cluster_.progress;
    cluster_.wakes += step.wakes_others;
  }
  return result;
}

}  // namespace gemmery::emulator
