// SPDX-License-Identifier: Apache-2.0
// Loads and stores in every space, undefined values, and order through memory.
#include <gtest/gtest.h>

#include <gemmery/error.hpp>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "tests/emulator/instruction/copy_kernel.hpp"

namespace gemmery::emulator::tests {
namespace {

// %rd5 = in + tid * width, %rd6 = out + tid * width
std::string places(int width) {
  return "mul.wide.u32 %rd7, %r3, " + std::to_string(width) +
         ";\nadd.s64 %rd5, %rd1, %rd7;\nadd.s64 %rd6, %rd2, %rd7;\n";
}

std::vector<std::uint32_t> counting(std::size_t count) {
  std::vector<std::uint32_t> values(count);
  std::iota(values.begin(), values.end(), 0x80ff'8000u);
  return values;
}

struct MemoryInstructions : testing::Test {
  CopyMachine machine;
};

TEST_F(MemoryInstructions, vectors_of_every_width_go_through_global_memory) {
  const auto values = counting(8 * 40);
  const std::uint64_t in = machine.upload(values);
  const struct {
    const char* name;
    int width;
    const char* registers;
  } rows[] = {
      {"b8", 1, "%r10"},
      {"b16", 2, "%h1"},
      {"b32", 4, "%r10"},
      {"b64", 8, "%rd10"},
      {"v2.b8", 2, "{%r10,%r11}"},
      {"v2.b32", 8, "{%r10,%r11}"},
      {"v4.u16", 8, "{%h1,%h2,%h3,%h4}"},
      {"v4.f32", 16, "{%r10,%r11,%r12,%r13}"},
      {"v2.u64", 16, "{%rd10,%rd11}"},
      {"v4.b64", 32, "{%rd10,%rd11,%rd12,%rd13}"},
      {"v8.b32", 32, "{%r10,%r11,%r12,%r13,%r14,%r15,%r16,%r17}"},
  };
  for (const auto& row : rows) {
    const std::uint64_t out = machine.allocate(32 * 40);
    const std::string type = row.name;
    machine.run(places(row.width) + "ld.global.nc.L1::no_allocate.L2::128B." + type + " " +
                    row.registers + ", [%rd5];\nst.global.cs." + type + " [%rd6], " +
                    row.registers + ";\n",
                in, out, {.threads = 40});
    const auto bytes = static_cast<std::size_t>(row.width) * 40;
    const auto expected = machine.download<std::uint8_t>(in, bytes);
    EXPECT_EQ(machine.download<std::uint8_t>(out, bytes), expected) << type;
    EXPECT_EQ(machine.memory().count_unwritten(out, bytes), 0u) << type;
  }
}

TEST_F(MemoryInstructions, narrow_loads_extend_by_their_sign) {
  const std::uint64_t in = machine.upload(std::vector<std::uint8_t>{0x80, 0xff, 0x7f, 0x01});
  const std::uint64_t out = machine.allocate(40);
  machine.run(
      "ld.global.s8 %r10, [%rd1];\nst.global.b32 [%rd2], %r10;\n"
      "ld.global.u8 %r10, [%rd1];\nst.global.b32 [%rd2+4], %r10;\n"
      "ld.global.s16 %rd10, [%rd1];\nst.global.b64 [%rd2+8], %rd10;\n"
      "ld.global.s8 %h1, [%rd1];\nst.global.b16 [%rd2+16], %h1;\nst.global.b16 [%rd2+18], %h1;\n"
      "ld.global.s32 %rd10, [%rd1];\nst.global.b64 [%rd2+24], %rd10;\n"
      "st.global.u8 [%rd2+32], %rd10;\nst.global.u8 [%rd2+33], 7;\n",
      in, out);
  EXPECT_EQ((machine.download<std::uint32_t>(out, 2)),
            (std::vector<std::uint32_t>{0xffff'ff80, 0x80}));
  EXPECT_EQ(machine.download<std::uint64_t>(out + 8, 1)[0], 0xffff'ffff'ffff'ff80u);
  EXPECT_EQ(machine.download<std::uint32_t>(out + 16, 1)[0], 0xff80'ff80u);
  EXPECT_EQ(machine.download<std::uint64_t>(out + 24, 1)[0], 0x017f'ff80u);
  EXPECT_EQ(machine.download<std::uint16_t>(out + 32, 1)[0], 0x0780u);
}

TEST_F(MemoryInstructions, a_generic_address_leads_to_its_window) {
  const std::uint64_t in = machine.upload(counting(32));
  const std::uint64_t out = machine.allocate(128);
  // Even lanes go through shared memory, odd ones stay in global memory.
  machine.run(places(4) +
                  "cvt.u64.u32 %rd9, %r1;\ncvta.shared.u64 %rd8, %rd9;\nadd.s64 %rd8, %rd8, %rd7;\n"
                  "ld.b32 %r10, [%rd5];\nst.b32 [%rd8], %r10;\n"
                  "and.b32 %r11, %r3, 1;\nsetp.eq.u32 %p1, %r11, 0;\n"
                  "selp.b64 %rd12, %rd8, %rd5, %p1;\nld.b32 %r12, [%rd12];\nst.b32 [%rd6], %r12;\n"
                  "isspacep.shared %p2, %rd12;\n@!%p2 bra END;\nisspacep.global %p3, %rd12;\n"
                  "@%p3 trap;\nEND:\n",
              in, out, {.threads = 32});
  EXPECT_EQ(machine.download<std::uint32_t>(out, 32), counting(32));
}

TEST_F(MemoryInstructions, each_lane_has_its_own_local_memory) {
  const std::uint64_t in = machine.upload(counting(64));
  const std::uint64_t out = machine.allocate(512);
  machine.run(places(8) +
                  "{\n.local .align 16 .b8 depot[64];\n.reg .b64 %l<3>;\nmov.u64 %l1, depot;\n"
                  "cvta.local.u64 %l2, %l1;\nld.global.b64 %rd10, [%rd5];\n"
                  "st.local.b64 [%l1+8], %rd10;\nld.v2.b32 {%r10,%r11}, [%l2+8];\n"
                  "st.global.v2.b32 [%rd6], {%r10,%r11};\n}\n",
              in, out, {.threads = 32});
  EXPECT_EQ(machine.download<std::uint32_t>(out, 64), counting(64));
  const Fault fault = machine.fault_of(
      "{\n.local .align 16 .b8 depot[64];\n.reg .b64 %l<3>;\nmov.u64 %l1, depot;\n"
      "st.local.b64 [%l1+64], %rd1;\n}\n",
      in, out);
  EXPECT_EQ(fault.kind, FaultKind::out_of_bounds);
}

TEST_F(MemoryInstructions, parameters_are_read_and_never_written) {
  const std::uint64_t out = machine.allocate(16);
  machine.run(
      "ld.v2.b32 {%r10,%r11}, [%rd3+8];\nst.global.v2.b32 [%rd2], {%r10,%r11};\n"
      "ld.param.b16 %h1, [map+2];\nst.global.b16 [%rd2+8], %h1;\n",
      out, out, {.map = {0x1111'2222'3333'4444, 0x5555'6666'7777'8888}});
  EXPECT_EQ(machine.download<std::uint64_t>(out, 1)[0], 0x5555'6666'7777'8888u);
  EXPECT_EQ(machine.download<std::uint16_t>(out + 8, 1)[0], 0x3333u);
  EXPECT_EQ(machine.fault_of("st.b32 [%rd3], %r1;\n", out, out).kind, FaultKind::out_of_bounds);
}

TEST_F(MemoryInstructions, undefined_values_leave_memory_unwritten_and_do_not_decide) {
  const std::uint64_t in = machine.allocate(16), out = machine.allocate(16);
  ASSERT_TRUE(machine.memory().fill(in, 1, 8));
  machine.run(
      "ld.global.v4.b32 {%r10,%r11,%r12,%r13}, [%rd1];\n"
      "st.global.v4.b32 [%rd2], {%r10,%r12,%r11,%r13};\n",
      in, out);
  EXPECT_EQ(machine.memory().count_unwritten(out, 4), 0u);
  EXPECT_EQ(machine.memory().count_unwritten(out + 4, 4), 4u);
  EXPECT_EQ(machine.memory().count_unwritten(out + 8, 4), 0u);
  EXPECT_EQ(machine.memory().count_unwritten(out + 12, 4), 4u);
  const Fault fault =
      machine.fault_of("ld.global.b64 %rd10, [%rd1+8];\nld.global.b32 %r10, [%rd10];\n", in, out);
  EXPECT_EQ(fault.kind, FaultKind::unwritten_register);
}

TEST_F(MemoryInstructions, faults_name_the_lane) {
  const std::uint64_t in = machine.upload(counting(30)), out = machine.allocate(128);
  const Fault fault =
      machine.fault_of(places(4) + "ld.global.b32 %r10, [%rd5];\n", in, out, {.threads = 32});
  EXPECT_EQ(fault.kind, FaultKind::out_of_bounds);
  EXPECT_EQ(fault.place.lane, 30);
  EXPECT_NE(fault.message.find("4 bytes past the end of the 120 bytes"), std::string::npos)
      << fault.message;
  EXPECT_EQ(machine.fault_of("ld.global.v2.b32 {%r10,%r11}, [%rd1+4];\n", in, out).kind,
            FaultKind::misaligned);
  EXPECT_EQ(machine.fault_of("ld.shared.b32 %r10, [%rd1];\n", in, out).kind,
            FaultKind::out_of_bounds);
}

TEST_F(MemoryInstructions, mapa_leads_to_the_shared_memory_of_another_cta) {
  const std::uint64_t out = machine.allocate(2 * 8);
  machine.run(
      "xor.b32 %r10, %r4, 1;\nmapa.shared::cluster.u32 %r11, %r1, %r10;\n"
      "add.u32 %r12, %r4, 40;\nst.shared::cluster.b32 [%r11], %r12;\n"
      "getctarank.shared::cluster.u32 %r14, %r11;\n"
      "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
      "ld.shared.b32 %r13, [tile];\nmul.wide.u32 %rd7, %r4, 8;\nadd.s64 %rd6, %rd2, %rd7;\n"
      "st.global.v2.b32 [%rd6], {%r13,%r14};\n",
      out, out, {.cluster = 2});
  EXPECT_EQ((machine.download<std::uint32_t>(out, 4)), (std::vector<std::uint32_t>{41, 1, 40, 0}));
  EXPECT_EQ(machine
                .fault_of("mapa.shared::cluster.u32 %r11, %r1, 2;\n"
                          "st.shared::cluster.b32 [%r11], %r1;\n",
                          out, out, {.cluster = 2})
                .kind,
            FaultKind::out_of_bounds);
}

// CTA 1 waits for the flag that CTA 0 sets after its data.
std::string handshake(const std::string& set, const std::string& wait) {
  return "mov.u32 %r20, %ctaid.x;\nsetp.ne.u32 %p1, %r20, 0;\n@%p1 bra READER;\n"
         "mov.u32 %r10, 42;\nst.global.b32 [%rd1+64], %r10;\nmov.u32 %r11, 1;\n" +
         set + "bra END;\nREADER:\n" + wait +
         "setp.eq.u32 %p2, %r12, 0;\n@%p2 bra READER;\nld.global.b32 %r13, [%rd1+64];\n"
         "st.global.b32 [%rd2], %r13;\nEND:\n";
}

TEST_F(MemoryInstructions, release_and_acquire_order_data_between_clusters) {
  const struct {
    const char* set;
    const char* wait;
    bool is_ordered;
  } rows[] = {
      {"st.release.gpu.global.b32 [%rd1], %r11;\n", "ld.acquire.gpu.global.b32 %r12, [%rd1];\n",
       true},
      {"fence.acq_rel.gpu;\nst.relaxed.gpu.global.b32 [%rd1], %r11;\n",
       "ld.relaxed.gpu.global.b32 %r12, [%rd1];\nfence.acq_rel.gpu;\n", true},
      {"membar.gl;\nst.volatile.global.b32 [%rd1], %r11;\n",
       "ld.volatile.global.b32 %r12, [%rd1];\nmembar.gl;\n", true},
      {"fence.acq_rel.gpu;\nred.global.add.u32 [%rd1], %r11;\n",
       "atom.acquire.gpu.global.or.b32 %r12, [%rd1], 0;\n", true},
      {"st.relaxed.gpu.global.b32 [%rd1], %r11;\n", "ld.acquire.gpu.global.b32 %r12, [%rd1];\n",
       false},
      {"st.release.gpu.global.b32 [%rd1], %r11;\n", "ld.relaxed.gpu.global.b32 %r12, [%rd1];\n",
       false},
      {"st.release.cta.global.b32 [%rd1], %r11;\n", "ld.acquire.gpu.global.b32 %r12, [%rd1];\n",
       false},
  };
  for (const auto& row : rows) {
    const std::uint64_t in = machine.upload(std::vector<std::uint32_t>(32));
    const std::uint64_t out = machine.allocate(4);
    const std::string body = handshake(row.set, row.wait);
    for (std::uint64_t seed = 1; seed < 5; ++seed) {
      ASSERT_TRUE(machine.memory().fill(in, 0, 128));
      if (row.is_ordered) {
        machine.run(body, in, out, {.clusters = 2, .seed = seed});
        EXPECT_EQ(machine.download<std::uint32_t>(out, 1)[0], 42u) << row.set;
      } else {
        EXPECT_EQ(machine.fault_of(body, in, out, {.clusters = 2, .seed = seed}).kind,
                  FaultKind::race)
            << row.set << row.wait;
      }
    }
  }
}

// A word that contains its own flag needs no order.
TEST_F(MemoryInstructions, a_word_that_tells_of_itself_may_be_relaxed) {
  const std::string body =
      "mov.u32 %r20, %ctaid.x;\nsetp.ne.u32 %p1, %r20, 0;\n@%p1 bra READER;\n"
      "mov.u64 %rd10, 4294967338;\nst@ORDER@.global.b64 [%rd1], %rd10;\nbra END;\n"
      "READER:\nld.relaxed.gpu.global.b64 %rd11, [%rd1];\n"
      "setp.eq.u64 %p2, %rd11, 0;\n@%p2 bra READER;\n"
      "mov.u64 %rd12, 0;\nst.relaxed.gpu.global.b64 [%rd1], %rd12;\n"
      "st.global.b64 [%rd2], %rd11;\nEND:\n";
  const auto ordered = [&](const std::string& order) {
    std::string text = body;
    return text.replace(text.find("@ORDER@"), 7, order);
  };
  const std::uint64_t in = machine.upload(std::vector<std::uint64_t>(1));
  const std::uint64_t out = machine.allocate(8);
  for (std::uint64_t seed = 1; seed < 9; ++seed) {
    machine.run(ordered(".relaxed.gpu"), in, out, {.clusters = 2, .seed = seed});
    EXPECT_EQ(machine.download<std::uint64_t>(out, 1)[0], (std::uint64_t{1} << 32) + 42);
    EXPECT_EQ(machine.download<std::uint64_t>(in, 1)[0], 0u);
    EXPECT_EQ(machine.fault_of(ordered(""), in, out, {.clusters = 2, .seed = seed}).kind,
              FaultKind::race);
    ASSERT_TRUE(machine.memory().fill(in, 0, 8));
  }
}

TEST_F(MemoryInstructions, discarded_memory_counts_as_unwritten) {
  const std::uint64_t in = machine.upload(counting(64));
  machine.run("discard.global.L2 [%rd1], 128;\n", in, in);
  EXPECT_EQ(machine.memory().count_unwritten(in, 256), 128u);
}

TEST_F(MemoryInstructions, hints_to_caches_change_nothing) {
  const std::uint64_t in = machine.upload(counting(4)), out = machine.allocate(16);
  machine.run(
      "createpolicy.fractional.L2::evict_last.b64 %rd10, 1.0;\n"
      "prefetch.global.L2 [%rd1];\nprefetchu.L1 [%rd1];\nprefetch.tensormap [%rd3];\n"
      "applypriority.global.L2::evict_normal [%rd1], 128;\n"
      "ld.global.L1::evict_last.L2::cache_hint.L2::256B.b32 %r10, [%rd1], %rd10;\n"
      "st.global.L2::cache_hint.b32 [%rd2], %r10, %rd10;\n",
      in, out);
  EXPECT_EQ(machine.download<std::uint32_t>(out, 1)[0], counting(1)[0]);
}

TEST_F(MemoryInstructions, forms_that_are_not_known_are_refused_with_their_line) {
  const auto message_of = [&](const std::string& body) -> std::string {
    try {
      machine.run(body, 0, 0);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  for (const char* body :
       {"st.bulk.weak.shared::cta [%rd1], %rd2, 0;\n", "ld.global.strange.b32 %r10, [%rd1];\n",
        "ld.release.gpu.global.b32 %r10, [%rd1];\n", "st.const.b32 [%rd1], %r10;\n",
        "ld.global.v2.b32 {%r10,%r11,%r12}, [%rd1];\n"})
    EXPECT_NE(message_of(body).find("PTX line"), std::string::npos) << body << message_of(body);
}

}  // namespace
}  // namespace gemmery::emulator::tests
