// SPDX-License-Identifier: Apache-2.0
// Names and sizes of scales, code tables.
#include <gemmery/scale_conversion.hpp>
#include <gemmery/scales.hpp>

#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/number.hpp"
#include "device/abi/scale_layout.hpp"
#include "operation/companions.hpp"
#include "operation/overlap.hpp"
#include "operation/refusal.hpp"

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

std::string_view name(ElementOrder order) noexcept {
  return order == ElementOrder::strided ? "strided" : "fragments";
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

// --- code tables --------------------------------------------------------------------------------

CodeTable rounded(const CodeTable& table, DType dtype) {
  CodeTable result;
  for (std::size_t code = 0; code < table.values.size(); ++code)
    result.values[code] = static_cast<float>(number::rounded_to(dtype, {table.values[code], 0}));
  return result;
}

namespace {

std::array<std::pair<std::string_view, CodeTable>, 3> named_tables() {
  return {{{"nf4", code_table::nf4},
           {"nf4.bf16", rounded(code_table::nf4, DType::bfloat16)},
           {"nf4.f16", rounded(code_table::nf4, DType::float16)}}};
}

// Reads a number that ends with the word or before a comma, which it removes.
std::optional<float> take_number(std::string_view& word) {
  float value = 0;
  const char* const end = word.data() + word.size();
  const auto [after, failure] = std::from_chars(word.data(), end, value);
  if (failure != std::errc{} || (after != end && *after != ',')) return std::nullopt;
  word.remove_prefix(static_cast<std::size_t>(after - word.data()) + (after == end ? 0 : 1));
  return value;
}

}  // namespace

std::string to_string(const CodeTable& table) {
  for (const auto& [name, values] : named_tables())
    if (table == values) return std::string(name);
  return fmt::format("{}", fmt::join(table.values, ","));
}

std::optional<CodeTable> parse_code_table(std::string_view word) {
  for (const auto& [name, values] : named_tables())
    if (word == name) return values;
  CodeTable table;
  for (float& value : table.values) {
    const auto number = take_number(word);
    if (!number) return std::nullopt;
    value = *number;
  }
  return word.empty() ? std::optional(table) : std::nullopt;
}

// --- sizes --------------------------------------------------------------------------------------

std::int64_t scale_count(std::int64_t rows, std::int64_t k, ScaleBlock block,
                         ScaleLayout layout) noexcept {
  const operation::MatrixExtents extents =
      operation::companion_extents(block, layout, {.batch = 1, .rows = rows, .k = k});
  return extents.rows * extents.columns;
}

std::int64_t swizzled_scale_count(std::int64_t rows, std::int64_t k, ScaleBlock block) noexcept {
  return scale_count(rows, k, block, ScaleLayout::swizzled_128x4);
}

namespace {

// Both layouts of scales that a conversion copies between.
struct ScalePair {
  const Tensor& linear;
  const Tensor& swizzled;
};

void check_pair(const ScalePair& pair) {
  const auto& [linear, swizzled] = pair;
  if (linear.rank() != 2)
    operation::refuse("scales", "rank 2 (rows, blocks of k)", to_string(linear));
  if (is_packed(linear.dtype()) || linear.dtype() != swizzled.dtype())
    operation::refuse(
        "scales", "one type of whole bytes in both layouts",
        std::string(name(linear.dtype())) + " and " + std::string(name(swizzled.dtype())));
  const std::int64_t count = swizzled_scale_count(linear.extent(0), linear.extent(1), {1, 1});
  if (swizzled.element_count() != count || !operation::has_packed_elements(swizzled))
    operation::refuse("swizzled scales", std::to_string(count) + " packed values",
                      to_string(swizzled));
  if (!linear.device().is_cpu() || !swizzled.device().is_cpu())
    operation::refuse("scales", "memory of the CPU", to_string(linear.device()), "copy them",
                      ErrorKind::unsupported);
  if (operation::may_overlap(linear, swizzled))
    operation::refuse("swizzled scales", "memory that shares nothing with the scales",
                      "overlapping memory", "convert into another tensor");
}

// Calls copy(linear element, swizzled element) for every scale.
template <class Copy>
void for_each_scale(const ScalePair& pair, const Copy& copy) {
  const auto width = static_cast<std::int64_t>(byte_width(pair.linear.dtype()));
  const std::int64_t tiles = abi::swizzled_tiles(pair.linear.extent(1));
  auto* const linear = static_cast<std::byte*>(pair.linear.data());
  auto* const swizzled = static_cast<std::byte*>(pair.swizzled.data());
  for (std::int64_t row = 0; row < pair.linear.extent(0); ++row)
    for (std::int64_t block = 0; block < pair.linear.extent(1); ++block)
      copy(linear + width * (row * pair.linear.stride(0) + block * pair.linear.stride(1)),
           swizzled + width * abi::swizzled_offset(row, block, tiles));
}

}  // namespace

void swizzle_scales(const Tensor& scales, const Tensor& swizzled) {
  const ScalePair pair{scales, swizzled};
  check_pair(pair);
  const std::size_t width = byte_width(scales.dtype());
  if (swizzled.element_count() > 0)
    std::memset(swizzled.data(), 0, static_cast<std::size_t>(swizzled.element_count()) * width);
  for_each_scale(pair, [&](const std::byte* from, std::byte* to) { std::memcpy(to, from, width); });
}

void unswizzle_scales(const Tensor& swizzled, const Tensor& scales) {
  const ScalePair pair{scales, swizzled};
  check_pair(pair);
  const std::size_t width = byte_width(scales.dtype());
  for_each_scale(pair, [&](std::byte* to, const std::byte* from) { std::memcpy(to, from, width); });
}

}  // namespace gemmery
