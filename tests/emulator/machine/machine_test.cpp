// SPDX-License-Identifier: Apache-2.0
// The machine alone: straight code, branches, convergence, waits, clusters and faults, with
// operations written for the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <set>

#include <gemmery/error.hpp>

#include "emulator/machine/async_operations.hpp"
#include "emulator/machine/launch.hpp"
#include "tests/emulator/machine/handmade_image.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator::tests {
namespace {

using ::testing::HasSubstr;

GlobalMemory& memory() {
  static GlobalMemory memory(std::uint64_t{1} << 24);
  return memory;
}

LaunchRequest request_for(HandmadeImage& made, std::uint32_t threads = 32, std::uint32_t ctas = 1,
                          std::uint32_t cluster = 1) {
  LaunchRequest request;
  request.image = made.finish();
  request.block = {threads, 1, 1};
  request.grid = {ctas, 1, 1};
  request.cluster = {cluster, 1, 1};
  request.seed = ::gemmery::tests::random_seed();
  request.host_threads = 2;
  return request;
}

// Runs the launch and returns its fault.
Fault fault_of(const LaunchRequest& request) {
  try {
    run_grid(request, memory());
  } catch (const Fault& fault) {
    return fault;
  }
  ADD_FAILURE() << "no fault";
  return {FaultKind::trap, ""};
}

// --- operations ----------------------------------------------------------------------------------

Step lane_number(Warp& warp, const Operation& operation, LaneMask active) {
  auto* const to = warp.destination<std::uint32_t>(operation, 0);
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    if (active >> lane & 1) to[lane] = warp.index * 32 + lane;
  return Step::next;
}

Step add_immediate(Warp& warp, const Operation& operation, LaneMask active) {
  auto* const to = warp.destination<std::uint32_t>(operation, 0);
  const auto* const from = warp.source<std::uint32_t>(operation, 1);
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    if (active >> lane & 1) to[lane] = from[lane] + static_cast<std::uint32_t>(operation.immediate);
  return Step::next;
}

// predicate = value < immediate
Step is_below(Warp& warp, const Operation& operation, LaneMask active) {
  LaneMask& to = *warp.destination<LaneMask>(operation, 0);
  const auto* const from = warp.source<std::uint32_t>(operation, 1);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    if ((active >> lane & 1) == 0) continue;
    const LaneMask bit = LaneMask{1} << lane;
    to = from[lane] < operation.immediate ? to | bit : to & ~bit;
  }
  return Step::next;
}

Step branch(Warp& warp, const Operation& operation, LaneMask active) {
  warp.send(active, static_cast<std::uint32_t>(operation.immediate));
  return Step::jumped;
}

Step leave(Warp& warp, const Operation&, LaneMask active) {
  warp.exit(active);
  return Step::jumped;
}

Step nothing(Warp&, const Operation&, LaneMask) { return Step::next; }

// Observations of the kernels for the test.
struct Seen {
  std::mutex lock;
  std::multiset<std::uint32_t> values;
  std::vector<LaneMask> masks;
  void clear() { values.clear(), masks.clear(); }
} seen;

Step record(Warp& warp, const Operation& operation, LaneMask active) {
  const auto* const from = warp.source<std::uint32_t>(operation, 0);
  const std::lock_guard hold(seen.lock);
  seen.masks.push_back(active);
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    if (active >> lane & 1) seen.values.insert(from[lane]);
  return Step::next;
}

std::atomic<int> open_gates = 0;
Step wait_for_gate(Warp& warp, const Operation&, LaneMask) {
  if (open_gates > 0) return Step::next;
  warp.describe_wait = [](const Warp&, const Fragment&) { return std::string("the gate"); };
  return Step::blocked;
}
Step open_gate(Warp&, const Operation&, LaneMask) {
  ++open_gates;
  return Step::next;
}

struct Machine : ::testing::Test {
  Machine() {
    seen.clear();
    open_gates = 0;
  }
  HandmadeImage made;
};

TEST_F(Machine, runs_straight_code_and_counts_it) {
  const OperandSlot x = made.add_register("%r1");
  made.add(lane_number, {x});
  made.add(add_immediate, {x}, {x}, 100);
  made.add(record, {}, {x});
  made.add(leave);
  const LaunchStatistics statistics = run_grid(request_for(made, 40, 3), memory());
  EXPECT_EQ(statistics.warp_instructions, 3u * 2 * 4);
  EXPECT_EQ(statistics.lane_instructions, 3u * 40 * 4);
  EXPECT_EQ(seen.values.size(), 120u);
  EXPECT_EQ(seen.values.count(139), 3u);
  EXPECT_EQ(seen.values.count(140), 0u);
}

TEST_F(Machine, leaves_where_the_code_ends) {
  made.add(nothing);
  EXPECT_EQ(run_grid(request_for(made, 64), memory()).lane_instructions, 2u * 64);
}

TEST_F(Machine, lanes_part_at_a_branch_and_meet_behind_it) {
  const OperandSlot x = made.add_register("%r1");
  const OperandSlot p = made.add_register("%p1", ScalarType::pred);
  made.add(lane_number, {x});
  made.add(is_below, {p}, {x}, 10);
  HandmadeImage::guard(made.add(branch, {}, {}, 5), p);
  made.add(add_immediate, {x}, {x}, 1000);
  made.add(branch, {}, {}, 6);
  made.add(add_immediate, {x}, {x}, 2000);
  made.add(record, {}, {x});
  run_grid(request_for(made), memory());
  EXPECT_EQ(seen.masks, std::vector<LaneMask>{all_lanes});
  EXPECT_EQ(seen.values.count(2009), 1u);
  EXPECT_EQ(seen.values.count(1010), 1u);
}

TEST_F(Machine, a_loop_ends_for_each_lane_at_its_own_time) {
  const OperandSlot x = made.add_register("%r1");
  const OperandSlot p = made.add_register("%p1", ScalarType::pred);
  made.add(lane_number, {x});
  made.add(add_immediate, {x}, {x}, 7);
  made.add(is_below, {p}, {x}, 100);
  HandmadeImage::guard(made.add(branch, {}, {}, 1), p);
  made.add(record, {}, {x});
  run_grid(request_for(made), memory());
  EXPECT_EQ(seen.masks, std::vector<LaneMask>{all_lanes});
  EXPECT_EQ(seen.values.size(), 32u);
  EXPECT_GE(*seen.values.begin(), 100u);
  EXPECT_LT(*seen.values.rbegin(), 107u);
}

TEST_F(Machine, skips_what_no_lane_s_guard_holds_for) {
  const OperandSlot x = made.add_register("%r1");
  const OperandSlot p = made.add_register("%p1", ScalarType::pred);
  made.add(lane_number, {x});
  made.add(is_below, {p}, {x}, 100);
  HandmadeImage::guard(made.add(record, {}, {x}), p, true);
  run_grid(request_for(made), memory());
  EXPECT_TRUE(seen.masks.empty());
}

TEST_F(Machine, a_guard_that_nobody_wrote_is_a_fault_with_its_place) {
  const OperandSlot p = made.add_register("%p1", ScalarType::pred);
  made.add(nothing);
  HandmadeImage::guard(made.add(nothing), p);
  const Fault fault = fault_of(request_for(made));
  EXPECT_EQ(fault.kind, FaultKind::unwritten_register);
  EXPECT_THAT(fault.message, HasSubstr("%p1"));
  EXPECT_EQ(fault.place.kernel, "handmade");
  EXPECT_EQ(fault.place.ptx_line, 2u);
  EXPECT_EQ(fault.place.ptx_text, "op");
  EXPECT_EQ(fault.place.source_file, "handmade.cu");
  EXPECT_EQ(fault.place.source_line, 101u);
  EXPECT_EQ(fault.place.warp, 0);
  EXPECT_EQ(fault.place.lane, 0);
}

TEST_F(Machine, results_are_defined_where_all_sources_are) {
  const OperandSlot x = made.add_register("%r1");
  const OperandSlot y = made.add_register("%r2");
  const OperandSlot z = made.add_register("%r3");
  const OperandSlot p = made.add_register("%p1", ScalarType::pred);
  made.add(lane_number, {x});
  made.add(is_below, {p}, {x}, 4);
  HandmadeImage::guard(made.add(add_immediate, {y}, {x}, 1), p);
  made.add(add_immediate, {z}, {y}, 1);
  made.add(
      [](Warp& warp, const Operation& operation, LaneMask) {
        seen.masks.push_back(warp.defined_lanes(operation.slot[0]));
        return Step::next;
      },
      {}, {z});
  run_grid(request_for(made), memory());
  EXPECT_EQ(seen.masks, std::vector<LaneMask>{0xf});
}

TEST_F(Machine, convergent_operations_wait_for_the_whole_warp) {
  const OperandSlot x = made.add_register("%r1");
  const OperandSlot p = made.add_register("%p1", ScalarType::pred);
  made.add(lane_number, {x});
  made.add(is_below, {p}, {x}, 10);
  HandmadeImage::guard(made.add(branch, {}, {}, 4), p);
  HandmadeImage::guard(made.add(branch, {}, {}, 6), p, true);  // 10 … 31: backwards from 6
  made.add(record, {}, {x});
  made.at(4).needs_convergence = true;
  made.add(leave);
  made.add(branch, {}, {}, 4);
  run_grid(request_for(made), memory());
  EXPECT_EQ(seen.masks, std::vector<LaneMask>{all_lanes});
}

TEST_F(Machine, lanes_that_left_without_a_convergent_operation_are_reported) {
  const OperandSlot x = made.add_register("%r1");
  const OperandSlot p = made.add_register("%p1", ScalarType::pred);
  made.add(lane_number, {x});
  made.add(is_below, {p}, {x}, 10);
  HandmadeImage::guard(made.add(branch, {}, {}, 4), p);
  made.add(leave);
  made.add(record, {}, {x}).needs_convergence = true;
  const Fault fault = fault_of(request_for(made));
  EXPECT_EQ(fault.kind, FaultKind::divergent_barrier);
  EXPECT_EQ(fault.place.ptx_line, 5u);
  EXPECT_THAT(fault.message, HasSubstr("lanes 0xfffffc00 of the warp left"));
}

TEST_F(Machine, lanes_that_left_are_not_missed_where_that_is_tolerated) {
  const OperandSlot x = made.add_register("%r1");
  const OperandSlot p = made.add_register("%p1", ScalarType::pred);
  made.add(lane_number, {x});
  made.add(is_below, {p}, {x}, 10);
  HandmadeImage::guard(made.add(branch, {}, {}, 4), p);
  made.add(leave);
  Operation& barrier = made.add(record, {}, {x});
  barrier.needs_convergence = barrier.tolerates_exited = true;
  run_grid(request_for(made), memory());
  EXPECT_EQ(seen.masks, std::vector<LaneMask>{0x3ff});
}

TEST_F(Machine, a_block_s_last_warp_converges_with_the_lanes_that_it_has) {
  const OperandSlot x = made.add_register("%r1");
  made.add(lane_number, {x});
  made.add(record, {}, {x}).needs_convergence = true;
  run_grid(request_for(made, 40), memory());
  EXPECT_EQ(seen.values.size(), 40u);
}

TEST_F(Machine, two_barriers_that_split_a_warp_are_reported_with_both_places) {
  const OperandSlot x = made.add_register("%r1");
  const OperandSlot p = made.add_register("%p1", ScalarType::pred);
  made.add(lane_number, {x});
  made.add(is_below, {p}, {x}, 10);
  HandmadeImage::guard(made.add(branch, {}, {}, 5), p);
  made.add(nothing, {}, {}, 0, "bar.one").needs_convergence = true;
  made.add(leave);
  made.add(nothing, {}, {}, 0, "bar.two").needs_convergence = true;
  const Fault fault = fault_of(request_for(made));
  EXPECT_EQ(fault.kind, FaultKind::divergent_barrier);
  EXPECT_THAT(fault.other_side, HasSubstr("PTX line 4: bar.one; handmade.cu:103"));
  EXPECT_THAT(fault.other_side, HasSubstr("PTX line 6: bar.two;"));
  EXPECT_THAT(fault.other_side, HasSubstr("lanes 0x000003ff"));
}

TEST_F(Machine, a_barrier_guarded_for_part_of_a_warp_is_reported) {
  const OperandSlot x = made.add_register("%r1");
  const OperandSlot p = made.add_register("%p1", ScalarType::pred);
  made.add(lane_number, {x});
  made.add(is_below, {p}, {x}, 10);
  Operation& barrier = made.add(nothing);
  barrier.needs_convergence = true;
  HandmadeImage::guard(barrier, p);
  const Fault fault = fault_of(request_for(made));
  EXPECT_EQ(fault.kind, FaultKind::divergent_barrier);
  EXPECT_EQ(fault.place.lane, 10);
  EXPECT_EQ(fault.place.ptx_line, 3u);
}

// Warp 0 waits until another warp has set a flag, the gate.
void add_gate_kernel(HandmadeImage& made, bool is_opened) {
  const OperandSlot x = made.add_register("%r1");
  const OperandSlot p = made.add_register("%p1", ScalarType::pred);
  made.add(lane_number, {x});
  made.add(is_below, {p}, {x}, 32);
  HandmadeImage::guard(made.add(branch, {}, {}, 5), p);
  made.add(is_opened ? open_gate : nothing).has_side_effect = true;
  made.add(leave);
  made.add(wait_for_gate, {}, {}, 0, "wait");
  made.add(record, {}, {x});
}

TEST_F(Machine, a_blocked_warp_goes_on_when_another_lets_it) {
  add_gate_kernel(made, true);
  run_grid(request_for(made, 64), memory());
  EXPECT_EQ(seen.values.size(), 32u);
}

TEST_F(Machine, a_deadlock_tells_who_waits_where_for_what) {
  add_gate_kernel(made, false);
  const Fault fault = fault_of(request_for(made, 96, 2, 2));
  EXPECT_EQ(fault.kind, FaultKind::deadlock);
  EXPECT_EQ(fault.place.ptx_line, 6u);
  EXPECT_EQ(fault.other_side,
            "CTA (0,0,0), warp 0, all lanes at PTX line 6: wait; handmade.cu:105 — waits for the "
            "gate\nCTA (1,0,0), warp 0, all lanes at PTX line 6: wait; handmade.cu:105 — waits "
            "for the gate");
}

Step try_gate(Warp& warp, const Operation& operation, LaneMask active) {
  LaneMask& done = *warp.destination<LaneMask>(operation, 0);
  const bool is_open = open_gates > 0;
  if (!is_open && !warp.has_timed_out) {
    warp.may_time_out = true;
    return Step::blocked;
  }
  done = is_open ? done | active : done & ~active;
  return Step::next;
}

TEST_F(Machine, a_wait_with_a_time_limit_answers_not_yet_when_all_else_is_stuck) {
  const OperandSlot p = made.add_register("%p1", ScalarType::pred);
  made.add(try_gate, {p});
  HandmadeImage::guard(made.add(branch, {}, {}, 3), p);
  made.add(open_gate).has_side_effect = true;
  made.add(try_gate, {p});
  HandmadeImage::guard(made.add(branch, {}, {}, 3), p, true);
  run_grid(request_for(made), memory());
  EXPECT_EQ(open_gates, 1);
}

TEST_F(Machine, a_loop_of_waits_that_time_out_is_a_deadlock) {
  const OperandSlot p = made.add_register("%p1", ScalarType::pred);
  made.add(try_gate, {p});
  HandmadeImage::guard(made.add(branch, {}, {}, 0), p, true);
  EXPECT_EQ(fault_of(request_for(made, 256)).kind, FaultKind::deadlock);
}

TEST_F(Machine, an_endless_loop_reaches_the_step_limit) {
  made.add(nothing);
  made.add(branch, {}, {}, 0);
  LaunchRequest request = request_for(made, 64);
  request.step_limit = 10'000;
  const Fault fault = fault_of(request);
  EXPECT_EQ(fault.kind, FaultKind::timeout);
  EXPECT_THAT(fault.other_side, HasSubstr("warp 1"));
}

TEST_F(Machine, lanes_that_wait_for_lanes_of_their_warp_come_forward) {
  // Lanes below 16 loop until the others, at a higher pc, open the gate.
  const OperandSlot x = made.add_register("%r1");
  const OperandSlot p = made.add_register("%p1", ScalarType::pred);
  const OperandSlot q = made.add_register("%p2", ScalarType::pred);
  made.add(lane_number, {x});
  made.add(is_below, {p}, {x}, 16);
  HandmadeImage::guard(made.add(branch, {}, {}, 6), p, true);
  made.add(
      [](Warp& warp, const Operation& operation, LaneMask active) {
        LaneMask& to = *warp.destination<LaneMask>(operation, 0);
        to = open_gates > 0 ? to | active : to & ~active;
        return Step::next;
      },
      {q});
  HandmadeImage::guard(made.add(branch, {}, {}, 3), q, true);
  made.add(leave);
  made.add(open_gate);
  run_grid(request_for(made), memory());
  EXPECT_EQ(open_gates, 1);
}

// --- asynchronous operations and clusters --------------------------------------------------------

Step start_opening(Warp& warp, const Operation& operation, LaneMask) {
  start_async(warp, 0, operation.pc, [](Cluster&) { ++open_gates; });
  return Step::next;
}

TEST_F(Machine, what_is_under_way_completes_when_all_wait_for_it) {
  made.add(start_opening);
  made.add(wait_for_gate);
  run_grid(request_for(made, 32, 8), memory());
  EXPECT_EQ(open_gates, 8);
}

TEST_F(Machine, what_is_under_way_at_the_end_still_completes) {
  made.add(start_opening);
  run_grid(request_for(made, 64, 4), memory());
  EXPECT_EQ(open_gates, 8);
}

TEST_F(Machine, a_fault_of_an_asynchronous_operation_has_its_issuer_s_place) {
  made.add(nothing);
  made.add([](Warp& warp, const Operation& operation, LaneMask) {
    if (warp.index == 1)
      start_async(warp, 9, operation.pc,
                  [](Cluster& cluster) { cluster.shared_place(shared_address(1, 2048)); });
    return Step::next;
  });
  const Fault fault = fault_of(request_for(made, 64, 2, 1));
  EXPECT_EQ(fault.kind, FaultKind::out_of_bounds);
  EXPECT_EQ(fault.place.ptx_line, 2u);
  EXPECT_EQ(fault.place.warp, 1);
  EXPECT_EQ(fault.place.lane, 9);
  EXPECT_EQ(fault.place.cta, (std::array<std::uint32_t, 3>{0, 0, 0}));
}

TEST_F(Machine, shared_memory_of_a_cta_that_left_is_gone) {
  made.add([](Warp& warp, const Operation&, LaneMask active) {
    if (warp.cta.rank != 1) return Step::next;
    warp.exit(active);
    return Step::jumped;
  });
  made.add([](Warp& warp, const Operation&, LaneMask) {
    if (!warp.cta.cluster.cta(1).has_left) return Step::blocked;
    warp.cta.cluster.shared_place(shared_address(1, 2048));
    return Step::next;
  });
  const Fault fault = fault_of(request_for(made, 32, 2, 2));
  EXPECT_EQ(fault.kind, FaultKind::early_exit);
  EXPECT_EQ(fault.place.ptx_line, 2u);
}

// CTA 1 accesses CTA 0's shared memory; both exit, with or without a cluster barrier before.
void add_remote_access(HandmadeImage& made, bool is_awaited) {
  made.add([](Warp& warp, const Operation&, LaneMask) {
    if (warp.cta.rank == 1) warp.cta.cluster.cta(0).remote_uses.note(warp);
    ++open_gates;
    return Step::next;
  });
  made.add([](Warp&, const Operation&, LaneMask) {  // both CTAs have arrived, in any schedule
    return open_gates < 2 ? Step::blocked : Step::next;
  });
  if (is_awaited)
    made.add([](Warp& warp, const Operation&, LaneMask) {
      static Knowledge gathered;
      if (warp.cta.rank == 1) gathered = {}, warp.release(gathered), ++open_gates;
      if (open_gates < 3) return Step::blocked;
      warp.acquire(gathered);
      return Step::next;
    });
}

TEST_F(Machine, a_cta_must_not_leave_before_it_knows_of_others_accesses) {
  add_remote_access(made, false);
  const Fault fault = fault_of(request_for(made, 32, 2, 2));
  EXPECT_EQ(fault.kind, FaultKind::early_exit);
  EXPECT_EQ(fault.place.ptx_line, 1u);
  EXPECT_EQ(fault.place.cta[0], 1u);
}

TEST_F(Machine, a_cta_may_leave_once_it_knows_of_others_accesses) {
  add_remote_access(made, true);
  run_grid(request_for(made, 32, 2, 2), memory());
}

TEST_F(Machine, every_cta_of_the_grid_runs_once_at_its_own_place) {
  const OperandSlot x = made.add_register("%r1");
  made.add(
      [](Warp& warp, const Operation& operation, LaneMask) {
        const auto& at = warp.cta.position;
        const std::uint32_t value =
            at[0] + 100 * at[1] + 10'000 * at[2] + 1'000'000 * warp.cta.rank;
        std::fill_n(warp.destination<std::uint32_t>(operation, 0), 32, value);
        return Step::next;
      },
      {x});
  made.add(record, {}, {x});
  for (const bool is_ordered : {false, true}) {
    seen.clear();
    made.image().needs_ordered_grid = is_ordered;
    LaunchRequest request = request_for(made, 1);
    request.grid = {4, 6, 3};
    request.cluster = {2, 3, 1};
    request.multiprocessors = 1;
    run_grid(request, memory());
    EXPECT_EQ(seen.values.size(), 4u * 6 * 3);
    for (std::uint32_t z = 0; z < 3; ++z)
      for (std::uint32_t y = 0; y < 6; ++y)
        for (std::uint32_t x_at = 0; x_at < 4; ++x_at) {
          const std::uint32_t rank = x_at % 2 + y % 3 * 2;
          EXPECT_EQ(seen.values.count(x_at + 100 * y + 10'000 * z + 1'000'000 * rank), 1u);
        }
  }
}

TEST_F(Machine, ctas_that_wait_for_each_other_through_memory_take_turns) {
  // CTA 0 loops until the last CTA has arrived.
  const OperandSlot q = made.add_register("%p1", ScalarType::pred);
  made.add(
      [](Warp& warp, const Operation& operation, LaneMask) {
        const std::uint32_t position = warp.cta.position[0];
        if (position == 7) ++open_gates;
        *warp.destination<LaneMask>(operation, 0) = position != 0 || open_gates > 0 ? all_lanes : 0;
        return Step::next;
      },
      {q});
  HandmadeImage::guard(made.add(branch, {}, {}, 0), q, true);
  made.image().needs_ordered_grid = true;
  run_grid(request_for(made, 32, 8), memory());
  EXPECT_EQ(open_gates, 1);
}

TEST_F(Machine, the_fault_of_the_first_cluster_wins) {
  made.add([](Warp& warp, const Operation&, LaneMask) -> Step {
    if (warp.cta.position[0] < 5) return Step::next;
    throw Fault(FaultKind::trap, "stop");
  });
  for (int round = 0; round < 20; ++round)
    EXPECT_EQ(fault_of(request_for(made, 32, 64)).place.cta[0], 5u);
}

TEST_F(Machine, one_seed_gives_one_schedule) {
  static std::vector<std::uint32_t> order;
  made.add(nothing);
  made.add([](Warp& warp, const Operation&, LaneMask) {
    order.push_back(warp.index);
    return Step::yield;
  });
  made.add([](Warp& warp, const Operation&, LaneMask) {
    order.push_back(100 + warp.index);
    return Step::next;
  });
  LaunchRequest request = request_for(made, 512);
  std::set<std::vector<std::uint32_t>> orders;
  for (request.seed = 1; request.seed <= 5; ++request.seed) {
    std::vector<std::uint32_t> first;
    for (int round = 0; round < 2; ++round) {
      order.clear();
      run_grid(request, memory());
      if (round == 0) first = order;
    }
    EXPECT_EQ(order, first);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 5u);
}

TEST_F(Machine, each_rank_sees_its_own_shared_addresses_among_the_constants) {
  made.image().constants.resize(128);
  const std::uint32_t base = 1024;
  for (std::size_t lane = 0; lane < 32; ++lane)
    std::memcpy(made.image().constants.data() + lane * 4, &base, 4);
  made.image().shared_constants = {{.offset = 0, .lane_bytes = 4}};
  Operation& operation = made.add(record);
  operation.slot[0] = {.offset = 0, .is_constant = true};
  operation.slot_count = 1;
  run_grid(request_for(made, 32, 2, 2), memory());
  EXPECT_EQ(seen.values.count(1024), 32u);
  EXPECT_EQ(seen.values.count(1u << 24 | 1024), 32u);
}

// --- wgmma's registers ---------------------------------------------------------------------------

Step start_wgmma(Warp& warp, const Operation& operation, LaneMask) {
  warp.wgmma.in_flight.push_back({.reg = operation.slot[0].reg,
                                  .group = 1,
                                  .is_written = operation.immediate != 0,
                                  .pc = operation.pc});
  return Step::next;
}

TEST_F(Machine, a_register_that_a_wgmma_writes_must_not_be_read_before_its_wait) {
  const OperandSlot x = made.add_register("%f1");
  const OperandSlot y = made.add_register("%f2");
  made.add(lane_number, {x});
  made.add(start_wgmma, {x}, {}, 1, "wgmma");
  made.add(lane_number, {y});
  made.add(add_immediate, {y}, {x}, 1);
  const Fault fault = fault_of(request_for(made));
  EXPECT_EQ(fault.kind, FaultKind::in_flight);
  EXPECT_EQ(fault.place.ptx_line, 4u);
  EXPECT_THAT(fault.message, HasSubstr("%f1 is read while the wgmma at PTX line 2"));
}

TEST_F(Machine, a_register_that_a_wgmma_reads_may_be_read_but_not_written) {
  const OperandSlot x = made.add_register("%f1");
  const OperandSlot y = made.add_register("%f2");
  made.add(lane_number, {x});
  made.add(start_wgmma, {x}, {}, 0, "wgmma");
  made.add(add_immediate, {y}, {x}, 1);
  made.add(lane_number, {x});
  const Fault fault = fault_of(request_for(made));
  EXPECT_EQ(fault.place.ptx_line, 4u);
  EXPECT_THAT(fault.message, HasSubstr("%f1 is written"));
}

// --- shapes --------------------------------------------------------------------------------------

struct Refusal {
  const char* operand;
  void (*change)(HandmadeImage&, LaunchRequest&);
};
class Shape : public ::testing::TestWithParam<Refusal> {};

TEST_P(Shape, is_refused_by_name) {
  HandmadeImage made;
  made.add(nothing);
  made.entry().name = "handmade";
  made.entry().max_threads = {128, 1, 1};
  made.entry().required_cluster = {1, 1, 1};
  LaunchRequest request = request_for(made, 64);
  GetParam().change(made, request);
  try {
    run_grid(request, memory());
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_EQ(error.operand(), GetParam().operand) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Refusals, Shape,
    ::testing::Values(
        Refusal{"grid.y", [](auto&, auto& request) { request.grid[1] = 0; }},
        Refusal{"grid.z", [](auto&, auto& request) { request.grid[2] = 70'000; }},
        Refusal{"block.z", [](auto&, auto& request) { request.block[2] = 65; }},
        Refusal{"block",
                [](auto&, auto& request) {
                  request.block = {64, 32, 1};
                }},
        Refusal{"block",
                [](auto&, auto& request) {
                  request.block = {129, 1, 1};
                }},
        Refusal{"cluster.x",
                [](auto&, auto& request) { request.grid[0] = 3, request.cluster[0] = 2; }},
        Refusal{"cluster",
                [](auto&, auto& request) { request.grid[0] = 17, request.cluster[0] = 17; }},
        Refusal{"cluster", [](auto&, auto& request) { request.grid[0] = request.cluster[0] = 2; }},
        Refusal{"parameters",
                [](auto&, auto& request) {
                  static const std::byte byte{};
                  request.parameters = {&byte, 1};
                }},
        Refusal{"shared memory",
                [](auto&, auto& request) { request.dynamic_shared_bytes = 232'449; }}));

}  // namespace
}  // namespace gemmery::emulator::tests
