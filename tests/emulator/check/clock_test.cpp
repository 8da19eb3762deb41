// SPDX-License-Identifier: Apache-2.0
// Vector clocks: joining within a cluster and across clusters.
#include "emulator/check/clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "emulator/check/publication.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

TEST(Epoch, keeps_its_parts) {
  const Epoch epoch(max_clusters, max_agents - 1, (1u << Epoch::clock_bits) - 1);
  EXPECT_EQ(epoch.cluster(), max_clusters);
  EXPECT_EQ(epoch.agent(), max_agents - 1);
  EXPECT_EQ(epoch.clock(), (1u << Epoch::clock_bits) - 1);
  EXPECT_EQ(Epoch::from_bits(epoch.bits()), epoch);
  EXPECT_TRUE(Epoch().is_never());
  EXPECT_FALSE(Epoch(0, 0, 0).is_never());
}

TEST(VectorClock, knows_the_latest_of_what_it_joined) {
  VectorClock one, other;
  one.raise(3, 7);
  one.raise(3, 5);
  other.raise(9, 2);
  other.raise(3, 6);
  one.join(other);
  EXPECT_TRUE(one.knows(Epoch(4, 3, 7), 4));
  EXPECT_FALSE(one.knows(Epoch(4, 3, 8), 4));
  EXPECT_TRUE(one.knows(Epoch(4, 9, 2), 4));
  EXPECT_FALSE(one.knows(Epoch(5, 9, 1), 4)) << "another cluster's agent";
  EXPECT_TRUE(one.knows(Epoch(), 4));
  one.clear();
  EXPECT_FALSE(one.knows(Epoch(4, 3, 1), 4));
}

TEST(VectorClock, keeps_other_clusters_apart) {
  VectorClock first, second, third;
  first.raise(0, 3);
  second.raise(0, 8);
  second.join_foreign(first, 1, 2);  // cluster 2 acquires from cluster 1
  EXPECT_TRUE(second.knows(Epoch(1, 0, 3), 2));
  EXPECT_FALSE(second.knows(Epoch(1, 0, 4), 2));
  EXPECT_TRUE(second.knows(Epoch(2, 0, 8), 2));
  third.join_foreign(second, 2, 3);
  EXPECT_TRUE(third.knows(Epoch(1, 0, 3), 3)) << "passed on";
  first.join_foreign(third, 3, 1);
  EXPECT_EQ(first.of(0), 3u) << "what comes back is one's own";
  EXPECT_TRUE(first.knows(Epoch(2, 0, 8), 1));
}

// --- many clusters, against a plain table -------------------------------------------------------

constexpr std::uint32_t clusters = 6;
constexpr AgentIndex agents = 3;

struct Table {  // of an agent: the latest clock of each other one
  std::array<std::array<std::uint32_t, agents>, clusters> latest{};
  void join(const Table& other) {
    for (std::uint32_t cluster = 0; cluster < clusters; ++cluster)
      for (AgentIndex agent = 0; agent < agents; ++agent)
        latest[cluster][agent] = std::max(latest[cluster][agent], other.latest[cluster][agent]);
  }
};

struct Member {
  std::uint32_t cluster = 0;
  AgentIndex agent = 0;
  Knowledge knowledge;
  Table table;

  void advance() {
    const std::uint32_t clock = ++table.latest[cluster][agent];
    knowledge.happened.raise(agent, clock);
  }
  void expect_as_in_table() const {
    for (std::uint32_t from = 0; from < clusters; ++from) {
      for (AgentIndex of = 0; of < agents; ++of) {
        const std::uint32_t clock = table.latest[from][of];
        ASSERT_TRUE(clock == 0 || knowledge.happened.knows(Epoch(from, of, clock), cluster));
        ASSERT_FALSE(knowledge.happened.knows(Epoch(from, of, clock + 1), cluster));
      }
    }
  }
};

std::vector<Member> members() {
  std::vector<Member> all;
  for (std::uint32_t cluster = 0; cluster < clusters; ++cluster)
    for (AgentIndex agent = 0; agent < agents; ++agent)
      all.push_back({.cluster = cluster, .agent = agent, .knowledge = {}, .table = {}});
  return all;
}

TEST(VectorClock, knows_what_passed_between_many_clusters_and_no_more) {
  std::mt19937_64 random(gemmery::tests::random_seed());
  std::vector<Member> all = members();
  for (int step = 0; step < 400; ++step) {
    Member& to = all[random() % all.size()];
    Member& from = all[random() % all.size()];
    from.advance();
    to.knowledge.happened.join_foreign(from.knowledge.happened, from.cluster, to.cluster);
    to.table.join(from.table);
    to.expect_as_in_table();
  }
}

TEST(PublicationTable, gives_readers_what_all_releases_of_their_scope_knew) {
  std::mt19937_64 random(gemmery::tests::random_seed());
  PublicationTable published;
  Table wide;
  std::array<Table, clusters> narrow{};  // releases at cluster scope
  std::vector<Member> all = members();
  for (int step = 0; step < 400; ++step) {
    Member& by = all[random() % all.size()];
    const bool is_narrow = random() % 4 == 0;
    const Participant one{by.cluster, 0, is_narrow ? Scope::cluster : Scope::gpu};
    by.advance();
    published.publish(256, one, by.knowledge, true);
    (is_narrow ? narrow[by.cluster] : wide).join(by.table);
    Member& to = all[random() % all.size()];
    EXPECT_FALSE(published.collect(512, {to.cluster, 0, Scope::gpu}, to.knowledge));
    if (published.collect(256, {to.cluster, 0, Scope::gpu}, to.knowledge)) {
      to.table.join(wide);
      to.table.join(narrow[to.cluster]);
    }
    to.expect_as_in_table();
  }
}

}  // namespace
}  // namespace gemmery::emulator
