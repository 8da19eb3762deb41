// SPDX-License-Identifier: Apache-2.0
// Global memory: allocations, bounds, written bytes, conflicts.
#include "emulator/memory/global_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "emulator/memory/address.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint64_t limit = std::uint64_t{1} << 30;
constexpr std::uint32_t all = ~0u;

// A warp of cluster 0 that knows only itself.
struct Party {
  Knowledge known;
  std::uint32_t cluster = 0;
  AgentIndex agent = 0;
  Accessor accessor() const {
    return {.epoch = Epoch(cluster, agent, 1), .known = &known, .cluster = cluster, .pc = 7};
  }
};
Party party(AgentIndex agent, std::uint32_t cluster = 0) {
  Party made{.known = {}, .cluster = cluster, .agent = agent};
  made.known.happened.raise(agent, 1);
  return made;
}

std::array<std::uint64_t, 32> row(std::uint64_t base, std::uint64_t stride) {
  std::array<std::uint64_t, 32> addresses;
  for (std::uint64_t lane = 0; lane < 32; ++lane) addresses[lane] = base + lane * stride;
  return addresses;
}

FaultKind kind_of(const std::function<void()>& work, std::string* message = nullptr,
                  int* lane = nullptr) {
  try {
    work();
  } catch (const Fault& fault) {
    if (message != nullptr) *message = fault.message;
    if (lane != nullptr) *lane = fault.place.lane;
    return fault.kind;
  }
  ADD_FAILURE() << "no fault";
  return FaultKind::trap;
}

TEST(GlobalMemory, allocations_are_aligned_and_far_apart_and_counted) {
  GlobalMemory memory(limit);
  const std::uint64_t first = memory.allocate(100);
  const std::uint64_t second = memory.allocate(5000);
  EXPECT_EQ(first % 256, 0u);
  EXPECT_GE(first, global_window);
  EXPECT_GE(second, first + 100 + 64 * 1024);
  EXPECT_EQ(memory.used_bytes(), 5100u);
  EXPECT_FALSE(memory.free(first + 256));
  EXPECT_TRUE(memory.free(first));
  EXPECT_FALSE(memory.free(first));
  EXPECT_EQ(memory.used_bytes(), 5000u);
  EXPECT_EQ(memory.allocate(limit), 0u);
}

TEST(GlobalMemory, an_address_belongs_to_the_allocation_that_holds_it) {
  GlobalMemory memory(limit);
  const std::uint64_t at = memory.allocate(100);
  EXPECT_EQ(memory.find(at + 99)->address, at);
  EXPECT_EQ(memory.find(at + 99)->bytes, 100u);
  EXPECT_FALSE(memory.find(at + 100));
  EXPECT_FALSE(memory.find(at - 1));
}

TEST(GlobalMemory, host_copies_move_any_bytes_within_one_allocation) {
  GlobalMemory memory(limit);
  std::mt19937_64 random(tests::random_seed());
  const std::uint64_t at = memory.allocate(100'000);
  std::vector<std::uint8_t> values(60'000), back(60'000);
  for (auto& value : values) value = static_cast<std::uint8_t>(random());
  ASSERT_TRUE(memory.copy_in(at + 123, values.data(), values.size()));
  ASSERT_TRUE(memory.copy_out(back.data(), at + 123, back.size()));
  EXPECT_EQ(values, back);
  EXPECT_FALSE(memory.copy_in(at + 50'000, values.data(), values.size()));
  EXPECT_FALSE(memory.copy_out(back.data(), at - 1, 10));
  ASSERT_TRUE(memory.fill(at + 1000, 0xab, 20'000));
  ASSERT_TRUE(memory.copy_out(back.data(), at + 1000, 20'000));
  EXPECT_TRUE(std::all_of(back.begin(), back.begin() + 20'000, [](auto b) { return b == 0xab; }));
}

TEST(GlobalMemory, copies_between_allocations_carry_what_was_written) {
  GlobalMemory memory(limit);
  const std::uint64_t from = memory.allocate(40'000), to = memory.allocate(40'000);
  ASSERT_TRUE(memory.fill(from, 1, 20'001));
  ASSERT_TRUE(memory.copy(to + 7, from + 1, 30'000));
  EXPECT_EQ(memory.count_unwritten(to, 7), 7u);
  EXPECT_EQ(memory.count_unwritten(to + 7, 20'000), 0u);
  EXPECT_EQ(memory.count_unwritten(to + 20'007, 1000), 1000u);
}

TEST(GlobalMemory, lanes_store_and_load_what_they_stored) {
  GlobalMemory memory(limit);
  std::mt19937_64 random(tests::random_seed());
  const std::uint64_t at = memory.allocate(1 << 20);
  for (const std::uint32_t bytes : {1u, 2u, 4u, 8u, 16u, 32u}) {
    std::array<std::uint64_t, 32> addresses;
    for (std::uint64_t lane = 0; lane < 32; ++lane)
      addresses[lane] = at + (lane * 1000 + random() % 30) * bytes;
    const auto active = static_cast<std::uint32_t>(random()) | 1;
    std::array<std::uint8_t, 1024> values, back{};
    for (auto& value : values) value = static_cast<std::uint8_t>(random());
    const LaneAccess access{.active = active, .addresses = addresses.data(), .bytes = bytes};
    const Party who = party(0);
    memory.forget_accesses();
    memory.store(access, who.accessor(), values.data(), bytes, all);
    EXPECT_EQ(memory.load(access, who.accessor(), back.data(), bytes), active);
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      if ((active >> lane & 1) == 0) continue;
      EXPECT_EQ(std::memcmp(&values[lane * bytes], &back[lane * bytes], bytes), 0) << lane;
    }
  }
}

TEST(GlobalMemory, a_load_tells_which_bytes_nobody_wrote) {
  GlobalMemory memory(limit);
  const std::uint64_t at = memory.allocate(32 * 16);
  ASSERT_TRUE(memory.fill(at, 0, 16 * 3 + 12));
  const auto addresses = row(at, 16);
  std::array<std::uint8_t, 512> back;
  std::array<std::uint32_t, 32> written{};
  const LaneAccess access{.active = 0xf, .addresses = addresses.data(), .bytes = 16};
  const Party who = party(0);
  EXPECT_EQ(memory.load(access, who.accessor(), back.data(), 16, written.data()), 0x7u);
  EXPECT_EQ(written[3], 0xfffu);
}

TEST(GlobalMemory, a_store_of_an_undefined_value_leaves_memory_unwritten) {
  GlobalMemory memory(limit);
  const std::uint64_t at = memory.allocate(32 * 8);
  ASSERT_TRUE(memory.fill(at, 0, 32 * 8));
  const auto addresses = row(at, 8);
  const std::array<std::uint64_t, 32> values{};
  std::array<std::uint32_t, 32> written{};
  written[1] = 0xf0;
  const LaneAccess access{.active = all, .addresses = addresses.data(), .bytes = 8};
  memory.store(access, party(0).accessor(), values.data(), 8, all & ~3u, written.data());
  EXPECT_EQ(memory.count_unwritten(at, 8), 8u);
  EXPECT_EQ(memory.count_unwritten(at + 8, 8), 4u);
  EXPECT_EQ(memory.count_unwritten(at + 12, 4), 0u);
  EXPECT_EQ(memory.count_unwritten(at + 16, 240), 0u);
}

TEST(GlobalMemory, an_access_past_an_allocation_says_by_how_many_bytes) {
  GlobalMemory memory(limit);
  const std::uint64_t at = memory.allocate(1000);
  const auto addresses = row(at + 880, 4);
  std::array<std::uint8_t, 128> back;
  std::string message;
  int lane = -1;
  const Party who = party(0);
  const auto load = [&] {
    memory.load({.active = all, .addresses = addresses.data(), .bytes = 4}, who.accessor(),
                back.data(), 4);
  };
  EXPECT_EQ(kind_of(load, &message, &lane), FaultKind::out_of_bounds);
  EXPECT_EQ(lane, 30);
  EXPECT_NE(message.find("4 bytes past the end of the 1000 bytes at"), std::string::npos)
      << message;
}

TEST(GlobalMemory, foreign_addresses_and_freed_memory_are_named) {
  GlobalMemory memory(limit);
  const std::uint64_t first = memory.allocate(16);
  const std::uint64_t keep = memory.allocate(16);
  const std::uint64_t gone = memory.allocate(1000);
  const Party who = party(0);
  std::array<std::uint8_t, 4> back;
  const auto message_at = [&](std::uint64_t address) {
    std::string message;
    EXPECT_EQ(kind_of([&] { memory.read_bytes(address, 4, who.accessor(), back.data(), nullptr); },
                      &message),
              FaultKind::out_of_bounds);
    return message;
  };
  memory.read_bytes(gone, 4, who.accessor(), back.data(), nullptr);
  ASSERT_TRUE(memory.free(gone));
  EXPECT_NE(message_at(gone + 4).find("freed: 1000 bytes"), std::string::npos);
  EXPECT_NE(message_at(shared_window + 0x400).find("a shared address used as global"),
            std::string::npos);
  EXPECT_NE(message_at(0).find("null pointer"), std::string::npos);
  EXPECT_NE(message_at(keep - 8).find("8 bytes before"), std::string::npos);
  EXPECT_NE(message_at(first - 8).find("8 bytes before"), std::string::npos);
  EXPECT_NE(message_at(first - (std::uint64_t{1} << 34)).find("host address"), std::string::npos);
  EXPECT_NE(message_at(keep + (std::uint64_t{1} << 20)).find("past the end"), std::string::npos);
  EXPECT_NE(message_at(keep + (std::uint64_t{1} << 34)).find("no allocation is within 1 GiB"),
            std::string::npos);
  EXPECT_EQ(kind_of([&] {
              const auto addresses = row(keep + 2, 4);
              memory.load({.active = 1, .addresses = addresses.data(), .bytes = 4}, who.accessor(),
                          back.data(), 4);
            }),
            FaultKind::misaligned);
}

TEST(GlobalMemory, unordered_accesses_race_until_the_next_kernel) {
  GlobalMemory memory(limit);
  const std::uint64_t at = memory.allocate(1024);
  const auto addresses = row(at, 4);
  const LaneAccess access{.active = all, .addresses = addresses.data(), .bytes = 4};
  std::array<std::uint32_t, 32> values{};
  const Party first = party(0), second = party(1), elsewhere = party(0, 1);
  memory.store(access, first.accessor(), values.data(), 4, all);
  memory.load(access, first.accessor(), values.data(), 4);
  EXPECT_EQ(kind_of([&] { memory.load(access, second.accessor(), values.data(), 4); }),
            FaultKind::race);
  memory.forget_accesses();
  memory.load(access, second.accessor(), values.data(), 4);
  EXPECT_EQ(kind_of([&] { memory.store(access, elsewhere.accessor(), values.data(), 4, all); }),
            FaultKind::race);
}

TEST(GlobalMemory, lanes_may_store_the_same_value_to_one_place_but_not_different_ones) {
  GlobalMemory memory(limit);
  const std::uint64_t at = memory.allocate(1024);
  const auto addresses = row(at, 0);
  const LaneAccess access{.active = all, .addresses = addresses.data(), .bytes = 4};
  std::array<std::uint32_t, 32> values;
  values.fill(5);
  const Party who = party(0);
  memory.store(access, who.accessor(), values.data(), 4, all);
  memory.forget_accesses();
  values[9] = 6;
  EXPECT_EQ(kind_of([&] { memory.store(access, who.accessor(), values.data(), 4, all); }),
            FaultKind::race);
}

TEST(GlobalMemory, atomics_of_many_threads_lose_nothing) {
  GlobalMemory memory(limit);
  const std::uint64_t at = memory.allocate(8);
  ASSERT_TRUE(memory.fill(at, 0, 8));
  const auto add = [](void* value, const void* operand) {
    std::uint64_t a, b;
    std::memcpy(&a, value, 8);
    std::memcpy(&b, operand, 8);
    a += b;
    std::memcpy(value, &a, 8);
  };
  std::vector<std::thread> threads;
  for (AgentIndex agent = 0; agent < 4; ++agent) {
    threads.emplace_back([&memory, at, add, agent] {
      const Party who = party(agent, agent);
      const std::uint64_t one = 1;
      for (int turn = 0; turn < 2000; ++turn)
        EXPECT_TRUE(memory.update(at, 8, who.accessor(), add, &one, nullptr));
    });
  }
  for (auto& thread : threads) thread.join();
  std::uint64_t sum = 0;
  ASSERT_TRUE(memory.copy_out(&sum, at, 8));
  EXPECT_EQ(sum, 8000u);
}

TEST(GlobalMemory, threads_may_allocate_and_free_while_others_work) {
  GlobalMemory memory(limit);
  const std::uint64_t shared = memory.allocate(1 << 16);
  std::vector<std::thread> threads;
  for (std::uint64_t number = 0; number < 4; ++number) {
    threads.emplace_back([&memory, shared, number] {
      const Party who = party(static_cast<AgentIndex>(number), static_cast<std::uint32_t>(number));
      for (int turn = 0; turn < 200; ++turn) {
        const std::uint64_t own = memory.allocate(50'000);
        const auto addresses = row(own + 16'320, 4);
        std::array<std::uint32_t, 32> values{}, back{};
        std::iota(values.begin(), values.end(), 0u);
        const LaneAccess access{.active = all, .addresses = addresses.data(), .bytes = 4};
        memory.store(access, who.accessor(), values.data(), 4, all);
        EXPECT_EQ(memory.load(access, who.accessor(), back.data(), 4), all);
        EXPECT_EQ(values, back);
        const std::uint32_t mine = 1;
        memory.write_bytes(shared + number * 16'384, 4, who.accessor(), &mine);
        EXPECT_TRUE(memory.free(own));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(memory.used_bytes(), 1u << 16);
}

TEST(GlobalMemory, the_host_accesses_mapped_memory_at_its_address) {
  GlobalMemory memory(limit, host_range);
  const std::uint64_t address = memory.allocate_mapped(5'000);
  ASSERT_NE(address, 0u);
  auto* const bytes = reinterpret_cast<unsigned char*>(address);
  EXPECT_TRUE(std::all_of(bytes, bytes + 5'000, [](unsigned char byte) { return byte == 0; }));
  EXPECT_EQ(memory.count_unwritten(address, 5'000), 0u);
  bytes[17] = 42;
  unsigned char back = 0;
  EXPECT_TRUE(memory.copy_out(&back, address + 17, 1));
  EXPECT_EQ(back, 42);
  EXPECT_TRUE(memory.fill(address, 7, 5'000));
  EXPECT_EQ(bytes[4'999], 7);
  EXPECT_FALSE(memory.fill(address, 7, 5'001));
  EXPECT_TRUE(memory.free(address));
  EXPECT_EQ(memory.used_bytes(), 0u);
}

TEST(GlobalMemory, adopted_bytes_stay_the_callers) {
  GlobalMemory memory(limit);
  std::vector<int> numbers{1, 2, 3};
  const std::uint64_t address = memory.adopt(numbers.data(), 12);
  Party who = party(1);
  const auto addresses = row(address, 0);
  const int five = 5;
  const LaneAccess access{.active = 1, .addresses = addresses.data(), .bytes = 4};
  memory.store(access, who.accessor(), &five, 4, 1);
  EXPECT_EQ(numbers[0], 5);
  EXPECT_TRUE(memory.free(address));
  EXPECT_EQ(numbers[2], 3);
}

TEST(GlobalMemory, addresses_of_a_peer_are_valid_as_long_as_it_is_one) {
  GlobalMemory near(limit, global_range(1)), far(limit, global_range(2));
  const std::uint64_t address = far.allocate(64);
  Party who = party(1);
  const auto addresses = row(address, 0);
  int value = 9;
  const LaneAccess access{.active = 1, .addresses = addresses.data(), .bytes = 4};
  const auto store = [&] { near.store(access, who.accessor(), &value, 4, 1); };
  EXPECT_EQ(kind_of(store), FaultKind::out_of_bounds);
  near.add_peer(far);
  store();
  int back = 0;
  EXPECT_TRUE(far.copy_out(&back, address, 4));
  EXPECT_EQ(back, 9);
  Party other = party(2, 1);
  EXPECT_EQ(kind_of([&] { far.store(access, other.accessor(), &value, 4, 1); }), FaultKind::race);
  near.forget_accesses();
  far.store(access, other.accessor(), &value, 4, 1);
  near.remove_peer(far);
  EXPECT_FALSE(near.find(address));
}

}  // namespace
}  // namespace gemmery::emulator
