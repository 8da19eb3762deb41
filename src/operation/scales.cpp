// SPDX-License-Identifier: Apache-2.0
// Names and sizes of scales.
#include <gemmery/scales.hpp>

#include <array>
#include <charconv>
#include <utility>

#include "operation/companions.hpp"

namespace gemmery {
namespace {

// Other libraries' names of blocks: torch's ScalingType, CUTLASS's ScaleMode.
constexpr std::pair<std::string_view, ScaleBlock> foreign_names[] = {
    {"TensorWise", scale_block::tensor},          {"RowWise", scale_block::row},
    {"BlockWise1x16", scale_block::nvfp4},        {"BlockWise1x32", scale_block::mx},
    {"BlockWise1x128", scale_block::block_1x128}, {"BlockWise128x128", scale_block::block_128x128},
    {"Blockwise1x16", scale_block::nvfp4},        {"Blockwise1x32", scale_block::mx},
};

std::string extent_text(std::int32_t extent) {
  return extent == 0 ? "all" : std::to_string(extent);
}

std::optional<std::int32_t> parse_extent(std::string_view word) noexcept {
  if (word == "all") return 0;
  std::int32_t extent = 0;
  const char* const end = word.data() + word.size();
  const auto [after, failure] = std::from_chars(word.data(), end, extent);
  if (failure != std::errc{} || after != end || extent < 1) return std::nullopt;
  return extent;
}

}  // namespace

std::string_view name(ScaleLayout layout) noexcept {
  return layout == ScaleLayout::strided ? "strided" : "swizzled_128x4";
}

std::string to_string(ScaleBlock block) {
  if (block == scale_block::tensor) return "tensor";
  if (block == scale_block::row) return "row";
  return extent_text(block.rows) + "x" + extent_text(block.k);
}

std::optional<ScaleBlock> parse_scale_block(std::string_view word) noexcept {
  if (word == "tensor") return scale_block::tensor;
  if (word == "row") return scale_block::row;
  for (const auto& [name, block] : foreign_names)
    if (word == name) return block;
  const std::size_t cross = word.find('x');
  if (cross == std::string_view::npos) return std::nullopt;
  const auto rows = parse_extent(word.substr(0, cross));
  const auto k = parse_extent(word.substr(cross + 1));
  return rows && k ? std::optional(ScaleBlock{*rows, *k}) : std::nullopt;
}

std::int64_t scale_count(std::int64_t rows, std::int64_t k, ScaleBlock block,
                         ScaleLayout layout) noexcept {
  const operation::MatrixExtents extents =
      operation::companion_extents(block, layout, {.batch = 1, .rows = rows, .k = k});
  return extents.rows * extents.columns;
}

std::int64_t swizzled_scale_count(std::int64_t rows, std::int64_t k, ScaleBlock block) noexcept {
  return scale_count(rows, k, block, ScaleLayout::swizzled_128x4);
}

}  // namespace gemmery
