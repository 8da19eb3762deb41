// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/known_groups.hpp"

#include <algorithm>

#include "operation/groups.hpp"
#include "providers/templates/problem_list.hpp"

namespace gemmery::templates {
namespace {

using Extents = KnownGroups::Extents;

std::vector<Extents> read_list(const GemmArguments& arguments) {
  std::vector<Extents> extents;
  for (const GemmArguments& one : arguments.group_memory()->list) {
    const GemmProblem& problem = one.problem();
    if (problem.m > 0 && problem.n > 0) extents.push_back({problem.m, problem.n, problem.k});
  }
  return extents;
}

std::vector<Extents> read_extents(const Query& query) {
  const GemmProblem& problem = query.problem;
  const Groups& groups = *problem.groups;
  if (query.arguments == nullptr || !groups.are_on_host) return {};
  if (is_list(groups)) return read_list(*query.arguments);
  std::vector<Extents> extents;
  for (const operation::GroupSlice& slice : operation::read_groups(*query.arguments)) {
    Extents own{problem.m, problem.n, problem.k};
    (groups.ragged == Ragged::m ? own.m : groups.ragged == Ragged::n ? own.n : own.k) = slice.size;
    if (slice.size > 0 || groups.ragged == Ragged::k) extents.push_back(own);
  }
  return extents;
}

std::int64_t average_along(const std::vector<Extents>& groups, std::int64_t Extents::*extent) {
  std::int64_t all = 0;
  for (const Extents& group : groups) all += group.*extent;
  const auto count = static_cast<std::int64_t>(groups.size());
  return std::max<std::int64_t>((all + count / 2) / count, 1);
}

GemmProblem average_of(const GemmProblem& problem, const std::vector<Extents>& groups) {
  if (groups.empty()) return average_groups(problem);
  GemmProblem known = problem;
  known.l = static_cast<std::int64_t>(groups.size());
  const Ragged ragged = problem.groups->ragged;
  if (is_list(*problem.groups)) {
    known.m = average_along(groups, &Extents::m);
    known.n = average_along(groups, &Extents::n);
    known.k = average_along(groups, &Extents::k);
  } else {
    known.groups->expected = average_along(groups, ragged == Ragged::m   ? &Extents::m
                                                   : ragged == Ragged::n ? &Extents::n
                                                                         : &Extents::k);
  }
  return average_groups(known);
}

std::int64_t count_along(std::int64_t extent, int tile) { return (extent + tile - 1) / tile; }

}  // namespace

KnownGroups::KnownGroups(const Query& query)
    : groups_(read_extents(query)), average_(average_of(query.problem, groups_)) {}

std::optional<model::GroupLoad> KnownGroups::load(const GroupTileExtents& tile, int tile_k,
                                                  int blocks) const {
  if (groups_.empty()) return std::nullopt;
  std::vector<model::GroupTiles> groups;
  groups.reserve(groups_.size());
  for (const Extents& group : groups_) {
    const std::int64_t k_blocks = std::max<std::int64_t>(count_along(group.k, tile_k), 1);
    groups.push_back({.tiles = count_along(group.m, tile.m) * count_along(group.n, tile.n),
                      .work = static_cast<double>(k_blocks)});
  }
  return model::load_of_groups(groups, blocks);
}

}  // namespace gemmery::templates
