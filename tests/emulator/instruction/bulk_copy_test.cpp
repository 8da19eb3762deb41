// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk and its reductions in kernels: values, groups, and the report of each misuse.
#include <gtest/gtest.h>

#include <gemmery/error.hpp>
#include <random>

#include "copy_kernel.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

using tests::CopyLaunch;
using tests::CopyMachine;
using tests::wait_for_phase_0;

std::vector<std::uint32_t> random_words(std::size_t count) {
  std::mt19937_64 random(gemmery::tests::random_seed());
  std::vector<std::uint32_t> words(count);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random());
  return words;
}

std::string load(std::uint32_t bytes, std::uint32_t expected) {
  return "mbarrier.init.shared::cta.b64 [%r2], 1;\n"
         "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], " +
         std::to_string(expected) +
         ";\n"
         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], " +
         std::to_string(bytes) + ", [%r2];\n";
}

std::string store(std::uint32_t bytes) {
  return "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], " + std::to_string(bytes) +
         ";\ncp.async.bulk.commit_group;\n";
}

const std::string wait_all = "cp.async.bulk.wait_group 0;\n";

TEST(BulkCopy, bytes_go_to_shared_memory_and_back) {
  CopyMachine machine;
  const std::vector<std::uint32_t> words = random_words(1024);
  const std::uint64_t in = machine.upload(words), out = machine.allocate(4096);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    machine.run(load(4096, 4096) + wait_for_phase_0() + store(4096) + wait_all, in, out,
                {.seed = seed});
    EXPECT_EQ(machine.download<std::uint32_t>(out, 1024), words);
  }
}

TEST(BulkCopy, reading_the_destination_before_the_wait_is_a_race) {
  CopyMachine machine;
  const std::uint64_t in = machine.upload(random_words(1024)), out = machine.allocate(4096);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Fault fault = machine.fault_of(
        load(4096, 4096) + store(4096) + wait_all + wait_for_phase_0(), in, out, {.seed = seed});
    EXPECT_TRUE(fault.kind == FaultKind::race || fault.kind == FaultKind::unwritten_read)
        << fault.report();
  }
}

TEST(BulkCopy, a_store_of_generic_writes_needs_the_proxy_fence) {
  CopyMachine machine;
  const std::uint64_t out = machine.allocate(16);
  const std::string writes = "mov.u32 %r5, 7;\nst.shared.v4.b32 [%r1], {%r5, %r5, %r5, %r5};\n";
  const Fault fault = machine.fault_of(writes + store(16) + wait_all, 0, out);
  EXPECT_EQ(fault.kind, FaultKind::missing_proxy_fence) << fault.report();
  machine.run(writes + "fence.proxy.async.shared::cta;\n" + store(16) + wait_all, 0, out);
  EXPECT_EQ(machine.download<std::uint32_t>(out, 4), std::vector<std::uint32_t>(4, 7));
}

TEST(BulkCopy, a_source_is_free_after_wait_group_read_and_not_before) {
  CopyMachine machine;
  const std::uint64_t out = machine.allocate(16);
  const std::string stores =
      "mov.u32 %r5, 7;\nst.shared.v4.b32 [%r1], {%r5, %r5, %r5, %r5};\n"
      "fence.proxy.async.shared::cta;\n" +
      store(16);
  const std::string reuse = "st.shared.b32 [%r1], %r3;\n";
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    machine.run(stores + "cp.async.bulk.wait_group.read 0;\n" + reuse + wait_all, 0, out,
                {.seed = seed});
    EXPECT_EQ(machine.download<std::uint32_t>(out, 4), std::vector<std::uint32_t>(4, 7));
    const Fault early = machine.fault_of(
        stores + "cp.async.bulk.wait_group.read 1;\n" + reuse + wait_all, 0, out, {.seed = seed});
    EXPECT_EQ(early.kind, FaultKind::race) << early.report();
  }
}

TEST(BulkCopy, a_block_that_leaves_its_stores_behind_is_a_fault_by_the_letter) {
  CopyMachine machine;
  const std::uint64_t out = machine.allocate(16);
  const Fault fault = machine.fault_of(
      "mov.u32 %r5, 7;\nst.shared.v4.b32 [%r1], {%r5, %r5, %r5, %r5};\n"
      "fence.proxy.async.shared::cta;\n" +
          store(16),
      0, out);
  EXPECT_EQ(fault.kind, FaultKind::early_exit) << fault.report();
  EXPECT_TRUE(fault.is_by_the_letter);
}

TEST(BulkCopy, written_global_memory_is_known_after_the_wait_for_the_whole_group_only) {
  CopyMachine machine;
  const std::uint64_t in = machine.upload(random_words(4)), out = machine.allocate(16);
  const std::string copies = load(16, 16) + wait_for_phase_0() + store(16);
  const std::string reads = "ld.global.b32 %r5, [%rd2];\n";
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    machine.run(copies + wait_all + reads, in, out, {.seed = seed});
    const Fault fault = machine.fault_of(
        copies + "cp.async.bulk.wait_group.read 0;\n" + reads + wait_all, in, out, {.seed = seed});
    EXPECT_EQ(fault.kind, FaultKind::race) << fault.report();
  }
}

TEST(BulkCopy, bytes_that_nobody_wrote_arrive_as_such) {
  CopyMachine machine;
  const std::uint64_t in = machine.allocate(64), out = machine.allocate(64);
  const Fault fault =
      machine.fault_of(load(64, 64) + wait_for_phase_0() + store(64) + wait_all, in, out);
  EXPECT_EQ(fault.kind, FaultKind::unwritten_read) << fault.report();
}

TEST(BulkCopy, each_misuse_is_reported_by_its_kind) {
  CopyMachine machine;
  const std::uint64_t in = machine.upload(random_words(1024)), out = machine.allocate(4096);
  struct Row {
    FaultKind kind;
    std::string body;
    std::uint64_t in, out;
  };
  const Row rows[] = {
      {FaultKind::misaligned, load(24, 24) + wait_for_phase_0(), in, out},
      {FaultKind::misaligned, load(32, 32) + wait_for_phase_0(), in + 8, out},
      {FaultKind::misaligned, "add.u32 %r1, %r1, 8;\n" + load(32, 32), in, out},
      {FaultKind::out_of_bounds, load(4112, 4112) + wait_for_phase_0(), in, out},
      {FaultKind::out_of_bounds, "add.u32 %r1, %r1, 32752;\n" + load(4096, 4096), in, out},
      {FaultKind::deadlock, load(32, 48) + wait_for_phase_0(), in, out},
      {FaultKind::mbarrier_misuse,
       "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 32, "
       "[%r2];\n",
       in, out},
      {FaultKind::out_of_bounds, load(32, 32) + wait_for_phase_0() + store(32) + wait_all, in,
       out + 4080},
  };
  for (const Row& row : rows) {
    const Fault fault = machine.fault_of(row.body, row.in, row.out);
    EXPECT_EQ(fault.kind, row.kind) << fault.report() << "\n" << row.body;
  }
}

TEST(BulkCopy, multicast_lands_at_the_same_place_in_each_cta_of_the_mask) {
  CopyMachine machine;
  const std::vector<std::uint32_t> words = random_words(64);
  const std::uint64_t in = machine.upload(words), out = machine.allocate(512);
  const std::string body =
      "mbarrier.init.shared::cta.b64 [%r2], 1;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;\n"
      "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
      "setp.ne.u32 %p2, %r4, 0;\n"
      "mov.u16 %h1, 3;\n"
      "@%p2 bra WAIT;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], "
      "[%rd1], 256, [%r2], %h1;\n" +
      wait_for_phase_0() + "mul.wide.u32 %rd5, %r4, 256;\nadd.u64 %rd2, %rd2, %rd5;\n" +
      store(256) + wait_all;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    machine.run(body, in, out, {.cluster = 2, .seed = seed});
    EXPECT_EQ(machine.download<std::uint32_t>(out, 64), words);
    EXPECT_EQ(machine.download<std::uint32_t>(out + 256, 64), words);
  }
  const Fault fault = machine.fault_of(body, in, out);
  EXPECT_EQ(fault.kind, FaultKind::illegal_instruction) << fault.report();
}

TEST(BulkCopy, pushes_to_the_shared_memory_of_another_cta) {
  CopyMachine machine;
  const std::vector<std::uint32_t> words = random_words(64);
  const std::uint64_t in = machine.upload(words), out = machine.allocate(256);
  // CTA 0 loads and copies to CTA 1, which stores.
  const std::string body =
      "mbarrier.init.shared::cta.b64 [%r2], 1;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;\n"
      "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
      "setp.eq.u32 %p2, %r4, 1;\n@%p2 bra RECEIVE;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 256, "
      "[%r2];\n" +
      wait_for_phase_0("LOADED") +
      "mapa.shared::cluster.u32 %r6, %r1, 1;\nmapa.shared::cluster.u32 %r7, %r2, 1;\n"
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r6], [%r1], 256, "
      "[%r7];\nbra END;\nRECEIVE:\n" +
      wait_for_phase_0() + store(256) + wait_all +
      "END: barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    machine.run(body, in, out, {.cluster = 2, .seed = seed});
    EXPECT_EQ(machine.download<std::uint32_t>(out, 64), words);
  }
}

// Each of four CTAs stores its words in the next one, which waits for their bytes: every second
// lane in order, the others in the other half of the tile in reverse order.
constexpr const char* store_in_next_cta =
    "mbarrier.init.shared::cta.b64 [%r2], 1;\n"
    "fence.mbarrier_init.release.cluster;\n"
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;\n"
    "EXPECTED: barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
    "add.u32 %r5, %r4, 1;\nand.b32 %r5, %r5, 3;\n"
    "mapa.shared::cluster.u32 %r6, %r1, %r5;\nmapa.shared::cluster.u32 %r7, %r2, %r5;\n"
    "shl.b32 %r8, %r3, 4;\nshl.b32 %r9, %r4, 9;\nadd.u32 %r9, %r9, %r8;\n"
    "cvt.u64.u32 %rd5, %r9;\nadd.u64 %rd5, %rd1, %rd5;\n"
    "ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd5];\n"
    "xor.b32 %r14, %r8, 256;\nadd.u32 %r6, %r6, %r14;\n"
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r6], "
    "{%r10, %r11, %r12, %r13}, [%r7];\n";

// Stores the words that the CTA received in `out`.
std::string store_what_came() {
  return wait_for_phase_0() +
         "add.u32 %r6, %r1, %r8;\nld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r6];\n"
         "cvt.u64.u32 %rd5, %r9;\nadd.u64 %rd5, %rd2, %rd5;\n"
         "st.global.v4.b32 [%rd5], {%r10, %r11, %r12, %r13};\n"
         "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
}

std::string init_by_one_thread(std::string body) {
  return "setp.ne.u32 %p3, %r3, 0;\n@%p3 bra EXPECTED;\n" + std::move(body);
}

TEST(AsyncStore, brings_registers_to_another_cta_and_counts_their_bytes_there) {
  CopyMachine machine;
  constexpr std::size_t words_per_cta = 128;
  const std::vector<std::uint32_t> words = random_words(4 * words_per_cta);
  const std::uint64_t in = machine.upload(words), out = machine.allocate(16 * words_per_cta);
  const std::string body = init_by_one_thread(store_in_next_cta) + store_what_came();
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    machine.run(body, in, out, {.threads = 32, .cluster = 4, .seed = seed});
    const auto got = machine.download<std::uint32_t>(out, words.size());
    for (std::size_t at = 0; at < words.size(); ++at) {
      const std::size_t sender = (at / words_per_cta + 3) % 4;
      // The halves of the tile are exchanged.
      EXPECT_EQ(got[at], words[sender * words_per_cta + ((at % words_per_cta) ^ 64)]) << at;
    }
  }
}

TEST(AsyncStore, is_a_race_where_nobody_waits_for_its_bytes) {
  CopyMachine machine;
  const std::uint64_t in = machine.upload(random_words(512)), out = machine.allocate(2048);
  std::string unwaited = store_what_came();
  unwaited.erase(0, wait_for_phase_0().size());
  const Fault fault = machine.fault_of(init_by_one_thread(store_in_next_cta) + unwaited, in, out,
                                       {.threads = 32, .cluster = 4});
  EXPECT_TRUE(fault.kind == FaultKind::race || fault.kind == FaultKind::unwritten_read ||
              fault.kind == FaultKind::early_exit)
      << fault.message;
}

TEST(AsyncStore, and_its_mbarrier_must_be_of_one_cta) {
  CopyMachine machine;
  const std::uint64_t in = machine.upload(random_words(512)), out = machine.allocate(2048);
  std::string body = init_by_one_thread(store_in_next_cta);
  body.replace(body.rfind("[%r7]"), 5, "[%r2]");
  const Fault fault = machine.fault_of(body, in, out, {.threads = 32, .cluster = 4});
  EXPECT_EQ(fault.kind, FaultKind::mbarrier_misuse) << fault.message;
}

// Every lane of four CTAs adds its number to one word of the next CTA, whose barrier counts the
// bytes; the word was set to 1000 before.
TEST(AsyncReduction, combines_numbers_in_another_cta_and_counts_their_bytes_there) {
  CopyMachine machine;
  const std::uint64_t in = machine.upload(random_words(512)), out = machine.allocate(4 * 32 * 4);
  std::string body = init_by_one_thread(
      "mbarrier.init.shared::cta.b64 [%r2], 1;\n"
      "fence.mbarrier_init.release.cluster;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;\n"
      "st.shared.u32 [%r1], 1000;\n"
      "EXPECTED: barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
      "add.u32 %r5, %r4, 1;\nand.b32 %r5, %r5, 3;\n"
      "mapa.shared::cluster.u32 %r6, %r1, %r5;\nmapa.shared::cluster.u32 %r7, %r2, %r5;\n"
      "mad.lo.u32 %r10, %r4, 32, %r3;\n"
      "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r6], %r10, "
      "[%r7];\n");
  body += wait_for_phase_0() +
          "ld.shared.u32 %r11, [%r1];\nmad.lo.u32 %r9, %r4, 32, %r3;\nmul.lo.u32 %r9, %r9, 4;\n"
          "cvt.u64.u32 %rd5, %r9;\nadd.u64 %rd5, %rd2, %rd5;\nst.global.u32 [%rd5], %r11;\n"
          "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    machine.run(body, in, out, {.threads = 32, .cluster = 4, .seed = seed});
    const auto got = machine.download<std::uint32_t>(out, 128);
    for (std::uint32_t at = 0; at < 128; ++at) {
      const std::uint32_t sender = (at / 32 + 3) % 4;
      EXPECT_EQ(got[at], 1000 + 32 * 32 * sender + 31 * 32 / 2) << at;
    }
  }
}

struct ReductionRow {
  const char* form;
  std::uint64_t old, operand, expected;  // the bits of one element
  std::uint32_t element_bytes;
};

TEST(BulkCopy, reductions_combine_with_what_is_in_global_memory) {
  const ReductionRow rows[] = {
      {"add.u32", 0xffffffff, 2, 1, 4},
      {"add.s32", 5, 0xfffffffe, 3, 4},
      {"add.u64", 0xffffffff, 1, 0x100000000, 8},
      {"add.noftz.f16", 0x3c00, 0x0001, 0x3c00, 2},
      {"add.noftz.f16", 0x0001, 0x0001, 0x0002, 2},
      {"add.noftz.bf16", 0x3f80, 0x4000, 0x4040, 2},
      {"add.f32", 0x3f800000, 0x40000000, 0x40400000, 4},
      {"add.f32", 0x80000001, 0x80000001, 0x80000000, 4},
      {"add.f64", 0x3ff0000000000000, 0x3ff0000000000000, 0x4000000000000000, 8},
      {"min.s32", 0xffffffff, 1, 0xffffffff, 4},
      {"min.u32", 0xffffffff, 1, 1, 4},
      {"max.s64", ~std::uint64_t{0}, 1, 1, 8},
      {"max.f16", 0x7fff, 0x3c00, 0x3c00, 2},
      {"min.bf16", 0x8000, 0x0000, 0x8000, 2},
      {"inc.u32", 7, 7, 0, 4},
      {"inc.u32", 6, 7, 7, 4},
      {"dec.u32", 0, 7, 7, 4},
      {"dec.u32", 9, 7, 7, 4},
      {"and.b32", 0xff00ff00, 0x0ff00ff0, 0x0f000f00, 4},
      {"or.b64", 1, std::uint64_t{1} << 40, 1 | std::uint64_t{1} << 40, 8},
      {"xor.b32", 0xffff0000, 0xff00ff00, 0x00ffff00, 4},
  };
  CopyMachine machine;
  for (const ReductionRow& row : rows) {
    std::vector<std::byte> old(64), operand(64), expected(64);
    for (std::uint32_t at = 0; at < 64; at += row.element_bytes) {
      std::memcpy(old.data() + at, &row.old, row.element_bytes);
      std::memcpy(operand.data() + at, &row.operand, row.element_bytes);
      std::memcpy(expected.data() + at, &row.expected, row.element_bytes);
    }
    const std::uint64_t in = machine.upload(operand), out = machine.upload(old);
    machine.run(load(64, 64) + wait_for_phase_0() +
                    "cp.reduce.async.bulk.global.shared::cta.bulk_group." + row.form +
                    " [%rd2], [%r1], 64;\ncp.async.bulk.commit_group;\n" + wait_all,
                in, out);
    EXPECT_EQ(machine.download<std::byte>(out, 64), expected) << row.form;
  }
}

TEST(BulkCopy, forms_that_do_not_exist_are_refused_with_their_name) {
  const char* const forms[] = {
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%rd2], [%r1], 64;",
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.s32 [%rd2], [%r1], 64;",
      "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd2], [%r1], 64, %h1;",
      "cp.async.bulk.shared::cluster.global.bulk_group [%r1], [%rd1], 64;",
      "cp.async.bulk.wait_group.write 0;",
  };
  CopyMachine machine;
  for (const char* form : forms) {
    try {
      machine.run(form, 0, 0);
      ADD_FAILURE() << form;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
      EXPECT_NE(std::string(error.what()).find("cp."), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace gemmery::emulator
