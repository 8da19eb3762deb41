// SPDX-License-Identifier: Apache-2.0
// The sizes of groups as far as a query knows them: all of them if they are in host memory, as
// those of a list are, otherwise the average. For predictions only.
#pragma once

#include <gemmery/family.hpp>
#include <gemmery/problem.hpp>

#include <cstdint>
#include <optional>
#include <vector>

#include "model/group_load.hpp"
#include "providers/templates/groups.hpp"

namespace gemmery::templates {

class KnownGroups {
 public:
  struct Extents {
    std::int64_t m, n, k;
  };

  // The problem must be grouped.
  explicit KnownGroups(const Query& query);

  // The problem as a batch of groups of the average size. Groups without rows (or columns) take no
  // time.
  const GemmProblem& average() const noexcept { return average_; }

  // The load of blocks that take every n-th tile; nullopt if sizes are unknown. `tile_k`: k of a
  // stage.
  std::optional<model::GroupLoad> load(const GroupTileExtents& tile, int tile_k, int blocks) const;

 private:
  std::vector<Extents> groups_;  // empty if unknown
  GemmProblem average_;
};

}  // namespace gemmery::templates
