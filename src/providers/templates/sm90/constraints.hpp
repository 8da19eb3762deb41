// SPDX-License-Identifier: Apache-2.0
// Which queries the sm90 family supports: devices, types, layouts, and numbers of tiles.
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

// The first failed constraint, except those on a program's operands.
std::string find_sm90_failure(const Query& query);

// Why groups of codes are not supported; empty for other problems.
std::string find_code_group_failure(const GemmProblem& problem);

// Why tensor maps cannot describe the operands.
std::string find_misfit(const OperandRules& rules, const GemmProblem& problem);

// Why no kernel supports a program's operands.
std::string find_program_failure(const GemmProblem& problem);

// --- layouts ------------------------------------------------------------------------------------

// Every combination of layouts that TMA can load for operands of these types; C has the layout of
// out.
inline constexpr std::size_t sm90_layout_count = 8;
std::array<OperandRules, sm90_layout_count> sm90_layouts(const Sm90Products& products, DType out,
                                                         std::optional<DType> c);

// The layouts that fit a problem's operands, with repacked A and B if TMA cannot load them; it
// allocates nothing.
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

// True if the tiles of all matrices fit the kernel's 31-bit counter.
bool fits_count(const Sm90TileCounts& tiles, std::int64_t batches);
// The same, also for slices of tiles and for the k blocks of a stream.
bool fits_count(const Sm90Extents& extents, const Sm90Tile& tile, const GemmProblem& problem);

// Clusters that run at a time, with one block per multiprocessor.
int clusters_at_once(const DeviceInfo& device, int cluster_size);

// True if all blocks of a launch run at once. Splits within a cluster are offered only then:
// otherwise tiles fill the device without them.
bool fits_one_wave(const Sm90TileCounts& tiles, std::uint16_t split_k, const Query& query);

// True if splits within a cluster may be offered: the largest tile of a split does not fill the
// device, and k is long enough to pay for the exchange of accumulators.
bool may_split(const Sm90Extents& extents, const Query& query);

// True if a split through the workspace is worth a prediction: slices if they fit the device once,
// streams if the last wave is less than half full, and k gives each several blocks.
bool is_worth_parts(const Sm90Extents& extents, const Sm90Tile& tile, const Query& query);

// The most slices that run at once and give each block at least four blocks of k; 1 if there is
// only one.
int slices_at_once(const Sm90Extents& extents, const Sm90Tile& tile, const Query& query);

}  // namespace gemmery::templates
