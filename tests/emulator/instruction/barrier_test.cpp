// SPDX-License-Identifier: Apache-2.0
// Named barriers, barriers of warps and clusters, fences and register quotas: the order that they
// establish, and the report of each misuse.
#include <gtest/gtest.h>

#include "synchronisation_kernel.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

// Each thread stores its number and reads that of the thread with an index larger by `distance`.
std::string exchange(const std::string& between, int distance) {
  return "mov.u32 %a, data; mad.lo.u32 %b, %t, 4, %a; st.shared.u32 [%b], %t;\n" + between +
         "add.u32 %d, %t, " + std::to_string(distance) +
         "; and.b32 %d, %d, 127; mad.lo.u32 %b, %d, 4, %a; ld.shared.u32 %d, [%b]; "
         "st.global.u32 [%at], %d;";
}

void expect_exchanged(const SynchronisationRun& run, std::uint32_t distance) {
  expect_no_fault(run);
  for (std::uint32_t thread = 0; thread < 128; ++thread)
    ASSERT_EQ(run.values[thread], (thread + distance) % 128);
}

TEST(Barrier, orders_all_threads_of_the_cta) {
  for (int round = 0; round < 10; ++round)
    expect_exchanged(run_synchronisation(exchange("bar.sync 0;", 37), 128, 1,
                                         tests::random_seed() + static_cast<unsigned>(round)),
                     37);
  expect_exchanged(run_synchronisation(exchange("barrier.cta.sync 3, 128;", 37), 128), 37);
  expect_exchanged(run_synchronisation(exchange("barrier.sync.aligned 15;", 37), 128), 37);
}

TEST(Barrier, a_missing_one_is_a_race) {
  expect_fault(run_synchronisation(exchange("", 37), 128), FaultKind::race, "shared");
  expect_fault(run_synchronisation(exchange("bar.warp.sync -1;", 37), 128), FaultKind::race,
               "barrier");
}

TEST(Barrier, a_warp_barrier_orders_the_lanes_of_a_warp) {
  const std::string within =
      "mov.u32 %a, data; mad.lo.u32 %b, %t, 4, %a; st.shared.u32 [%b], %t;\n@SYNC@"
      "xor.b32 %d, %t, 9; mad.lo.u32 %b, %d, 4, %a; ld.shared.u32 %d, [%b]; "
      "st.global.u32 [%at], %d;";
  const auto with = [&](const std::string& sync) {
    std::string text = within;
    return run_synchronisation(text.replace(text.find("@SYNC@"), 6, sync), 48);
  };
  expect_no_fault(with("bar.warp.sync -1;"));
  expect_fault(with(""), FaultKind::race, "not ordered");
}

TEST(Barrier, lanes_that_parted_meet_at_different_warp_barriers) {
  const auto run = run_synchronisation(
      "mov.u32 %a, data; mad.lo.u32 %b, %t, 4, %a; setp.lt.u32 %p, %l, 16; @%p bra LOW;\n"
      "st.shared.u32 [%b], 7; bar.warp.sync -1; ld.shared.u32 %d, [%a]; bra END;\n"
      "LOW: st.shared.u32 [%b], 5; bar.warp.sync -1; ld.shared.u32 %d, [%a+64];\n"
      "END: st.global.u32 [%at], %d;",
      32);
  expect_no_fault(run);
  EXPECT_EQ(run.values[0], 7u);
  EXPECT_EQ(run.values[31], 5u);
}

TEST(Barrier, arrivals_of_others_let_those_who_wait_go_on) {
  // Warp 0 writes and arrives, warp 1 waits and reads; the other warps do not participate.
  const auto run = run_synchronisation(
      "setp.gt.u32 %p, %w, 1; @%p ret; mov.u32 %a, data; setp.eq.u32 %p, %w, 1; @%p bra READ;\n"
      "mad.lo.u32 %b, %l, 4, %a; st.shared.u32 [%b], 21; bar.arrive 1, 64; ret;\n"
      "READ: bar.sync 1, 64; mad.lo.u32 %b, %l, 4, %a; ld.shared.u32 %d, [%b]; "
      "st.global.u32 [%at], %d;",
      128);
  expect_no_fault(run);
  EXPECT_EQ(run.values[40], 21u);
}

TEST(Barrier, warps_that_left_are_not_waited_for) {
  const auto run = run_synchronisation(
      "setp.eq.u32 %p, %w, 2; @%p ret; bar.sync 0; st.global.u32 [%at], 3;", 128);
  expect_no_fault(run);
  EXPECT_EQ(run.values[0], 3u);
  EXPECT_EQ(run.values[64], 0u);
}

// Threads from 37 on, a part of warp 1 of 3, exit before each of `sync`.
TEST(Barrier, lanes_that_left_are_not_waited_for) {
  for (const char* const sync :
       {"bar.sync 0;", "barrier.sync.aligned 0;", "barrier.sync 0;", "bar.sync 2, 64;",
        "bar.warp.sync -1;", "bar.red.popc.u32 %d, 0, %p;", "barrier.red.popc.u32 %d, 0, %p;"}) {
    SCOPED_TRACE(sync);
    for (int round = 0; round < 10; ++round) {
      const auto run = run_synchronisation(
          std::string("setp.gt.u32 %p, %t, 36; @%p ret; mov.u32 %d, 0; setp.lt.u32 %p, %t, 35;\n") +
              sync + "add.u32 %d, %d, 1; st.global.u32 [%at], %d;",
          96, 1, tests::random_seed() + static_cast<unsigned>(round));
      expect_no_fault(run);
      const bool counts = std::string_view(sync).find("popc") != std::string_view::npos;
      EXPECT_EQ(run.values[0], counts ? 36u : 1u);
      EXPECT_EQ(run.values[36], counts ? 36u : 1u);
      EXPECT_EQ(run.values[37], 0u);
    }
  }
}

TEST(Barrier, lanes_that_leave_while_others_wait_are_not_waited_for) {
  for (const char* const sync : {"bar.sync 0;", "barrier.sync 0;"}) {
    SCOPED_TRACE(sync);
    for (int round = 0; round < 10; ++round) {
      const auto run = run_synchronisation(
          std::string("mov.u32 %d, 0; setp.lt.u32 %p, %l, 9; @%p bra MEET;\n"
                      "LOOP: add.u32 %d, %d, 1; setp.lt.u32 %p, %d, 50; @%p bra LOOP; ret;\n"
                      "MEET: ") +
              sync + "st.global.u32 [%at], 4;",
          64, 1, tests::random_seed() + static_cast<unsigned>(round));
      expect_no_fault(run);
      EXPECT_EQ(run.values[32], 4u);
    }
  }
}

TEST(Barrier, what_needs_the_whole_warp_misses_lanes_that_left) {
  const std::string exit = "setp.gt.u32 %p, %l, 20; @%p ret;\n";
  for (const char* const whole :
       {"barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
        "mov.u32 %a, data; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d}, [%a];",
        "mov.u32 %a, data; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%a], {%t};",
        "setmaxnreg.dec.sync.aligned.u32 40;"}) {
    expect_fault(run_synchronisation(exit + whole, 128), FaultKind::divergent_barrier,
                 "lanes 0xffe00000 of the warp left");
  }
}

TEST(Barrier, lanes_on_another_path_are_missed_though_others_left) {
  expect_fault(run_synchronisation("setp.gt.u32 %p, %l, 20; @%p ret;\n"
                                   "setp.lt.u32 %p, %l, 3; @%p bra OTHER; bar.sync 0; ret;\n"
                                   "OTHER: bar.sync 0;",
                                   64),
               FaultKind::divergent_barrier, "at different instructions");
}

TEST(Barrier, reductions_count_the_threads) {
  const auto run = run_synchronisation(
      "setp.lt.u32 %p, %t, 70; bar.red.popc.u32 %d, 0, %p; st.global.u32 [%at], %d;\n"
      "bar.red.and.pred %q, 0, !%p; @%q st.global.u32 [%at], 1000;\n"
      "bar.red.or.pred %q, 1, 128, %p; @!%q st.global.u32 [%at], 1001;",
      128);
  expect_no_fault(run);
  EXPECT_EQ(run.values[0], 70u);
  EXPECT_EQ(run.values[127], 70u);
}

TEST(Barrier, misuse_is_told_by_its_words) {
  expect_fault(run_synchronisation("bar.sync 1, 33;", 128), FaultKind::barrier_misuse,
               "multiple of 32");
  expect_fault(run_synchronisation("bar.sync 16;", 128), FaultKind::barrier_misuse, "0 to 15");
  expect_fault(
      run_synchronisation("min.u32 %a, %w, 1; mad.lo.u32 %a, %a, 32, 64; bar.sync 1, %a;", 96),
      FaultKind::barrier_misuse, "same number of threads");
  expect_fault(run_synchronisation("bar.arrive 1, 64; bar.arrive 1, 64;", 32),
               FaultKind::barrier_misuse, "from 32 to the CTA's 32");
  expect_fault(run_synchronisation("bar.arrive 1, 128; bar.arrive 1, 128;", 128),
               FaultKind::barrier_misuse, "again");
  expect_fault(
      run_synchronisation("setp.lt.u32 %p, %l, 3; @%p bra END; bar.sync 0; END: bar.sync 0;", 64),
      FaultKind::divergent_barrier, "");
}

TEST(Barrier, warps_at_different_ones_are_a_deadlock_that_says_who_has_come) {
  const auto run = run_synchronisation("add.u32 %a, %w, 1; bar.sync %a, 64;", 64);
  expect_fault(run, FaultKind::deadlock, "barrier 1 expects 64 threads, 32 have come: warps 0");
  expect_fault(run, FaultKind::deadlock, "barrier 2 expects 64 threads, 32 have come: warps 1");
}

TEST(ClusterBarrier, orders_shared_memory_of_other_ctas) {
  const std::string text =
      "mov.u32 %a, data; st.shared.u32 [%a], %c;\n@SYNC@"
      "xor.b32 %b, %c, 1; mapa.shared::cluster.u32 %d, %a, %b; ld.shared::cluster.u32 %e, [%d];\n"
      "st.global.u32 [%at], %e;\n"
      "barrier.cluster.arrive; barrier.cluster.wait;";
  const auto with = [&](const std::string& sync) {
    std::string body = text;
    body.replace(body.find("@SYNC@"), 6, sync);
    return run_synchronisation("setp.ne.u32 %p, %l, 0; @%p ret; " + body, 32, 2);
  };
  const auto run = with("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;");
  expect_no_fault(run);
  EXPECT_EQ(run.values[0], 1u);
  EXPECT_EQ(run.values[256], 0u);
  expect_fault(with("barrier.cluster.arrive.relaxed; barrier.cluster.wait;"), FaultKind::race,
               "not ordered");
  expect_no_fault(
      with("fence.acq_rel.cluster; barrier.cluster.arrive.relaxed; barrier.cluster.wait;"));
}

TEST(ClusterBarrier, each_arrive_needs_its_wait) {
  expect_fault(run_synchronisation("barrier.cluster.wait;", 32, 2), FaultKind::barrier_misuse,
               "without a barrier.cluster.arrive");
  expect_fault(run_synchronisation("barrier.cluster.arrive; barrier.cluster.arrive;", 32, 2),
               FaultKind::barrier_misuse, "without barrier.cluster.wait");
}

TEST(ClusterBarrier, says_who_has_not_come) {
  expect_fault(run_synchronisation("setp.eq.u32 %p, %c, 1; @%p bra HANG;\n"
                                   "barrier.cluster.arrive; barrier.cluster.wait; ret;\n"
                                   "HANG: setp.eq.u32 %p, %w, 0; @%p bra.uni END;\n"
                                   "bar.sync 1, 64; END: bar.sync 2, 64;",
                                   64, 2),
               FaultKind::deadlock, "not come are CTA 1 warp 0, CTA 1 warp 1");
}

TEST(RegisterQuota, registers_given_back_can_be_taken) {
  // 384 threads have 168 each.
  std::string text =
      "setp.lt.u32 %p, %w, 4; @%p bra GIVE;\nsetmaxnreg.inc.sync.aligned.u32 232; ret;\n"
      "GIVE: setmaxnreg.dec.sync.aligned.u32 40;";
  expect_no_fault(run_synchronisation(text, 384));
  text.replace(text.find("232"), 3, "240");
  expect_fault(run_synchronisation(text, 384), FaultKind::deadlock, "setmaxnreg.inc to 240");
  expect_fault(run_synchronisation("setmaxnreg.dec.sync.aligned.u32 176;", 384),
               FaultKind::illegal_instruction, "168");
}

TEST(RegisterQuota, all_warps_of_a_warpgroup_must_agree) {
  expect_fault(run_synchronisation("setp.eq.u32 %p, %w, 1; @%p bra OTHER;\n"
                                   "setmaxnreg.dec.sync.aligned.u32 40; ret;\n"
                                   "OTHER: setmaxnreg.dec.sync.aligned.u32 48;",
                                   128),
               FaultKind::divergent_barrier, "all four warps");
}

}  // namespace
}  // namespace gemmery::emulator
