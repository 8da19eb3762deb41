// SPDX-License-Identifier: Apache-2.0
// mbarriers: phases, counts, bytes, the order that they establish, and the report of each misuse.
#include <gtest/gtest.h>

#include "synchronisation_kernel.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

// Thread 0 initialises both mbarriers, all see it.
std::string initialised(const std::string& count) {
  return "mov.u32 %b, bar; setp.eq.u32 %p, %t, 0;\n@%p mbarrier.init.shared::cta.b64 [%b], " +
         count + ";\n@%p mbarrier.init.shared::cta.b64 [%b+8], " + count + ";\nbar.sync 0;\n";
}
// Waits for a phase's parity at an mbarrier.
std::string wait_for(const std::string& address, const std::string& parity,
                     const std::string& label) {
  return label + ": mbarrier.try_wait.parity.shared::cta.b64 %p, [" + address + "], " + parity +
         ";\n@!%p bra " + label + ";\n";
}
const std::string arrive = "mbarrier.arrive.shared::cta.b64 %s, [%b];\n";

TEST(Mbarrier, orders_what_was_written_before_the_arrivals) {
  const std::string body = initialised("64") +
                           "mov.u32 %a, data; mad.lo.u32 %d, %t, 4, %a; st.shared.u32 [%d], %t;\n" +
                           arrive + wait_for("%b", "0", "W") +
                           "xor.b32 %e, %t, 41; mad.lo.u32 %d, %e, 4, %a; ld.shared.u32 %e, [%d];\n"
                           "st.global.u32 [%at], %e;";
  for (unsigned round = 0; round < 10; ++round) {
    const auto run = run_synchronisation(body, 64, 1, tests::random_seed() + round);
    expect_no_fault(run);
    for (std::uint32_t thread = 0; thread < 64; ++thread)
      ASSERT_EQ(run.values[thread], thread ^ 41u);
  }
  std::string wrong = body;
  wrong.replace(wrong.find("[%b], 0;"), 8, "[%b], 1;");
  expect_fault(run_synchronisation(wrong, 64), FaultKind::race, "not ordered");
}

TEST(Mbarrier, a_relaxed_arrival_orders_nothing) {
  std::string body = initialised("64") +
                     "mov.u32 %a, data; mad.lo.u32 %d, %t, 4, %a; st.shared.u32 [%d], %t;\n"
                     "mbarrier.arrive.relaxed.cta.shared::cta.b64 %s, [%b];\n" +
                     wait_for("%b", "0", "W") +
                     "xor.b32 %e, %t, 41; mad.lo.u32 %d, %e, 4, %a; ld.shared.u32 %e, [%d];";
  expect_fault(run_synchronisation(body, 64), FaultKind::race, "not ordered");
}

TEST(Mbarrier, states_of_arrivals_can_be_waited_for_and_counted) {
  const auto run =
      run_synchronisation(initialised("32") + arrive +
                              "W: mbarrier.test_wait.shared::cta.b64 %p, [%b], %s; @!%p bra W;\n"
                              "mbarrier.pending_count.b64 %d, %s; st.global.u32 [%at], %d;",
                          32);
  expect_no_fault(run);
  EXPECT_EQ(run.values[0], 32u);
  EXPECT_EQ(run.values[31], 1u);
}

TEST(Mbarrier, bytes_hold_a_phase_open) {
  const std::string body = initialised("1") +
                           "setp.ne.u32 %p, %t, 0; @%p ret;\n"
                           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 96;\n"
                           "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%b], 64;\n@DONE@" +
                           wait_for("%b", "0", "W") + "st.global.u32 [%at], 1;";
  std::string with = body, without = body;
  with.replace(with.find("@DONE@"), 6, "mbarrier.complete_tx.shared::cta.b64 [%b], 32;\n");
  without.replace(without.find("@DONE@"), 6, "");
  const auto run = run_synchronisation(with, 32);
  expect_no_fault(run);
  EXPECT_EQ(run.values[0], 1u);
  expect_fault(run_synchronisation(without, 32), FaultKind::deadlock,
               "32 bytes are expected beyond what came");
}

TEST(Mbarrier, remote_arrivals_count) {
  const auto run = run_synchronisation(
      initialised("2") +
          "barrier.cluster.arrive; barrier.cluster.wait; setp.ne.u32 %p, %t, 0; @%p bra END;\n"
          "mapa.shared::cluster.u32 %d, %b, 0; mbarrier.arrive.shared::cluster.b64 _, [%d];\n"
          "mapa.shared::cluster.u32 %d, %b, 1; mbarrier.arrive.shared::cluster.b64 _, [%d];\n" +
          wait_for("%b", "0", "W") +
          "st.global.u32 [%at], 5;\nEND: barrier.cluster.arrive; barrier.cluster.wait;",
      32, 2);
  expect_no_fault(run);
  EXPECT_EQ(run.values[0], 5u);
  EXPECT_EQ(run.values[256], 5u);
}

TEST(Mbarrier, generic_addresses_reach_it) {
  expect_no_fault(run_synchronisation(
      initialised("32") +
          "cvt.u64.u32 %n, %b; cvta.shared.u64 %n, %n; mbarrier.arrive.b64 %s, [%n];\n"
          "W: mbarrier.try_wait.b64 %p, [%n], %s; @!%p bra W;",
      32));
}

TEST(Mbarrier, dropping_an_arrival_lowers_the_next_phase) {
  const auto run = run_synchronisation(initialised("2") +
                                           "setp.ne.u32 %p, %t, 0; @%p ret;\n"
                                           "mbarrier.arrive_drop.shared::cta.b64 _, [%b];\n" +
                                           arrive + wait_for("%b", "0", "W") + arrive +
                                           wait_for("%b", "1", "V") + "st.global.u32 [%at], 4;",
                                       32);
  expect_no_fault(run);
  EXPECT_EQ(run.values[0], 4u);
}

TEST(Mbarrier, misuse_is_told_by_its_words) {
  const std::string alone = "setp.ne.u32 %p, %t, 0; @%p ret; mov.u32 %b, bar;\n";
  const auto expect = [&](const std::string& body, FaultKind kind, const std::string& words) {
    SCOPED_TRACE(body);
    expect_fault(run_synchronisation(alone + body, 32), kind, words);
  };
  const std::string init = "mbarrier.init.shared::cta.b64 [%b], 2;\n";
  expect(arrive, FaultKind::mbarrier_misuse, "there is no mbarrier");
  expect("mbarrier.init.shared::cta.b64 [%b], 0;", FaultKind::mbarrier_misuse, "1 to 2^20-1");
  expect(init + init, FaultKind::mbarrier_misuse, "of a live mbarrier");
  expect(init + "mbarrier.arrive.shared::cta.b64 %s, [%b], 3;", FaultKind::mbarrier_misuse,
         "waits for 2 of 2");
  expect(init + "st.shared.u32 [%b+4], 1;\n" + arrive, FaultKind::mbarrier_misuse, "overwritten");
  expect(init + "mbarrier.inval.shared::cta.b64 [%b];\n" + arrive, FaultKind::mbarrier_misuse,
         "invalidated");
  expect(init +
             "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%b], 1048575;\n"
             "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%b], 1;",
         FaultKind::mbarrier_misuse, "outside of");
  expect(init + "mbarrier.arrive.noComplete.shared::cta.b64 %s, [%b], 2;",
         FaultKind::mbarrier_misuse, ".noComplete");
  expect(init + "mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 2;", FaultKind::mbarrier_misuse,
         "parities are 0 and 1");
  expect(init + "mbarrier.arrive.shared::cta.b64 %s, [%b+4];", FaultKind::misaligned,
         "multiple of 8");
  expect(init + arrive + arrive + arrive + "mbarrier.arrive.shared::cta.b64 %n, [%b];\n" +
             "mbarrier.test_wait.shared::cta.b64 %p, [%b], %n;" + arrive + arrive +
             "mbarrier.test_wait.shared::cta.b64 %p, [%b], %n;",
         FaultKind::mbarrier_misuse, "with a state of phase 1, while phase 3");
}

TEST(Mbarrier, using_it_without_order_after_its_init_is_a_fault_in_every_schedule) {
  bool has_come_after_the_init = false;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const auto run = run_synchronisation(
        "mov.u32 %b, bar; setp.ne.u32 %p, %t, 0; @%p bra USE;\n"
        "mbarrier.init.shared::cta.b64 [%b], 64; ret;\n"
        "USE: setp.lt.u32 %p, %t, 32; @%p ret;\n" +
            arrive,
        64, 1, seed);
    ASSERT_TRUE(run.fault.has_value());
    const std::string words = run.fault->report();
    if (run.fault->kind == FaultKind::race) {
      EXPECT_NE(words.find("mbarrier.init"), std::string::npos) << words;
      has_come_after_the_init = true;
    } else {
      EXPECT_NE(words.find("there is no mbarrier"), std::string::npos) << words;
    }
  }
  EXPECT_TRUE(has_come_after_the_init);
}

TEST(Mbarrier, a_phase_that_cannot_complete_says_what_is_missing) {
  expect_fault(run_synchronisation(initialised("65") + arrive + wait_for("%b", "0", "W"), 64),
               FaultKind::deadlock, "lacks 1 of 65 arrivals");
  expect_fault(run_synchronisation(initialised("64") + arrive + wait_for("%b", "1", "W") +
                                       wait_for("%b", "0", "V") + wait_for("%b", "1", "U"),
                                   64),
               FaultKind::deadlock, "phase parity 1");
}

TEST(Mbarrier, bytes_that_nobody_expected_are_told) {
  expect_fault(run_synchronisation(initialised("1") +
                                       "setp.ne.u32 %p, %t, 0; @%p ret;\n"
                                       "mbarrier.complete_tx.shared::cta.b64 [%b], 48;\n" +
                                       arrive + wait_for("%b", "0", "W"),
                                   32),
               FaultKind::deadlock, "48 bytes came that nobody expected");
}

}  // namespace
}  // namespace gemmery::emulator
