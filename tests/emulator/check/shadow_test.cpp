// SPDX-License-Identifier: Apache-2.0
// Shadows: each rule of order separately, and random histories compared with a list of all
// accesses.
#include "emulator/check/shadow.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>
#include <vector>

#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

// A warp that knows only its own events.
struct Party {
  AgentIndex agent;
  std::uint32_t clock = 1;
  Knowledge known = {};

  explicit Party(AgentIndex index) : agent(index) { known.happened.raise(agent, clock); }
  Accessor as_lane(std::uint8_t lane) const {
    return {.epoch = Epoch(0, agent, clock), .known = &known, .pc = 7, .lane = lane};
  }
  Accessor as_async(AgentIndex strand, std::uint32_t group, std::uint16_t operation = 1) const {
    return {.epoch = Epoch(0, strand, group),
            .known = &known,
            .pc = 9,
            .proxy = Proxy::async,
            .operation = operation};
  }
  void begin_epoch() { known.happened.raise(agent, ++clock); }
  void release(Knowledge& to) {
    to.join(known);
    begin_epoch();
  }
  void acquire(const Knowledge& from) { known.join(from); }
  void fence() {
    known.fenced.join(known.happened);
    begin_epoch();
  }
};

class ShadowTest : public testing::Test {
 protected:
  bool reads(std::uint64_t offset, std::uint32_t bytes, const Accessor& who) {
    found = {};
    return !shadow.read(offset, bytes, who, found);
  }
  bool writes(std::uint64_t offset, std::uint32_t bytes, const Accessor& who) {
    found = {};
    return !shadow.write(offset, bytes, who, found);
  }
  void pass(Party& from, Party& to) {
    Knowledge barrier;
    from.release(barrier);
    to.acquire(barrier);
  }

  Shadow shadow{8192};
  Conflict found;
  Party first{0}, second{1}, third{2};
};

TEST_F(ShadowTest, a_read_without_order_after_a_write_is_a_race) {
  ASSERT_TRUE(writes(64, 16, first.as_lane(3)));
  EXPECT_FALSE(reads(72, 4, second.as_lane(0)));
  EXPECT_TRUE(found.is_race);
  EXPECT_TRUE(found.other_was_write);
  EXPECT_EQ(found.other, Epoch(0, 0, 1));
  EXPECT_EQ(found.other_pc, 7u);
  EXPECT_EQ(found.other_lane, 3);
  EXPECT_EQ(found.offset, 72u);
}

TEST_F(ShadowTest, release_and_acquire_order_accesses) {
  ASSERT_TRUE(writes(0, 128, first.as_lane(0)));
  pass(first, second);
  EXPECT_TRUE(reads(0, 128, second.as_lane(9)));
  EXPECT_FALSE(reads(0, 128, third.as_lane(9)));
}

TEST_F(ShadowTest, a_write_must_be_ordered_after_every_read) {
  ASSERT_TRUE(reads(0, 64, first.as_lane(0)));
  ASSERT_TRUE(reads(0, 64, second.as_lane(0)));
  pass(first, third);
  EXPECT_FALSE(writes(60, 4, third.as_lane(0)));
  EXPECT_EQ(found.other.agent(), 1u);
  EXPECT_FALSE(found.other_was_write);
  pass(second, third);
  EXPECT_TRUE(writes(60, 4, third.as_lane(0)));
}

TEST_F(ShadowTest, lanes_of_a_warp_are_ordered_by_a_new_epoch_only) {
  ASSERT_TRUE(writes(0, 4, first.as_lane(0)));
  EXPECT_TRUE(reads(0, 4, first.as_lane(0)));
  EXPECT_FALSE(reads(0, 4, first.as_lane(1)));
  first.begin_epoch();
  EXPECT_TRUE(reads(0, 4, first.as_lane(1)));
}

TEST_F(ShadowTest, lanes_may_update_halves_of_a_word) {
  for (std::uint8_t lane = 0; lane < 32; ++lane) {
    ASSERT_TRUE(reads(lane * 2u, 2, first.as_lane(lane)));
    ASSERT_TRUE(writes(lane * 2u, 2, first.as_lane(lane)));
  }
  EXPECT_FALSE(reads(2, 2, first.as_lane(0)));
  EXPECT_EQ(found.other_lane, 1);
  EXPECT_FALSE(reads(0, 2, second.as_lane(0)));
  EXPECT_EQ(found.other_lane, 0) << "the half that was written first is remembered";
}

TEST_F(ShadowTest, a_broadcast_read_conflicts_with_a_write_of_any_lane) {
  ASSERT_TRUE(reads(0, 4, first.as_lane(several_lanes)));
  EXPECT_FALSE(writes(0, 4, first.as_lane(0)));
  first.begin_epoch();
  EXPECT_TRUE(writes(0, 4, first.as_lane(0)));
}

TEST_F(ShadowTest, lanes_of_narrow_and_of_wide_rows_are_told_apart) {
  std::array<std::uint64_t, 32> narrow, wide;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    narrow[lane] = 4 * lane;
    wide[lane] = 16 * lane;
  }
  const Accessor warp = first.as_lane(0);
  ASSERT_EQ(shadow.read_lanes(~0u, narrow.data(), 0, 4, warp, found), -1);
  ASSERT_EQ(shadow.read_lanes(~0u, wide.data(), 0, 16, warp, found), -1);
  EXPECT_TRUE(writes(0, 4, first.as_lane(0)));
  EXPECT_TRUE(writes(400, 4, first.as_lane(25)));
  EXPECT_FALSE(writes(4 * 31, 4, first.as_lane(31))) << "lane 7 has read it too";
  EXPECT_FALSE(writes(4 * 30, 4, first.as_lane(7))) << "lane 30 has read it too";
}

TEST_F(ShadowTest, atomics_do_not_conflict_with_each_other_but_with_plain_accesses) {
  Accessor atomic_one = first.as_lane(0), atomic_two = second.as_lane(5);
  atomic_one.is_atomic = atomic_two.is_atomic = true;
  ASSERT_TRUE(writes(0, 4, atomic_one));
  ASSERT_TRUE(writes(0, 4, atomic_two));
  pass(second, third);
  EXPECT_FALSE(reads(0, 4, third.as_lane(0))) << "not ordered after the first atomic";
  EXPECT_EQ(found.other.agent(), 0u);
}

// They are kept as one access, so that a word that many threads count in stays cheap.
TEST_F(ShadowTest, atomics_of_several_lanes_conflict_with_plain_accesses_of_each_of_them) {
  Accessor atomic = first.as_lane(0);
  atomic.is_atomic = true;
  for (const int lane : {4, 9, 4}) {
    atomic.lane = static_cast<std::uint8_t>(lane);
    ASSERT_TRUE(writes(0, 4, atomic));
  }
  EXPECT_FALSE(reads(0, 4, first.as_lane(4))) << "not ordered after lane 9";
  EXPECT_FALSE(reads(0, 4, second.as_lane(4)));
  pass(first, second);
  EXPECT_TRUE(reads(0, 4, second.as_lane(4)));
  ASSERT_TRUE(writes(4, 4, atomic));
  EXPECT_TRUE(reads(4, 4, first.as_lane(4))) << "the only lane, without a barrier";
}

TEST_F(ShadowTest, an_async_read_needs_a_proxy_fence_after_a_generic_write) {
  ASSERT_TRUE(writes(0, 256, first.as_lane(0)));
  pass(first, second);
  EXPECT_FALSE(reads(0, 256, second.as_async(10, 1)));
  EXPECT_FALSE(found.is_race);
  second.fence();
  EXPECT_TRUE(reads(0, 256, second.as_async(10, 1)));
}

TEST_F(ShadowTest, an_async_write_is_ordered_by_its_completion_alone) {
  ASSERT_TRUE(writes(0, 256, first.as_async(20, 1)));
  EXPECT_FALSE(reads(0, 4, first.as_lane(0)));
  EXPECT_EQ(found.other_proxy, Proxy::async);
  first.known.happened.raise(20, 1);
  EXPECT_TRUE(reads(0, 4, first.as_lane(0)));
  EXPECT_TRUE(writes(0, 4, first.as_async(20, 2))) << "a generic read needs no fence";
}

TEST_F(ShadowTest, two_async_operations_of_one_phase_conflict) {
  ASSERT_TRUE(writes(0, 256, first.as_async(20, 1, 1)));
  EXPECT_TRUE(writes(256, 256, first.as_async(20, 1, 2)));
  EXPECT_FALSE(writes(128, 256, first.as_async(20, 1, 3)));
  EXPECT_EQ(found.offset, 128u);
}

TEST_F(ShadowTest, forgetting_accesses_keeps_what_was_written) {
  ASSERT_TRUE(writes(0, 64, first.as_lane(0)));
  shadow.mark_written(0, 64);
  shadow.forget_accesses();
  EXPECT_TRUE(writes(0, 64, second.as_lane(0)));
  EXPECT_TRUE(shadow.is_written(0, 64));
  shadow.forget_accesses(0, 32);
  EXPECT_TRUE(reads(0, 32, third.as_lane(0)));
  EXPECT_FALSE(reads(32, 4, third.as_lane(0)));
}

TEST_F(ShadowTest, written_bytes_are_known_one_by_one) {
  shadow.mark_written(61, 9);
  EXPECT_TRUE(shadow.is_written(61, 9));
  EXPECT_FALSE(shadow.is_written(60, 2));
  EXPECT_FALSE(shadow.is_written(69, 2));
  EXPECT_EQ(shadow.written_mask(58, 16), 0x0ff8u);
  shadow.mark_unwritten(63, 2);
  EXPECT_EQ(shadow.written_mask(58, 16), 0x0f98u);
  EXPECT_EQ(shadow.written_mask(0, 64), std::uint64_t{0b11} << 61);
}

TEST_F(ShadowTest, conflicts_say_what_to_do) {
  ASSERT_TRUE(writes(0, 4, first.as_lane(0)));
  ASSERT_FALSE(reads(0, 4, second.as_lane(0)));
  const ConflictFault fault(found, false, "shared memory", 0x1400);
  EXPECT_EQ(fault.kind, FaultKind::race);
  EXPECT_NE(fault.message.find("a read of shared memory 0x1400"), std::string::npos);
}

// --- random histories ----------------------------------------------------------------------------

struct Past {
  Accessor who;
  std::uint64_t offset;
  std::uint32_t bytes;
  bool is_write;
};

// A reference that keeps all accesses.
class Chronicle {
 public:
  explicit Chronicle(std::uint64_t bytes) : last_writes_(bytes) {}

  bool conflicts(const Past& now) const {
    for (std::uint64_t byte = now.offset; byte < now.offset + now.bytes; ++byte) {
      for (const Past& past : history_) {
        if (past.offset <= byte && byte < past.offset + past.bytes && is_race(past, now))
          return true;
      }
      if (now.who.proxy == Proxy::async && is_any_unfenced(last_writes_[byte], now)) return true;
    }
    return false;
  }

  void note(const Past& now) {
    history_.push_back(now);
    if (!now.is_write) return;
    for (std::uint64_t byte = now.offset; byte < now.offset + now.bytes; ++byte) {
      std::erase_if(last_writes_[byte], [&](const Accessor& last) { return follows(now, last); });
      last_writes_[byte].push_back(now.who);
    }
  }

 private:
  static bool follows(const Past& now, const Accessor& earlier) {
    return now.who.epoch == earlier.epoch || now.who.known->happened.knows(earlier.epoch, 0);
  }
  static bool is_race(const Past& past, const Past& now) {
    if (!past.is_write && !now.is_write) return false;
    if (past.who.is_atomic && now.who.is_atomic) return false;
    if (past.who.epoch == now.who.epoch) {
      return past.who.lane != now.who.lane || past.who.operation != now.who.operation;
    }
    return !follows(now, past.who);
  }
  static bool is_any_unfenced(const std::vector<Accessor>& writes, const Past& now) {
    return std::ranges::any_of(writes, [&](const Accessor& write) {
      return write.proxy == Proxy::generic && !now.who.known->fenced.knows(write.epoch, 0);
    });
  }

  std::vector<Past> history_;
  // For each byte the writes that no other write follows. There may be several atomics.
  std::vector<std::vector<Accessor>> last_writes_;
};

constexpr std::uint64_t lanes_begin = 0x1000;

// Addresses of three lanes, often the same.
template <class Below>
std::vector<std::uint64_t> some_lanes(std::uint64_t places, std::uint32_t bytes, Below& below) {
  std::vector<std::uint64_t> addresses(3);
  for (std::size_t lane = 0; lane < addresses.size(); ++lane) {
    const bool repeats = lane > 0 && below(2) == 0;
    addresses[lane] = repeats ? addresses[lane - 1] : lanes_begin + bytes * below(places);
  }
  return addresses;
}

// Addresses of a whole warp: one run, repeated runs, or each address several times; sometimes with
// two of them exchanged.
template <class Below>
std::vector<std::uint64_t> whole_warp(std::uint64_t places, std::uint32_t bytes, bool is_write,
                                      Below& below) {
  std::vector<std::uint64_t> addresses(32);
  const std::uint64_t period = is_write ? 32 : std::uint64_t{1} << below(6);
  const std::uint64_t repeats = is_write ? 1 : std::uint64_t{1} << below(3);
  const std::uint64_t first = below(places > 32 ? places - 31 : 1);
  for (std::size_t lane = 0; lane < addresses.size(); ++lane)
    addresses[lane] = lanes_begin + bytes * ((first + lane % period / repeats) % places);
  if (below(4) == 0) std::swap(addresses[below(32)], addresses[below(32)]);
  return addresses;
}

// An access of several lanes of a warp.
template <class Below>
bool chronicle_of_lanes(Chronicle& chronicle, Past now, std::uint64_t cells, Below& below,
                        Shadow& shadow, bool& got) {
  now.bytes = 1u << below(5);
  const std::uint64_t places = std::max<std::uint64_t>(4 * cells / now.bytes, 1);
  const std::vector<std::uint64_t> addresses =
      cells >= 128 ? whole_warp(places, now.bytes, now.is_write, below)
                   : some_lanes(places, now.bytes, below);
  const auto lanes = static_cast<std::uint32_t>((std::uint64_t{1} << addresses.size()) - 1);
  Conflict found;
  const int lane_in_conflict =
      now.is_write
          ? shadow.write_lanes(lanes, addresses.data(), lanes_begin, now.bytes, now.who, found)
          : shadow.read_lanes(lanes, addresses.data(), lanes_begin, now.bytes, now.who, found);
  got = lane_in_conflict >= 0;
  for (std::size_t lane = 0; lane < addresses.size(); ++lane) {
    now.who.lane = static_cast<std::uint8_t>(lane);
    now.offset = addresses[lane] - lanes_begin;
    if (chronicle.conflicts(now)) return true;
    chronicle.note(now);
  }
  return false;
}

// Returns the numbers of accesses without and with a conflict.
std::array<int, 2> compare_histories(int histories, int steps, std::uint64_t fewest_cells,
                                     std::uint64_t most_cells) {
  std::mt19937_64 random(tests::random_seed());
  const auto below = [&](std::uint64_t count) { return random() % count; };
  std::array<int, 2> outcomes{};
  for (int history = 0; history < histories; ++history) {
    Shadow shadow(8 * most_cells);
    Chronicle chronicle(8 * most_cells);
    std::array<Party, 3> parties{Party(0), Party(1), Party(2)};
    std::array<Knowledge, 2> barriers;
    std::array<std::uint32_t, 3> groups{1, 1, 1};
    std::uint16_t operation = 0;
    const std::uint64_t cells = fewest_cells + below(most_cells - fewest_cells + 1);
    for (int step = 0; step < steps; ++step) {
      const std::size_t index = below(parties.size());
      Party& party = parties[index];
      const auto strand = static_cast<AgentIndex>(10 + index);
      const std::uint64_t action = below(12);
      if (action == 0) party.release(barriers[below(2)]);
      if (action == 1 || action == 2) party.acquire(barriers[below(2)]);
      if (action == 3) party.fence();
      if (action == 4) party.known.happened.raise(strand, groups[index]++);
      if (action == 5) {
        for (Party& each : parties) each.release(barriers[0]);
        for (Party& each : parties) each.acquire(barriers[0]);
      }
      if (action < 6) continue;
      const bool is_async = action == 6;
      if (is_async) party.begin_epoch();  // as the machine does
      Past now{is_async ? party.as_async(strand, groups[index], ++operation)
                        : party.as_lane(static_cast<std::uint8_t>(below(2))),
               0, 0, below(3) == 0};
      now.who.is_atomic = !is_async && below(4) == 0;
      bool expected = false, got = false;
      if (!is_async && below(2) == 0) {
        expected = chronicle_of_lanes(chronicle, now, cells, below, shadow, got);
      } else {
        const bool is_long = below(3) == 0;
        now.offset = is_long ? 4 * below(cells) : below(4 * cells);
        now.bytes = is_long ? static_cast<std::uint32_t>(4 * (1 + below(cells)))
                            : static_cast<std::uint32_t>(1 + below(6));
        expected = chronicle.conflicts(now);
        Conflict found;
        got = now.is_write ? shadow.write(now.offset, now.bytes, now.who, found)
                           : shadow.read(now.offset, now.bytes, now.who, found);
        chronicle.note(now);
      }
      EXPECT_EQ(got, expected) << "history " << history << ", step " << step;
      if (got != expected) return outcomes;
      ++outcomes[expected ? 1 : 0];
      if (expected) break;
    }
  }
  return outcomes;
}

TEST(Shadow, agrees_with_a_list_of_all_accesses_up_to_the_first_conflict) {
  const auto [sound, in_conflict] = compare_histories(20000, 200, 1, 12);
  EXPECT_GT(sound, 20000);
  EXPECT_GT(in_conflict, 6000);
}

TEST(Shadow, agrees_with_that_list_where_whole_warps_access_rows) {
  const auto [sound, in_conflict] = compare_histories(4000, 100, 128, 160);
  EXPECT_GT(sound, 4000);
  EXPECT_GT(in_conflict, 1000);
}

}  // namespace
}  // namespace gemmery::emulator
