// SPDX-License-Identifier: Apache-2.0
// Which queries the sm90 family serves: devices, types, layouts, and tiles that can be counted.
#pragma once

#include <gemmery/family.hpp>
#include <gemmery/problem.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "providers/templates/sm90/design.hpp"

namespace gemmery::templates {

// --- failures, in words; empty where there is none ----------------------------------------------

// The first constraint on device and types that the query fails.
std::string find_sm90_type_failure(const Query& query);

// The first of all but those on a program's operands.
std::string find_sm90_failure(const Query& query);

// What of the operands tensor maps cannot say.
std::string find_misfit(const OperandRules& rules, const GemmProblem& problem);

// What of a program's operands no kernel takes, where none fits.
std::string find_program_failure(const GemmProblem& problem);

// --- layouts ------------------------------------------------------------------------------------

// Every choice of layouts for operands of these types that TMA walks; C lies as out does.
inline constexpr std::size_t sm90_layout_count = 8;
std::array<OperandRules, sm90_layout_count> sm90_layouts(const Sm90Products& products, DType out,
                                                         std::optional<DType> c);

// Those that a problem's operands have, copies of A and B for operands that TMA does not walk; no
// allocation.
class FittingLayouts {
 public:
  explicit FittingLayouts(const GemmProblem& problem);

  bool is_empty() const noexcept { return count_ == 0; }
  const OperandRules* begin() const noexcept { return rules_.data(); }
  const OperandRules* end() const noexcept { return rules_.data() + count_; }

 private:
  std::array<OperandRules, sm90_layout_count> rules_;
  std::size_t count_ = 0;
};

// --- tiles of a problem -------------------------------------------------------------------------

// The kernel counts tiles of all matrices in 31 bits.
bool fits_count(const Sm90TileCounts& tiles, std::int64_t batches);
// And slices of them, and the k blocks of a stream.
bool fits_count(const Sm90Extents& extents, const Sm90Tile& tile, const GemmProblem& problem);

// Clusters that run at a time, one block a multiprocessor.
int clusters_at_once(const DeviceInfo& device, int cluster_size);

// Whether all blocks of a launch run at once. Splits are offered there: elsewhere tiles fill the
// device without them.
bool fits_one_wave(const Sm90TileCounts& tiles, std::uint16_t split_k, const Query& query);

// Whether any split may be: the largest tile of a split does not fill the device, and there is more
// k than exchanging sums costs.
bool may_split(const Sm90Extents& extents, const Query& query);

// Whether a split through the workspace is worth a prediction: slices where they fit the device
// once, streams where the last wave is less than half full; of a k that leaves each some blocks.
bool is_worth_parts(const Sm90Extents& extents, const Sm90Tile& tile, const Query& query);

}  // namespace gemmery::templates
