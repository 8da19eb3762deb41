// SPDX-License-Identifier: Apache-2.0
// Vector clocks: joining within a cluster and across clusters.
#include "emulator/check/clock.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace gemmery::emulator
