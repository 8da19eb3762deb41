// SPDX-License-Identifier: Apache-2.0
// Atomics: every operation and type compared with plain C++, order among lanes, undefined values.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/emulator/instruction/copy_kernel.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator::tests {
namespace {

struct AtomicInstructions : testing::Test {
  CopyMachine machine;

  // Runs one thread with `start` in memory; returns the new value in memory and the returned value.
  template <class T>
  std::pair<T, T> apply(const std::string& form, T start, T operand, T second = {}) {
    const std::uint64_t at = machine.upload(std::vector<T>{start, operand, second});
    const std::uint64_t out = machine.allocate(16);
    const std::string reg = sizeof(T) == 8 ? "%rd" : sizeof(T) == 4 ? "%r" : "%h";
    const std::string bits = "b" + std::to_string(8 * sizeof(T));
    const std::string size = std::to_string(sizeof(T)), twice = std::to_string(2 * sizeof(T));
    const std::string load = "ld.global." + bits + " " + reg;
    const bool is_cas = form.find("cas") != std::string::npos;
    machine.run(load + "5, [%rd1+" + size + "];\n" + load + "6, [%rd1+" + twice + "];\n" +
                    "atom.global." + form + " " + reg + "7, [%rd1], " + reg + "5" +
                    (is_cas ? ", " + reg + "6" : "") + ";\nst.global." + bits + " [%rd2], " + reg +
                    "7;\n",
                at, out);
    return {machine.download<T>(at, 1)[0], machine.download<T>(out, 1)[0]};
  }
};

TEST_F(AtomicInstructions, integers_agree_with_plain_arithmetic) {
  std::mt19937_64 random(gemmery::tests::random_seed());
  for (int turn = 0; turn < 4; ++turn) {
    const auto a = static_cast<std::uint32_t>(random()), b = static_cast<std::uint32_t>(random());
    const auto s = [](std::uint32_t value) { return static_cast<std::int32_t>(value); };
    const struct {
      const char* form;
      std::uint32_t expected;
    } rows[] = {
        {"add.u32", a + b},
        {"add.s32", a + b},
        {"min.u32", std::min(a, b)},
        {"max.u32", std::max(a, b)},
        {"min.s32", s(a) < s(b) ? a : b},
        {"max.s32", s(a) < s(b) ? b : a},
        {"and.b32", a & b},
        {"or.b32", a | b},
        {"xor.b32", a ^ b},
        {"exch.b32", b},
        {"inc.u32", a >= b ? 0 : a + 1},
        {"dec.u32", a == 0 || a > b ? b : a - 1},
        {"cas.b32", a},
    };
    for (const auto& row : rows) {
      const auto [now, before] = apply<std::uint32_t>(row.form, a, b, 17);
      EXPECT_EQ(now, row.expected) << row.form;
      EXPECT_EQ(before, a) << row.form;
    }
    const std::uint64_t x = random(), y = random();
    EXPECT_EQ(apply<std::uint64_t>("add.u64", x, y).first, x + y);
    EXPECT_EQ(apply<std::uint64_t>("max.u64", x, y).first, std::max(x, y));
    EXPECT_EQ(apply<std::uint64_t>("min.s64", x, y).first,
              std::bit_cast<std::int64_t>(x) < std::bit_cast<std::int64_t>(y) ? x : y);
    EXPECT_EQ(apply<std::uint64_t>("exch.b64", x, y).first, y);
    EXPECT_EQ(apply<std::uint64_t>("cas.b64", x, x, y).first, y);
    EXPECT_EQ(apply<std::uint16_t>("cas.b16", 5, 5, 9).first, 9);
  }
}

TEST_F(AtomicInstructions, floats_round_once_and_global_f32_flushes_subnormals) {
  EXPECT_EQ(apply<float>("add.f32", 1.5f, 0x1p-25f).first, 1.5f);
  EXPECT_EQ(apply<float>("add.f32", 0x1p-140f, 0x1p-140f).first, 0.0f);
  EXPECT_EQ(apply<double>("add.f64", 1.0, 0x1p-52).first, 1.0 + 0x1p-52);
  EXPECT_EQ(apply<std::uint32_t>("add.f32", 0x7f800000, 0xff800000).first, 0x7fffffffu);
  EXPECT_EQ(apply<std::uint16_t>("add.noftz.f16", 0x3c00, 0x3c00).first, 0x4000);
  EXPECT_EQ(apply<std::uint16_t>("add.noftz.f16", 0x0001, 0x0001).first, 0x0002);
  EXPECT_EQ(apply<std::uint16_t>("add.noftz.bf16", 0x3f80, 0x3f80).first, 0x4000);
  EXPECT_EQ(apply<std::uint32_t>("add.noftz.f16x2", 0x3c00'4000, 0x3c00'3c00).first, 0x4000'4200u);
  EXPECT_EQ(apply<std::uint32_t>("add.noftz.bf16x2", 0x3f80'4000, 0x3f80'3f80).first, 0x4000'4040u);
}

TEST_F(AtomicInstructions, shared_f32_keeps_subnormals) {
  const std::uint64_t out = machine.allocate(4);
  machine.run(
      "mov.b32 %r10, 0f00000001;\nst.shared.b32 [%r1], %r10;\n"
      "red.shared.add.f32 [%r1], %r10;\nld.shared.b32 %r11, [%r1];\n"
      "st.global.b32 [%rd2], %r11;\n",
      out, out);
  EXPECT_EQ(machine.download<std::uint32_t>(out, 1)[0], 2u);
}

TEST_F(AtomicInstructions, lanes_take_turns_and_all_are_counted) {
  const std::uint64_t in = machine.upload(std::vector<std::uint32_t>{0});
  bool has_unusual_order = false;
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    const std::uint64_t out = machine.allocate(96 * 4);
    ASSERT_TRUE(machine.memory().fill(in, 0, 4));
    machine.run(
        "mul.wide.u32 %rd7, %r3, 4;\nadd.s64 %rd6, %rd2, %rd7;\n"
        "atom.add.u32 %r10, [%rd1], 1;\nst.global.b32 [%rd6], %r10;\n",
        in, out, {.threads = 96, .seed = seed});
    auto tickets = machine.download<std::uint32_t>(out, 96);
    has_unusual_order |= !std::is_sorted(tickets.begin(), tickets.begin() + 32);
    std::sort(tickets.begin(), tickets.end());
    std::vector<std::uint32_t> expected(96);
    std::iota(expected.begin(), expected.end(), 0u);
    EXPECT_EQ(tickets, expected);
  }
  EXPECT_TRUE(has_unusual_order);
}

TEST_F(AtomicInstructions, vectors_of_floats_are_added_element_by_element) {
  const std::uint64_t in = machine.upload(std::vector<float>{1, 2, 3, 4});
  machine.run(
      "mov.b32 %r10, 0f3f800000;\n"
      "red.global.v4.f32.add [%rd1], {%r10,%r10,%r10,%r10};\n"
      "atom.global.v2.f32.add {%r11,%r12}, [%rd1], {%r10,%r10};\n"
      "st.global.b32 [%rd2+12], %r12;\n",
      in, in, {.threads = 1});
  EXPECT_EQ((machine.download<float>(in, 4)), (std::vector<float>{3, 4, 4, 3}));
}

TEST_F(AtomicInstructions, distributed_shared_memory_takes_atomics) {
  const std::uint64_t out = machine.allocate(4);
  machine.run(
      "mov.u32 %r10, 0;\nst.shared.b32 [%r1], %r10;\n"
      "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
      "mapa.shared::cluster.u32 %r11, %r1, 0;\n"
      "red.relaxed.cluster.shared::cluster.add.u32 [%r11], 3;\n"
      "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
      "setp.ne.u32 %p1, %r4, 0;\n@%p1 bra END;\nld.shared.b32 %r12, [%r1];\n"
      "st.global.b32 [%rd2], %r12;\nEND:\n",
      out, out, {.cluster = 4});
  EXPECT_EQ(machine.download<std::uint32_t>(out, 1)[0], 12u);
}

TEST_F(AtomicInstructions, an_undefined_operand_or_memory_stays_undefined) {
  const std::uint64_t unwritten = machine.allocate(8), out = machine.allocate(8);
  machine.run(
      "atom.global.add.u32 %r10, [%rd1], 1;\nst.global.b32 [%rd2], %r10;\n"
      "mov.u32 %r11, 5;\natom.global.exch.b32 %r12, [%rd1+4], %r11;\n",
      unwritten, out);
  EXPECT_EQ(machine.memory().count_unwritten(out, 4), 4u);
  EXPECT_EQ(machine.memory().count_unwritten(unwritten, 4), 4u);
  EXPECT_EQ(machine.memory().count_unwritten(unwritten + 4, 4), 0u);
}

TEST_F(AtomicInstructions, an_atomic_and_a_plain_store_race) {
  const std::uint64_t in = machine.upload(std::vector<std::uint32_t>{0});
  const Fault fault = machine.fault_of(
      "setp.lt.u32 %p1, %r3, 32;\n@%p1 red.global.add.u32 [%rd1], 1;\n"
      "@!%p1 st.global.b32 [%rd1], 5;\n",
      in, in, {.threads = 33});
  EXPECT_EQ(fault.kind, FaultKind::race);
}

// Thread 0 of each block counts; the last block executes `fence`, then `last`.
std::string last_block(const std::string& fence, const std::string& last) {
  return "setp.ne.u32 %p1, %r3, 0;\n@%p1 bra END;\nmembar.gl;\n"
         "atom.global.add.u32 %r10, [%rd1], 1;\nmov.u32 %r11, %nctaid.x;\nsub.u32 %r11, %r11, 1;\n"
         "setp.ne.u32 %p2, %r10, %r11;\n@%p2 bra END;\n" +
         fence + last + "END:\n";
}

TEST_F(AtomicInstructions, the_last_block_follows_the_atomics_that_its_own_observed) {
  const std::uint64_t in = machine.upload(std::vector<std::uint32_t>{0, 0});
  const std::uint64_t out = machine.upload(std::vector<std::uint32_t>{0});
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const CopyLaunch launch{.threads = 32, .clusters = 9, .seed = seed};
    machine.run(last_block("membar.gl;\n",
                           "ld.global.u32 %r12, [%rd1];\nst.global.u32 [%rd2], %r12;\n"
                           "mov.u32 %r13, 0;\nst.global.u32 [%rd1], %r13;\n"),
                in, out, launch);
    EXPECT_EQ(machine.download<std::uint32_t>(out, 1)[0], 9u) << "seed " << seed;
    EXPECT_EQ(machine.download<std::uint32_t>(in, 1)[0], 0u) << "seed " << seed;
    // A pair of adjacent counters, read and reset by one access.
    machine.run(last_block("membar.gl;\n",
                           "ld.global.v2.u32 {%r12, %r14}, [%rd1];\nmov.u32 %r13, 0;\n"
                           "st.global.v2.u32 [%rd1], {%r13, %r14};\n"),
                in, out, launch);
    EXPECT_EQ(machine.download<std::uint32_t>(in, 1)[0], 0u) << "seed " << seed;
  }
}

TEST_F(AtomicInstructions, a_whole_warp_of_the_last_block_reads_what_blocks_have_counted) {
  const std::uint64_t in = machine.upload(std::vector<std::uint32_t>(33));
  const std::uint64_t out = machine.allocate(128);
  const std::string body =
      "mul.wide.u32 %rd7, %r3, 4;\nadd.s64 %rd6, %rd1, %rd7;\nadd.s64 %rd8, %rd2, %rd7;\n"
      "membar.gl;\natom.global.add.u32 %r10, [%rd6+4], 1;\n"
      "mov.u32 %r11, %nctaid.x;\nsub.u32 %r11, %r11, 1;\nmembar.gl;\n"
      "setp.ne.u32 %p2, %r10, %r11;\n@%p2 bra END;\n"
      "ld.global.u32 %r12, [%rd6+4];\nst.global.u32 [%rd8], %r12;\n"
      "mov.u32 %r13, 0;\nst.global.u32 [%rd6+4], %r13;\nEND:\n";
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    machine.run(body, in, out, {.threads = 32, .clusters = 9, .seed = seed});
    EXPECT_EQ(machine.download<std::uint32_t>(out, 32), std::vector<std::uint32_t>(32, 9));
    EXPECT_EQ(machine.download<std::uint32_t>(in, 33), std::vector<std::uint32_t>(33, 0));
  }
}

TEST_F(AtomicInstructions, who_does_not_follow_the_last_atomic_races_with_those_before) {
  const struct {
    const char* what;
    std::string body;
  } rows[] = {
      {"no fence behind the atomic",
       last_block("", "mov.u32 %r13, 0;\nst.global.u32 [%rd1], %r13;\n")},
      {"a read without a fence", last_block("", "ld.global.u32 %r12, [%rd1];\n")},
      {"a block that took no part",
       "mov.u32 %r11, %ctaid.x;\nsetp.eq.u32 %p1, %r11, 4;\nmembar.gl;\n"
       "@!%p1 red.global.add.u32 [%rd1], 1;\nmembar.gl;\nmov.u32 %r13, 0;\n"
       "@%p1 st.global.u32 [%rd1], %r13;\n"},
      {"a block that is not the last",
       "membar.gl;\natom.global.add.u32 %r10, [%rd1], 1;\nmembar.gl;\n"
       "setp.eq.u32 %p1, %r10, 3;\nmov.u32 %r13, 0;\n"
       "@%p1 st.global.u32 [%rd1], %r13;\n"},
      {"a strong store that no atomic observed",
       "mov.u32 %r11, %ctaid.x;\nsetp.eq.u32 %p1, %r11, 4;\nmembar.gl;\n"
       "@!%p1 st.relaxed.gpu.global.u32 [%rd1], %r11;\n"
       "@%p1 atom.global.add.u32 %r10, [%rd1], 1;\nmembar.gl;\nmov.u32 %r13, 0;\n"
       "@%p1 st.global.u32 [%rd1], %r13;\n"},
  };
  for (const auto& row : rows) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const std::uint64_t in = machine.upload(std::vector<std::uint32_t>{0});
      const Fault fault =
          machine.fault_of(row.body, in, in, {.threads = 1, .clusters = 9, .seed = seed});
      EXPECT_EQ(fault.kind, FaultKind::race) << row.what << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace gemmery::emulator::tests
