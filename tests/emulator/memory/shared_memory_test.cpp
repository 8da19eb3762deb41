// SPDX-License-Identifier: Apache-2.0
// Shared memory of one CTA: bounds, alignment, order, written bytes.
#include "emulator/memory/shared_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <numeric>

namespace gemmery::emulator {
namespace {

constexpr std::uint32_t all = ~0u;
constexpr std::uint32_t base = shared_reserved_bytes;

struct Party {
  Knowledge known;
  AgentIndex agent = 0;
  std::uint32_t clock = 1;
  Accessor accessor() const {
    return {.epoch = Epoch(0, agent, clock), .known = &known, .cluster = 0, .pc = 3};
  }
};
Party party(AgentIndex agent) {
  Party made{.known = {}, .agent = agent};
  made.known.happened.raise(agent, 1);
  return made;
}

std::array<std::uint64_t, 32> row(std::uint64_t begin, std::uint64_t stride) {
  std::array<std::uint64_t, 32> addresses;
  for (std::uint64_t lane = 0; lane < 32; ++lane) addresses[lane] = begin + lane * stride;
  return addresses;
}

FaultKind kind_of(const std::function<void()>& work, std::string* message = nullptr) {
  try {
    work();
  } catch (const Fault& fault) {
    if (message != nullptr) *message = fault.message;
    return fault.kind;
  }
  ADD_FAILURE() << "no fault";
  return FaultKind::trap;
}

TEST(SharedMemory, a_warp_stores_and_loads_every_width) {
  SharedMemory memory(4096);
  const Party who = party(0);
  for (const std::uint32_t bytes : {1u, 2u, 4u, 8u, 16u, 32u}) {
    const auto addresses = row(base, bytes);
    const LaneAccess access{.active = all, .addresses = addresses.data(), .bytes = bytes};
    std::array<std::uint8_t, 1024> values, back{};
    std::iota(values.begin(), values.end(), std::uint8_t(bytes));
    memory.shadow().forget_accesses();
    memory.store(access, who.accessor(), values.data(), bytes, all);
    EXPECT_EQ(memory.load(access, who.accessor(), back.data(), bytes), all);
    EXPECT_TRUE(std::equal(values.begin(), values.begin() + 32 * bytes, back.begin())) << bytes;
  }
}

TEST(SharedMemory, bounds_are_those_of_the_cta) {
  SharedMemory memory(128);
  const Party who = party(0);
  std::array<std::uint32_t, 32> values{};
  const auto store_at = [&](std::uint64_t begin) {
    const auto addresses = row(begin, 4);
    memory.store({.active = all, .addresses = addresses.data(), .bytes = 4}, who.accessor(),
                 values.data(), 4, all);
  };
  store_at(base);
  std::string message;
  EXPECT_EQ(kind_of([&] { store_at(base + 4); }, &message), FaultKind::out_of_bounds);
  EXPECT_NE(message.find("4 bytes past the end"), std::string::npos) << message;
  EXPECT_EQ(kind_of([&] { store_at(0); }, &message), FaultKind::out_of_bounds);
  EXPECT_NE(message.find("null"), std::string::npos) << message;
  EXPECT_EQ(kind_of([&] { store_at(base - 2); }), FaultKind::out_of_bounds);
  EXPECT_EQ(kind_of([&] { memory.check_bounds(base + 2, 4, 4); }), FaultKind::misaligned);
  EXPECT_EQ(kind_of([&] { memory.check_bounds(0xffff'fffc, 8, 4); }), FaultKind::out_of_bounds);
}

TEST(SharedMemory, memory_that_nobody_wrote_is_told_and_refused_to_hardware) {
  SharedMemory memory(1024);
  Party who = party(0);
  memory.write(base, 60, 4, who.accessor());
  who.known.happened.raise(0, ++who.clock);  // the lanes have been synchronised since
  const auto addresses = row(base, 4);
  std::array<std::uint32_t, 32> back;
  EXPECT_EQ(memory.load({.active = all, .addresses = addresses.data(), .bytes = 4}, who.accessor(),
                        back.data(), 4),
            0x7fffu);
  std::string message;
  EXPECT_EQ(kind_of([&] { memory.read(base, 64, 16, who.accessor(), true); }, &message),
            FaultKind::unwritten_read);
  EXPECT_NE(message.find("0x43c"), std::string::npos) << message;
  EXPECT_NE(memory.read(base, 60, 4, who.accessor(), true), nullptr);
}

TEST(SharedMemory, warps_race_unless_one_knows_the_other) {
  SharedMemory memory(1024);
  const Party writer = party(0);
  Party reader = party(1);
  memory.write(base, 128, 16, writer.accessor());
  const auto addresses = row(base, 4);
  std::array<std::uint32_t, 32> back;
  const auto load = [&] {
    memory.load({.active = all, .addresses = addresses.data(), .bytes = 4}, reader.accessor(),
                back.data(), 4);
  };
  EXPECT_EQ(kind_of(load), FaultKind::race);
  reader.known.join(writer.known);
  load();
}

TEST(SharedMemory, atomics_answer_the_old_value_and_do_not_race_with_each_other) {
  SharedMemory memory(1024);
  const Party first = party(0), second = party(1);
  const auto exchange = [](void* value, const void* operand) { std::memcpy(value, operand, 4); };
  std::uint32_t five = 5, six = 6, old = 0;
  EXPECT_FALSE(memory.update(base, 4, first.accessor(), exchange, &five, &old, {.replaces = true}));
  EXPECT_TRUE(memory.update(base, 4, second.accessor(), exchange, &six, &old));
  EXPECT_EQ(old, 5u);
}

// Prints a figure; there is no limit, since the machine may be busy.
TEST(SharedMemory, what_a_warp_access_costs) {
  SharedMemory memory(64 * 1024);
  Party who = party(0);
  alignas(16) std::array<std::uint8_t, 1024> values{};
  for (const std::uint32_t bytes : {4u, 8u, 16u}) {
    constexpr int turns = 20'000;
    const std::clock_t start = std::clock();  // processor time: other tests run meanwhile
    for (int turn = 0; turn < turns; ++turn) {
      if (turn % 64 == 0) who.known.happened.raise(0, ++who.clock);
      const auto addresses = row(base + static_cast<std::uint64_t>(turn % 64) * 512, bytes);
      const LaneAccess access{.active = all, .addresses = addresses.data(), .bytes = bytes};
      memory.store(access, who.accessor(), values.data(), bytes, all);
      memory.load(access, who.accessor(), values.data(), bytes);
    }
    const double elapsed_ns = 1e9 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    std::printf("%2u bytes a lane: %.0f ns per store and load\n", bytes, elapsed_ns / turns);
  }
}

}  // namespace
}  // namespace gemmery::emulator
