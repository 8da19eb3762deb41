// SPDX-License-Identifier: Apache-2.0
#include "model/group_load.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gemmery::model {

// Each of n blocks computes t / n of the t tiles of a group, and t % n successive blocks, beginning
// with the next one, take one more. `steps` has the differences between the work of successive
// blocks.
GroupLoad load_of_groups(std::span<const GroupTiles> groups, int blocks) {
  const auto count = static_cast<std::size_t>(std::max(blocks, 1));
  std::vector<double> steps(count, 0.0);
  std::size_t next = 0;
  double of_each = 0;
  double work = 0;
  std::int64_t tiles = 0;
  for (const GroupTiles& group : groups) {
    const auto own = static_cast<std::size_t>(group.tiles);
    const std::size_t more = own % count;
    of_each += static_cast<double>(own / count) * group.work;
    tiles += group.tiles;
    work += static_cast<double>(group.tiles) * group.work;
    if (more == 0) continue;
    steps[next] += group.work;
    const std::size_t end = next + more;
    if (end > count) steps[0] += group.work;  // they continue at the first block
    if (end != count) steps[end % count] -= group.work;
    next = end % count;
  }
  double most = 0;
  double of_block = 0;
  for (const double step : steps) {
    of_block += step;
    most = std::max(most, of_block);
  }
  const double average = tiles == 0 || work == 0 ? 1 : work / static_cast<double>(tiles);
  return {.tiles = static_cast<double>(tiles), .busiest = (of_each + most) / average};
}

}  // namespace gemmery::model
