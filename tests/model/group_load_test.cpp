// SPDX-License-Identifier: Apache-2.0
// The load of blocks that compute every n-th tile of groups, compared with an explicit loop over
// tiles.
#include "model/group_load.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include "tests/support/random_seed.hpp"

namespace gemmery::model {
namespace {

GroupLoad deal_out(const std::vector<GroupTiles>& groups, int blocks) {
  std::vector<double> work(static_cast<std::size_t>(blocks), 0.0);
  std::size_t tile = 0;
  double all = 0;
  for (const GroupTiles& group : groups) {
    for (std::int64_t own = 0; own < group.tiles; ++own, ++tile) {
      work[tile % work.size()] += group.work;
      all += group.work;
    }
  }
  if (tile == 0) return {};
  const auto tiles = static_cast<double>(tile);
  return {.tiles = tiles, .busiest = std::ranges::max(work) / (all / tiles)};
}

TEST(GroupLoad, is_what_the_tiles_one_by_one_sum_up_to) {
  std::mt19937_64 random(tests::random_seed());
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  for (int turn = 0; turn < 2000; ++turn) {
    std::vector<GroupTiles> groups(static_cast<std::size_t>(draw(0, 12)));
    for (GroupTiles& group : groups)
      group = {.tiles = draw(0, 1) * draw(0, 300), .work = static_cast<double>(draw(1, 50))};
    const int blocks = draw(1, 140);
    const GroupLoad load = load_of_groups(groups, blocks);
    const GroupLoad expected = deal_out(groups, blocks);
    EXPECT_EQ(load.tiles, expected.tiles);
    EXPECT_NEAR(load.busiest, expected.busiest, 1e-9 * (1 + expected.busiest)) << blocks;
  }
}

TEST(GroupLoad, one_deep_group_of_few_tiles_is_what_one_block_waits_for) {
  const std::vector<GroupTiles> groups{{.tiles = 131, .work = 1}, {.tiles = 1, .work = 100}};
  EXPECT_NEAR(load_of_groups(groups, 132).busiest, 100 / (231.0 / 132), 1e-9);
}

}  // namespace
}  // namespace gemmery::model
