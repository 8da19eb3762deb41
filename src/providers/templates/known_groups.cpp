// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/known_groups.hpp"

#include <algorithm>
#include <numeric>

#include "operation/groups.hpp"

namespace gemmery::templates {
namespace {

std::vector<std::int64_t> read_sizes(const Query& query) {
  const Groups& groups = *query.problem.groups;
  std::vector<std::int64_t> sizes;
  if (query.arguments == nullptr || !groups.are_on_host) return sizes;
  for (const operation::GroupSlice& slice : operation::read_groups(*query.arguments)) {
    if (slice.size > 0 || groups.ragged == Ragged::k) sizes.push_back(slice.size);
  }
  return sizes;
}

GemmProblem average_of(const GemmProblem& problem, const std::vector<std::int64_t>& sizes) {
  if (sizes.empty()) return average_groups(problem);
  GemmProblem known = problem;
  known.l = static_cast<std::int64_t>(sizes.size());
  const std::int64_t all = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  known.groups->expected = std::max<std::int64_t>((all + known.l / 2) / known.l, 1);
  return average_groups(known);
}

std::int64_t count_along(std::int64_t extent, int tile) { return (extent + tile - 1) / tile; }

}  // namespace

KnownGroups::KnownGroups(const Query& query)
    : sizes_(read_sizes(query)),
      ragged_(query.problem.groups->ragged),
      average_(average_of(query.problem, sizes_)) {}

std::optional<model::GroupLoad> KnownGroups::load(const GroupTileExtents& tile, int tile_k,
                                                  int blocks) const {
  if (sizes_.empty()) return std::nullopt;
  const std::int64_t rows = count_along(average_.m, tile.m);
  const std::int64_t columns = count_along(average_.n, tile.n);
  std::vector<model::GroupTiles> groups;
  groups.reserve(sizes_.size());
  for (const std::int64_t size : sizes_) {
    if (ragged_ == Ragged::k) {
      const std::int64_t k_blocks = std::max<std::int64_t>(count_along(size, tile_k), 1);
      groups.push_back({.tiles = rows * columns, .work = static_cast<double>(k_blocks)});
    } else {
      const bool is_of_m = ragged_ == Ragged::m;
      const std::int64_t along = count_along(size, is_of_m ? tile.m : tile.n);
      groups.push_back({.tiles = along * (is_of_m ? columns : rows), .work = 1});
    }
  }
  return model::load_of_groups(groups, blocks);
}

}  // namespace gemmery::templates
