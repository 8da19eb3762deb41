// SPDX-License-Identifier: Apache-2.0
// How launches split k through the workspace: the schedule of slices and streams, and the layout of
// the workspace.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "device/abi/split.hpp"
#include "runtime/launch_plan.hpp"

namespace gemmery::templates {

// The alignment of what a workspace holds: counters, accumulators, parts of a reduction.
inline constexpr std::size_t workspace_unit = 256;

// "none", "serial3", "parallel4", "stream", and back. Slices of a stream are 1.
struct SplitWord {
  abi::SplitMode mode = abi::SplitMode::none;
  int slices = 1;
};
std::string split_text(const SplitWord& split);
std::optional<SplitWord> read_split(std::string_view text);

// The work of a launch.
struct SplitWork {
  unsigned tiles;  // of all matrices; tiles of clusters if blocks of a cluster share operands
  unsigned k_blocks;
  unsigned blocks;  // of threads that may be resident at once, or clusters of them
};

// `split_schedule(...).partials` is set by `set_split_workspace`.
abi::SplitSchedule split_schedule(const SplitWord& split, const SplitWork& work);

// Tiles of accumulators that the workspace holds; 0 if no tile has parts.
std::size_t partial_tiles(const SplitWord& split, const abi::SplitSchedule& schedule,
                          unsigned tiles);

// Lays out the workspace: `counters` counters, which are zero before and after a launch; then the
// plan's previous workspace (of an epilogue's reductions), which moves; then accumulators. Returns
// their offset.
std::size_t set_split_workspace(std::size_t counters, std::size_t partial_bytes,
                                std::size_t workspace_slot, runtime::LaunchPlan& plan);

}  // namespace gemmery::templates
