// SPDX-License-Identifier: Apache-2.0
// cp.async in kernels: values, source sizes, groups and mbarrier arrivals.
#include <gtest/gtest.h>

#include <gemmery/error.hpp>
#include <random>

#include "copy_kernel.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

using tests::CopyMachine;

std::vector<std::uint32_t> random_words(std::size_t count) {
  std::mt19937_64 random(gemmery::tests::random_seed());
  std::vector<std::uint32_t> words(count);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random());
  return words;
}

// Each of 32 lanes has 16 bytes: %rd5 and %r5 in global and shared memory, %rd6 for its output.
const std::string places =
    "mul.wide.u32 %rd7, %r3, 16;\nadd.u64 %rd5, %rd1, %rd7;\nadd.u64 %rd6, %rd2, %rd7;\n"
    "shl.b32 %r5, %r3, 4;\nadd.u32 %r5, %r1, %r5;\n";
const std::string read_back =
    "ld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [%r5];\n"
    "st.global.v4.b32 [%rd6], {%r20, %r21, %r22, %r23};\n";

TEST(CpAsync, lanes_copy_their_bytes_and_see_them_after_the_wait) {
  CopyMachine machine;
  const std::vector<std::uint32_t> words = random_words(128);
  const std::uint64_t in = machine.upload(words), out = machine.allocate(512);
  const char* const copies[] = {
      "cp.async.cg.shared.global [%r5], [%rd5], 16;\n",
      "cp.async.ca.shared::cta.global.L2::128B [%r5], [%rd5], 16;\n",
      "cp.async.ca.shared.global [%r5], [%rd5], 8;\n"
      "cp.async.ca.shared.global [%r5+8], [%rd5+8], 4;\n"
      "cp.async.ca.shared.global [%r5+12], [%rd5+12], 4;\n",
  };
  for (const char* copy : copies) {
    for (const char* wait :
         {"cp.async.wait_all;\n", "cp.async.commit_group;\ncp.async.wait_group 0;\n",
          "cp.async.commit_group;\ncp.async.commit_group;\n"
          "cp.async.wait_group 1;\n"}) {
      machine.run(places + copy + wait + read_back, in, out, {.threads = 32});
      EXPECT_EQ(machine.download<std::uint32_t>(out, 128), words) << copy << wait;
    }
  }
}

TEST(CpAsync, bytes_behind_the_source_size_become_zero) {
  CopyMachine machine;
  const std::vector<std::uint32_t> words = random_words(128);
  const std::uint64_t in = machine.upload(words), out = machine.allocate(512);
  // Lane l copies l % 17 bytes.
  machine.run(places +
                  "rem.u32 %r6, %r3, 17;\ncp.async.cg.shared.global [%r5], [%rd5], 16, %r6;\n"
                  "cp.async.wait_all;\n" +
                  read_back,
              in, out, {.threads = 32});
  std::vector<std::uint32_t> expected(128);
  for (std::size_t lane = 0; lane < 32; ++lane)
    std::memcpy(&expected[lane * 4], &words[lane * 4], lane % 17);
  EXPECT_EQ(machine.download<std::uint32_t>(out, 128), expected);
}

TEST(CpAsync, lanes_that_copy_nothing_do_not_touch_their_source) {
  CopyMachine machine;
  const std::uint64_t out = machine.allocate(512);
  for (const char* ignored :
       {"mov.u32 %r6, 0;\ncp.async.ca.shared.global [%r5], [%rd5], 16, %r6;\n",
        "setp.eq.u32 %p1, %r3, %r3;\n"
        "cp.async.ca.shared.global [%r5], [%rd5], 16, %p1;\n"}) {
    machine.run(places + ignored + "cp.async.wait_all;\n" + read_back, 0, out, {.threads = 32});
    EXPECT_EQ(machine.download<std::uint32_t>(out, 128), std::vector<std::uint32_t>(128));
  }
}

TEST(CpAsync, reading_before_the_group_is_waited_for_is_a_race) {
  CopyMachine machine;
  const std::uint64_t in = machine.upload(random_words(128)), out = machine.allocate(512);
  const std::string copy = places + "cp.async.cg.shared.global [%r5], [%rd5], 16;\n";
  const char* const missing[] = {
      "cp.async.commit_group;\n",
      "cp.async.commit_group;\ncp.async.wait_group 1;\n",
      // Only lane 0 waits, and the warp comes together.
      "cp.async.commit_group;\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra BEHIND;\n"
      "cp.async.wait_group 0;\nBEHIND: bar.warp.sync 0xffffffff;\n",
  };
  for (const char* wait : missing) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Fault fault = machine.fault_of(copy + wait + read_back + "cp.async.wait_all;\n", in,
                                           out, {.threads = 32, .seed = seed});
      EXPECT_TRUE(fault.kind == FaultKind::race || fault.kind == FaultKind::unwritten_read ||
                  fault.kind == FaultKind::unwritten_register)
          << fault.report() << wait;
    }
  }
}

TEST(CpAsync, an_older_group_is_done_while_a_newer_one_need_not_be) {
  CopyMachine machine;
  const std::vector<std::uint32_t> words = random_words(256);
  const std::uint64_t in = machine.upload(words), out = machine.allocate(512);
  const std::string two =
      places +
      "cp.async.cg.shared.global [%r5], [%rd5], 16;\ncp.async.commit_group;\n"
      "cp.async.cg.shared.global [%r5+512], [%rd5+512], 16;\ncp.async.commit_group;\n"
      "cp.async.wait_group 1;\n";
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    machine.run(two + read_back + "cp.async.wait_all;\n", in, out, {.threads = 32, .seed = seed});
    EXPECT_EQ(machine.download<std::uint32_t>(out, 128),
              std::vector<std::uint32_t>(words.begin(), words.begin() + 128));
    const Fault fault =
        machine.fault_of(two + "add.u32 %r5, %r5, 512;\n" + read_back + "cp.async.wait_all;\n", in,
                         out, {.threads = 32, .seed = seed});
    EXPECT_EQ(fault.kind, FaultKind::race) << fault.report();
  }
}

// The lower half of a warp runs later, as if the last iteration of a loop had diverged.
std::string halves_apart(const std::string& upper, const std::string& lower) {
  return "setp.lt.u32 %p1, %r3, 16;\n@%p1 bra LOWER;\n" + upper +
         "bra MEET;\nLOWER: mov.u32 %r10, 1000;\n"
         "LATER: sub.u32 %r10, %r10, 1;\nsetp.ne.u32 %p2, %r10, 0;\n@%p2 bra LATER;\n" +
         lower + "MEET: bar.warp.sync 0xffffffff;\n";
}
const std::string two_groups =
    "cp.async.cg.shared.global [%r5], [%rd5], 16;\ncp.async.commit_group;\n"
    "cp.async.cg.shared.global [%r5+512], [%rd5+512], 16;\ncp.async.commit_group;\n";
// Reads the first copy of the lane with an index larger by 16.
const std::string read_other_half = "xor.b32 %r5, %r5, 256;\n" + read_back;

TEST(CpAsync, lanes_apart_wait_for_groups_of_their_own) {
  CopyMachine machine;
  const std::vector<std::uint32_t> words = random_words(384);
  const std::uint64_t in = machine.upload(words), out = machine.allocate(512);
  std::vector<std::uint32_t> swapped(128);
  for (std::size_t index = 0; index < 128; ++index) swapped[index] = words[index ^ 64];
  const std::string one_done = two_groups + "cp.async.wait_group 1;\n";
  // The copies that both halves begin together are later than those that each began alone.
  const std::string together =
      "cp.async.cg.shared.global [%r5+1024], [%rd5+1024], 16;\ncp.async.commit_group;\n"
      "cp.async.wait_group 2;\n";
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (const std::string& between : {std::string(), together}) {
      machine.run(places + halves_apart(one_done, one_done) + between + read_other_half +
                      "cp.async.wait_all;\n",
                  in, out, {.threads = 32, .seed = seed});
      EXPECT_EQ(machine.download<std::uint32_t>(out, 128), swapped);
    }
    // The second group of either half is still in flight, and the first of the half that did not
    // wait.
    for (const std::string& body :
         {halves_apart(one_done, one_done) + "add.u32 %r5, %r5, 512;\n",
          halves_apart(one_done, one_done) + together + "add.u32 %r5, %r5, 512;\n",
          halves_apart(one_done, two_groups), halves_apart(two_groups, one_done)}) {
      const Fault fault = machine.fault_of(places + body + read_other_half + "cp.async.wait_all;\n",
                                           in, out, {.threads = 32, .seed = seed});
      EXPECT_EQ(fault.kind, FaultKind::race) << fault.report() << body;
    }
  }
}

// As in a loop in which some lanes are an iteration ahead when the others reach its copy.
TEST(CpAsync, what_lanes_begin_at_one_instruction_they_may_wait_for_apart) {
  CopyMachine machine;
  const std::vector<std::uint32_t> words = random_words(256);
  const std::uint64_t in = machine.upload(words), out = machine.allocate(512);
  const std::string ahead =
      "cp.async.cg.shared.global [%r5+512], [%rd5+512], 16;\ncp.async.commit_group;\n";
  const std::string together =
      "cp.async.cg.shared.global [%r5], [%rd5], 16;\ncp.async.commit_group;\n";
  // The lower half waits for the group that both begin together, its older one of two.
  const std::string body = places + "{\n" + halves_apart(ahead, "") + "}\n" + together + "{\n" +
                           halves_apart("", ahead) +
                           "}\ncp.async.wait_group 1;\nbar.warp.sync 0xffffffff;\n"
                           "setp.ge.u32 %p1, %r3, 16;\n";
  std::vector<std::uint32_t> lower_twice(words.begin(), words.begin() + 64);
  lower_twice.insert(lower_twice.end(), words.begin(), words.begin() + 64);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    machine.run(body + "@%p1 sub.u32 %r5, %r5, 256;\n" + read_back + "cp.async.wait_all;\n", in,
                out, {.threads = 32, .seed = seed});
    EXPECT_EQ(machine.download<std::uint32_t>(out, 128), lower_twice);
    const Fault fault = machine.fault_of(
        body + "@!%p1 add.u32 %r5, %r5, 256;\n" + read_back + "cp.async.wait_all;\n", in, out,
        {.threads = 32, .seed = seed});
    EXPECT_EQ(fault.kind, FaultKind::race) << fault.report();
  }
}

TEST(CpAsync, an_arrival_does_not_end_a_group) {
  CopyMachine machine;
  const std::uint64_t in = machine.upload(random_words(256)), out = machine.allocate(512);
  const std::string copies =
      places +
      "setp.ne.u32 %p1, %r3, 0;\n@%p1 bra READY;\nmbarrier.init.shared::cta.b64 [%r2], 32;\n"
      "READY: bar.warp.sync 0xffffffff;\ncp.async.cg.shared.global [%r5], [%rd5], 16;\n"
      "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r2];\n"
      "cp.async.cg.shared.global [%r5+512], [%rd5+512], 16;\ncp.async.commit_group;\n";
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Fault fault =
        machine.fault_of(copies + "cp.async.wait_group 1;\n" + read_back + "cp.async.wait_all;\n",
                         in, out, {.threads = 32, .seed = seed});
    EXPECT_TRUE(fault.kind == FaultKind::race || fault.kind == FaultKind::unwritten_read ||
                fault.kind == FaultKind::unwritten_register)
        << fault.report();
  }
}

TEST(CpAsync, an_mbarrier_tells_of_copies_of_the_whole_warp) {
  CopyMachine machine;
  const std::vector<std::uint32_t> words = random_words(128);
  const std::uint64_t in = machine.upload(words), out = machine.allocate(512);
  const std::string begin =
      places +
      "setp.ne.u32 %p1, %r3, 0;\n@%p1 bra READY;\nmbarrier.init.shared::cta.b64 [%r2], 32;\n"
      "READY: bar.warp.sync 0xffffffff;\ncp.async.cg.shared.global [%r5], [%rd5], 16;\n";
  // Reads the neighbour's copy.
  const std::string end = tests::wait_for_phase_0() + "xor.b32 %r5, %r5, 16;\n" + read_back;
  std::vector<std::uint32_t> swapped(128);
  for (std::size_t index = 0; index < 128; ++index) swapped[index] = words[index ^ 4];
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    machine.run(begin + "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r2];\n" + end, in, out,
                {.threads = 32, .seed = seed});
    EXPECT_EQ(machine.download<std::uint32_t>(out, 128), swapped);
    machine.run(begin +
                    "cp.async.mbarrier.arrive.shared::cta.b64 [%r2];\n"
                    "mbarrier.arrive.shared::cta.b64 _, [%r2];\n" +
                    end,
                in, out, {.threads = 32, .seed = seed});
    EXPECT_EQ(machine.download<std::uint32_t>(out, 128), swapped);
  }
}

TEST(CpAsync, each_misuse_is_reported_by_its_kind) {
  CopyMachine machine;
  const std::uint64_t in = machine.upload(random_words(128)), out = machine.allocate(512);
  struct Row {
    FaultKind kind;
    const char* body;
  };
  const Row faults[] = {
      {FaultKind::misaligned, "cp.async.cg.shared.global [%r5+8], [%rd5], 16;\n"},
      {FaultKind::misaligned, "cp.async.cg.shared.global [%r5], [%rd5+4], 16;\n"},
      {FaultKind::out_of_bounds, "cp.async.cg.shared.global [%r5], [%rd5+16], 16;\n"},
      {FaultKind::out_of_bounds, "cp.async.cg.shared.global [%r5+32768], [%rd5], 16;\n"},
      {FaultKind::illegal_instruction,
       "mov.u32 %r6, 17;\ncp.async.cg.shared.global [%r5], [%rd5], 16, %r6;\n"},
      {FaultKind::unwritten_register, "cp.async.cg.shared.global [%r5], [%rd9], 16;\n"},
  };
  for (const Row& row : faults) {
    const Fault fault =
        machine.fault_of(places + row.body + "cp.async.wait_all;\n", in, out, {.threads = 32});
    EXPECT_EQ(fault.kind, row.kind) << fault.report() << row.body;
  }
}

TEST(CpAsync, forms_that_do_not_exist_are_refused) {
  CopyMachine machine;
  for (const char* form : {"cp.async.cg.shared.global [%r1], [%rd1], 8;\n",
                           "cp.async.ca.shared.global [%r1], [%rd1], 12;\n",
                           "cp.async.ca.global.shared.foo [%r1], [%rd1], 4;\n"}) {
    EXPECT_THROW(machine.run(form, 0, 0), Error) << form;
  }
}

}  // namespace
}  // namespace gemmery::emulator
