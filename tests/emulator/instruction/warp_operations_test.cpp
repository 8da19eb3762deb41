// SPDX-License-Identifier: Apache-2.0
// Shuffles, votes, matches, reductions and elections, compared with plain loops over lanes.
#include <gtest/gtest.h>

#include <bit>

#include "synchronisation_kernel.hpp"

namespace gemmery::emulator {
namespace {

std::vector<std::uint32_t> lanes_of(const std::string& body, std::uint32_t threads = 32) {
  const auto run = run_synchronisation(body + "\nst.global.u32 [%at], %d;", threads);
  expect_no_fault(run);
  return {run.values.begin(), run.values.begin() + threads};
}

TEST(Shuffle, moves_values_within_segments) {
  const std::string before = "mul.lo.u32 %a, %l, 100;\n";
  const auto up = lanes_of(before + "shfl.sync.up.b32 %d, %a, 3, 0, -1;");
  const auto down = lanes_of(before + "shfl.sync.down.b32 %d, %a, 3, 31, -1;");
  const auto across = lanes_of(before + "shfl.sync.bfly.b32 %d, %a, 5, 31, -1;");
  const auto from = lanes_of(before + "shfl.sync.idx.b32 %d, %a, 2, 0x181f, -1;");
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(up[lane], 100 * (lane >= 3 ? lane - 3 : lane));
    EXPECT_EQ(down[lane], 100 * (lane + 3 < 32 ? lane + 3 : lane));
    EXPECT_EQ(across[lane], 100 * (lane ^ 5));
    EXPECT_EQ(from[lane], 100 * ((lane & ~7u) + 2)) << "segments of eight";
  }
}

TEST(Shuffle, tells_which_lanes_were_in_range) {
  const auto lanes = lanes_of("shfl.sync.down.b32 %a|%p, %l, 8, 31, -1; selp.u32 %d, 1, 0, %p;");
  for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(lanes[lane], lane < 24 ? 1u : 0u);
}

TEST(Shuffle, a_value_from_a_lane_outside_is_undefined) {
  const auto run = run_synchronisation(
      "setp.ge.u32 %p, %l, 16; @%p ret; shfl.sync.idx.b32 %a, %l, 20, 31, 0xffff;\n"
      "setp.eq.u32 %q, %a, 3; @%q st.global.u32 [%at], 1;",
      32);
  expect_fault(run, FaultKind::unwritten_register, "");
}

TEST(Shuffle, groups_of_lanes_may_meet_in_one_instruction) {
  const auto lanes = lanes_of(
      "and.b32 %b, %l, 16; shl.b32 %a, 0xffff, %b; shfl.sync.bfly.b32 %d, %l, 15, 31, %a;");
  for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(lanes[lane], lane ^ 15u);
}

TEST(Shuffle, lanes_that_parted_wait_for_each_other) {
  const auto lanes = lanes_of(
      "mov.u32 %a, %l; setp.lt.u32 %p, %l, 7; @!%p bra MEET; add.u32 %a, %a, 50;\n"
      "MEET: mov.u32 %b, -1; shfl.sync.idx.b32 %d, %a, 0, 31, %b;");
  for (const std::uint32_t value : lanes) EXPECT_EQ(value, 50u);
}

TEST(Shuffle, lanes_that_left_are_not_waited_for) {
  const auto lanes =
      lanes_of("setp.gt.u32 %p, %l, 20; @%p ret; shfl.sync.idx.b32 %d, %l, 3, 31, -1;");
  EXPECT_EQ(lanes[20], 3u);
  EXPECT_EQ(lanes[21], 0u);
}

TEST(Shuffle, membermasks_must_fit_the_lanes) {
  expect_fault(run_synchronisation("shfl.sync.idx.b32 %d, %l, 0, 31, 0xff;", 32),
               FaultKind::divergent_barrier, "leaves out");
  expect_fault(
      run_synchronisation(
          "setp.lt.u32 %p, %l, 4; mov.u32 %a, 0xff; @%p shfl.sync.idx.b32 %d, %l, 0, 31, %a;", 32),
      FaultKind::divergent_barrier, "guard");
  expect_fault(run_synchronisation("setp.lt.u32 %p, %l, 4; @!%p bra OTHER; mov.u32 %a, 0xff;\n"
                                   "shfl.sync.idx.b32 %d, %l, 0, 31, %a; ret;\n"
                                   "OTHER: bar.warp.sync -1;",
                                   32),
               FaultKind::deadlock, "have not come to this instruction");
}

TEST(Vote, answers_for_all_members) {
  const std::string before = "setp.lt.u32 %p, %l, 9;\n";
  EXPECT_EQ(lanes_of(before + "vote.sync.ballot.b32 %d, %p, -1;")[5], 0x1ffu);
  EXPECT_EQ(lanes_of(before + "vote.sync.ballot.b32 %d, !%p, -1;")[5], ~0x1ffu);
  EXPECT_EQ(lanes_of(before + "vote.sync.any.pred %q, %p, -1; selp.u32 %d, 1, 0, %q;")[30], 1u);
  EXPECT_EQ(lanes_of(before + "vote.sync.all.pred %q, %p, -1; selp.u32 %d, 1, 0, %q;")[0], 0u);
  EXPECT_EQ(lanes_of(before + "vote.sync.uni.pred %q, %p, -1; selp.u32 %d, 1, 0, %q;")[0], 0u);
  EXPECT_EQ(lanes_of(before + "vote.sync.ballot.b32 %d, %p, -1;", 16)[3], 0x1ffu)
      << "lanes that do not exist are not waited for";
}

TEST(Match, finds_equal_values) {
  const auto any = lanes_of("and.b32 %a, %l, 3; match.any.sync.b32 %d, %a, -1;");
  for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(any[lane], 0x11111111u << (lane & 3));
  EXPECT_EQ(lanes_of("match.all.sync.b32 %d|%p, 7, -1;")[0], ~0u);
  EXPECT_EQ(lanes_of("cvt.u64.u32 %s, %l; match.all.sync.b64 %d|%p, %s, -1;")[0], 0u);
}

TEST(Reduction, combines_the_members) {
  const std::string before = "sub.s32 %a, %l, 10;\n";
  EXPECT_EQ(lanes_of(before + "redux.sync.add.s32 %d, %a, -1;")[9], 496u - 320u);
  EXPECT_EQ(static_cast<std::int32_t>(lanes_of(before + "redux.sync.min.s32 %d, %a, -1;")[0]), -10);
  EXPECT_EQ(lanes_of(before + "redux.sync.min.u32 %d, %a, -1;")[0], 0u);
  EXPECT_EQ(lanes_of(before + "redux.sync.max.s32 %d, %a, -1;")[0], 21u);
  EXPECT_EQ(lanes_of("redux.sync.xor.b32 %d, %l, -1;")[0], 0u);
  EXPECT_EQ(lanes_of("redux.sync.or.b32 %d, %l, -1;")[0], 31u);
}

TEST(ActiveMask, names_the_lanes_that_are_here) {
  const auto lanes =
      lanes_of("setp.lt.u32 %p, %l, 4; mov.u32 %d, 0; @!%p bra END; activemask.b32 %d; END:");
  EXPECT_EQ(lanes[0], 0xfu);
  EXPECT_EQ(lanes[9], 0u);
}

TEST(Elect, chooses_one_lane) {
  const auto lanes = lanes_of("elect.sync _|%p, -1; selp.u32 %d, 1, 0, %p;");
  std::uint32_t elected = 0;
  for (const std::uint32_t lane : lanes) elected += lane;
  EXPECT_EQ(elected, 1u);
}

}  // namespace
}  // namespace gemmery::emulator
