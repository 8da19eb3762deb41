// SPDX-License-Identifier: Apache-2.0
// Schedules of split k: slices and streams, and their names.
#include "providers/templates/split_schedule.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/arithmetic.hpp"
#include "providers/templates/name_words.hpp"

namespace gemmery::templates {
namespace {

abi::SplitSchedule schedule_of_tiles(const SplitWork& work) {
  return {.units = work.tiles,
          .slices = 1,
          .slice = {},
          .per_unit = work.k_blocks,
          .longer = 0,
          .whole = 0,
          .k_block = {},
          .partials = 0};
}

abi::SplitSchedule schedule_of_slices(unsigned slices, const SplitWork& work) {
  const unsigned per_slice = (work.k_blocks + slices - 1) / slices;
  // Rounding up may give fewer slices than requested.
  const unsigned real = (work.k_blocks + per_slice - 1) / per_slice;
  return {.units = work.tiles * real,
          .slices = real,
          .slice = abi::make_fast_divisor(real),
          .per_unit = per_slice,
          .longer = 0,
          .whole = 0,
          .k_block = {},
          .partials = 0};
}

// A stream shares one wave of tiles and the rest of another.
abi::SplitSchedule schedule_of_stream(const SplitWork& work) {
  const unsigned units = std::clamp(work.blocks, 1U, std::max(work.tiles * work.k_blocks, 1U));
  const unsigned whole = work.tiles / units > 1 ? work.tiles / units - 1 : 0;
  const unsigned all = (work.tiles - whole * units) * work.k_blocks;
  return {.units = units,
          .slices = 1,
          .slice = {},
          .per_unit = all / units,
          .longer = all % units,
          .whole = whole,
          .k_block = abi::make_fast_divisor(work.k_blocks),
          .partials = 0};
}

}  // namespace

std::string split_text(const SplitWord& split) {
  switch (split.mode) {
    case abi::SplitMode::none:
      return "none";
    case abi::SplitMode::serial:
      return fmt::format("serial{}", split.slices);
    case abi::SplitMode::parallel:
      return fmt::format("parallel{}", split.slices);
    case abi::SplitMode::stream:
      return "stream";
  }
  return "none";
}

std::optional<SplitWord> read_split(std::string_view text) {
  if (text == "none") return SplitWord{};
  if (text == "stream") return SplitWord{.mode = abi::SplitMode::stream, .slices = 1};
  for (const auto& [tag, mode] : {std::pair{"serial", abi::SplitMode::serial},
                                  std::pair{"parallel", abi::SplitMode::parallel}}) {
    const auto slices = read_tagged(text, tag);
    if (slices && *slices > 1) return SplitWord{.mode = mode, .slices = *slices};
  }
  return std::nullopt;
}

abi::SplitSchedule split_schedule(const SplitWord& split, const SplitWork& work) {
  switch (split.mode) {
    case abi::SplitMode::none:
      return schedule_of_tiles(work);
    case abi::SplitMode::serial:
    case abi::SplitMode::parallel:
      return schedule_of_slices(
          std::clamp(static_cast<unsigned>(split.slices), 1U, std::max(work.k_blocks, 1U)), work);
    case abi::SplitMode::stream:
      return schedule_of_stream(work);
  }
  return {};
}

std::size_t partial_tiles(const SplitWord& split, const abi::SplitSchedule& schedule,
                          unsigned tiles) {
  if (split.mode == abi::SplitMode::stream) return std::size_t{2} * schedule.units;
  if (split.mode == abi::SplitMode::none || schedule.slices == 1) return 0;
  return split.mode == abi::SplitMode::serial ? tiles : schedule.units;
}

std::size_t set_split_workspace(std::size_t counters, std::size_t partial_bytes,
                                std::size_t workspace_slot, runtime::LaunchPlan& plan) {
  const std::size_t counter_bytes = round_up(counters * sizeof(unsigned), workspace_unit);
  const std::size_t partials = counter_bytes + round_up(plan.workspace_bytes, workspace_unit);
  plan.later_workspace_slot = plan.workspace_slot;
  plan.later_workspace_offset = counter_bytes;
  plan.workspace_slot = workspace_slot;
  plan.zeroed_workspace_bytes += counter_bytes;
  plan.workspace_bytes = partials + partial_bytes;
  plan.leaves_zeros = true;
  return partials;
}

}  // namespace gemmery::templates
