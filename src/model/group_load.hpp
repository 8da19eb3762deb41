// SPDX-License-Identifier: Apache-2.0
// The load of blocks that take every n-th tile of groups, if the sizes of groups are known.
// Arithmetic only.
#pragma once

#include <cstdint>
#include <span>

namespace gemmery::model {

// The tiles of one group, one after the other, and the work of each, in any unit.
struct GroupTiles {
  std::int64_t tiles = 0;
  double work = 1;
};

struct GroupLoad {
  double tiles = 0;    // of all groups
  double busiest = 0;  // the work of the block with the most work, in tiles of average work
};

GroupLoad load_of_groups(std::span<const GroupTiles> groups, int blocks);

}  // namespace gemmery::model
