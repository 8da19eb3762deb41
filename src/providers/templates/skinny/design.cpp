// SPDX-License-Identifier: Apache-2.0
// The table of tiles, and kernels to and from their names.
#include "providers/templates/skinny/design.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "providers/templates/name_words.hpp"

namespace gemmery::templates {
namespace {

abi::DType abi_type(DType dtype) noexcept { return static_cast<abi::DType>(dtype); }

constexpr DType f32_outputs[] = {DType::float32, DType::float16, DType::bfloat16};
constexpr DType f64_outputs[] = {DType::float64, DType::float32};
constexpr DType integer_outputs[] = {DType::int32, DType::float32, DType::int8, DType::uint8};

// Threads, loads, slots and lanes. More loads in flight hide more of the memory latency; fewer
// leave registers for more blocks. The prediction picks one of them (bench/results/h100-skinny.md).
struct TileShape {
  std::uint16_t threads;
  std::uint8_t loads;
  std::uint8_t slots;
  std::uint8_t lanes;
};
constexpr TileShape shapes_along_k[] = {
    {128, 4, 3, 32}, {128, 4, 4, 32}, {256, 4, 2, 32}, {512, 4, 2, 32}};
constexpr TileShape shapes_along_columns[] = {
    {128, 4, 3, 32}, {256, 4, 2, 32}, {256, 4, 3, 8}, {512, 4, 3, 8}};

// The rules of the streamed operand and of the other one.
const OperandRule& long_rule(const OperandRules& rules, SkinnySide side) noexcept {
  return side == SkinnySide::m ? rules.b : rules.a;
}
const OperandRule& short_rule(const OperandRules& rules, SkinnySide side) noexcept {
  return side == SkinnySide::m ? rules.a : rules.b;
}

// The layout of the other operand in which k is adjacent; below: the layout of out, C and the
// streamed operand in which the columns of the computed matrix are adjacent.
LayoutRule k_layout_of_short(SkinnySide side) noexcept {
  return side == SkinnySide::m ? LayoutRule::row : LayoutRule::column;
}
LayoutRule column_layout(SkinnySide side) noexcept {
  return side == SkinnySide::m ? LayoutRule::row : LayoutRule::column;
}

int vector_bytes(const OperandRule& rule, LayoutRule adjacent) noexcept {
  return rule.layout == adjacent ? rule.alignment : 0;
}

// --- names --------------------------------------------------------------------------------------

// "m4", "parallel8", "256x4x2x32"
std::optional<SkinnyTile> read_tile(std::span<const std::string_view> words) {
  const auto of_m = read_tagged(words[0], "m");
  const auto rows = of_m ? of_m : read_tagged(words[0], "n");
  const auto split = read_split(words[1]);
  const auto shape = read_integers(words[2], 4);
  if (!rows || !shape || !split || *rows > 255 || (*shape)[1] > 255 || (*shape)[2] > 255 ||
      (*shape)[3] > 255)
    return std::nullopt;
  if (split->mode != abi::SplitMode::none && split->mode != abi::SplitMode::parallel)
    return std::nullopt;
  return SkinnyTile{.side = of_m ? SkinnySide::m : SkinnySide::n,
                    .rows = static_cast<std::uint8_t>(*rows),
                    .loads = static_cast<std::uint8_t>((*shape)[1]),
                    .slots = static_cast<std::uint8_t>((*shape)[2]),
                    .lanes = static_cast<std::uint8_t>((*shape)[3]),
                    .threads = static_cast<std::uint16_t>((*shape)[0]),
                    .slices = static_cast<std::uint16_t>(split->slices)};
}

// Checks the fields by which the arithmetic of a design divides.
bool is_in_range(const SkinnyTile& tile) {
  return tile.rows > 0 && tile.loads > 0 && tile.slots > 0 && tile.lanes > 0 && tile.threads >= 32;
}

// Operands of any layout are loaded element by element.
bool is_alignment_of_layout(const OperandRule& rule) {
  return rule.layout != LayoutRule::any || rule.alignment == byte_width(rule.dtype);
}

bool are_read_by(const OperandRules& rules, SkinnySide side) {
  const auto is_any_or = [](const OperandRule& rule, LayoutRule layout) {
    return rule.layout == LayoutRule::any || rule.layout == layout;
  };
  return is_any_or(short_rule(rules, side), k_layout_of_short(side)) &&
         is_any_or(rules.out, column_layout(side)) &&
         (!rules.has_c || is_any_or(rules.c, column_layout(side)));
}

}  // namespace

// --- types --------------------------------------------------------------------------------------

std::span<const DType> skinny_outputs(DType a, DType b, DType accumulator) noexcept {
  using abi::detail::accepts_operand;
  if (!accepts_operand(abi_type(accumulator), abi_type(a)) ||
      !accepts_operand(abi_type(accumulator), abi_type(b)))
    return {};
  if (accumulator == DType::float64) return f64_outputs;
  return accumulator == DType::int32 ? std::span<const DType>(integer_outputs)
                                     : std::span<const DType>(f32_outputs);
}

std::vector<SkinnyProducts> skinny_products() {
  constexpr DType floats[] = {DType::bfloat16, DType::float16, DType::float32, DType::float8_e4m3fn,
                              DType::float8_e5m2};
  constexpr DType bytes[] = {DType::int8, DType::uint8};
  std::vector<SkinnyProducts> products;
  for (const DType a : floats)
    for (const DType b : floats) products.push_back({a, b, DType::float32});
  products.push_back({DType::float64, DType::float64, DType::float64});
  for (const DType a : bytes)
    for (const DType b : bytes) products.push_back({a, b, DType::int32});
  return products;
}

std::vector<OperandRule> skinny_long_rules(DType dtype, SkinnySide side, std::uint8_t rows) {
  constexpr int most_accumulators = 64;  // of 4 bytes; float64's vectors have two
  std::vector<OperandRule> rules;
  const int element = static_cast<int>(byte_width(dtype));
  for (const LayoutRule layout : {LayoutRule::row, LayoutRule::column}) {
    for (int alignment = widest_access; alignment >= element; alignment /= 2) {
      const OperandRule rule{dtype, layout, static_cast<std::uint8_t>(alignment)};
      if (!is_along_columns(rule, side) || rows * (alignment / element) <= most_accumulators)
        rules.push_back(rule);
    }
  }
  rules.push_back({dtype, LayoutRule::any, static_cast<std::uint8_t>(element)});
  return rules;
}

bool is_along_columns(const OperandRule& streamed, SkinnySide side) noexcept {
  return streamed.layout == column_layout(side);
}

std::int64_t skinny_widest_run(const OperandRule& rule) noexcept {
  constexpr int columns_of_thread = 4;
  if (rule.layout == LayoutRule::any) return 1;
  return std::min(rule.alignment / static_cast<int>(byte_width(rule.dtype)), columns_of_thread);
}

std::vector<OperandRule> skinny_short_rules(DType dtype, SkinnySide side) {
  return {OperandRule{dtype, k_layout_of_short(side), widest_access},
          OperandRule{dtype, LayoutRule::any, static_cast<std::uint8_t>(byte_width(dtype))}};
}

std::vector<OperandRule> skinny_output_rules(DType dtype, SkinnySide side) {
  return {OperandRule{dtype, column_layout(side), widest_access},
          OperandRule{dtype, LayoutRule::any, static_cast<std::uint8_t>(byte_width(dtype))}};
}

// --- tiles --------------------------------------------------------------------------------------

std::vector<SkinnyTile> skinny_tiles(const OperandRules& rules, SkinnySide side,
                                     std::uint8_t rows) {
  std::vector<SkinnyTile> tiles;
  const std::span<const TileShape> shapes =
      is_along_columns(long_rule(rules, side), side) ? shapes_along_columns : shapes_along_k;
  for (const TileShape& shape : shapes) {
    const SkinnyTile tile{.side = side,
                          .rows = rows,
                          .loads = shape.loads,
                          .slots = shape.slots,
                          .lanes = shape.lanes,
                          .threads = shape.threads};
    if (abi::is_legal(skinny_design(rules, tile))) tiles.push_back(tile);
  }
  return tiles;
}

std::optional<std::uint8_t> skinny_rows(std::int64_t extent) noexcept {
  const auto found =
      std::ranges::find_if(skinny_row_counts, [&](std::uint8_t rows) { return extent <= rows; });
  return found == skinny_row_counts.end() ? std::nullopt : std::optional(*found);
}

abi::SkinnyDesign skinny_design(const OperandRules& rules, const SkinnyTile& tile) noexcept {
  const OperandRule& first = short_rule(rules, tile.side);
  const OperandRule& second = long_rule(rules, tile.side);
  const OperandRule& c = rules.has_c ? rules.c : rules.out;
  const LayoutRule columns = column_layout(tile.side);
  return {.a = abi_type(first.dtype),
          .b = abi_type(second.dtype),
          .c = abi_type(c.dtype),
          .out = abi_type(rules.out.dtype),
          .accumulator = abi_type(rules.accumulator),
          .b_major = is_along_columns(second, tile.side) ? abi::Major::extent : abi::Major::k,
          .a_vector_bytes = vector_bytes(first, k_layout_of_short(tile.side)),
          .b_vector_bytes = second.layout == LayoutRule::any ? 0 : second.alignment,
          .c_vector_bytes = vector_bytes(c, columns),
          .out_vector_bytes = vector_bytes(rules.out, columns),
          .rows = tile.rows,
          .threads = tile.threads,
          .loads = tile.loads,
          .lanes = tile.lanes,
          .slots = tile.slots,
          .splits_k = tile.slices > 1,
          .has_c = rules.has_c};
}

abi::SkinnyDesign skinny_design(const Kernel& kernel) noexcept {
  return skinny_design(kernel.operands(), skinny_tile(kernel));
}

SkinnyTile skinny_tile(const Kernel& kernel) noexcept { return kernel.design().as<SkinnyTile>(); }

std::int64_t skinny_row_count(const SkinnyTile& tile, const GemmProblem& problem) noexcept {
  return is_turned(tile) ? problem.n : problem.m;
}
std::int64_t skinny_column_count(const SkinnyTile& tile, const GemmProblem& problem) noexcept {
  return is_turned(tile) ? problem.m : problem.n;
}

std::int64_t skinny_long_run(const abi::SkinnyDesign& design) noexcept {
  return design.b_major == abi::Major::extent ? abi::load_elements(design) : 1;
}

// --- texts --------------------------------------------------------------------------------------

std::string rows_text(const SkinnyTile& tile) {
  return fmt::format("{}{}", is_turned(tile) ? 'n' : 'm', tile.rows);
}

SplitWord split_word(const SkinnyTile& tile) noexcept {
  if (tile.slices == 1) return {};
  return {.mode = abi::SplitMode::parallel, .slices = tile.slices};
}

std::string skinny_name(const Kernel& kernel) {
  const SkinnyTile tile = skinny_tile(kernel);
  return gemm_name(fmt::format("skinny{}", skinny_version), kernel.operands(),
                   fmt::format("{}_{}_{}x{}x{}x{}", rows_text(tile), split_text(split_word(tile)),
                               tile.threads, tile.loads, tile.slots, tile.lanes),
                   kernel.epilogue());
}

std::optional<SkinnyParts> parse_skinny_name(std::string_view name) {
  const auto parts = read_gemm_name(name, fmt::format("skinny{}", skinny_version), 3);
  if (!parts) return std::nullopt;
  const auto tile = read_tile(parts->design);
  if (!tile || !is_in_range(*tile)) return std::nullopt;
  const OperandRules& rules = parts->rules;
  if (!are_read_by(rules, tile->side) || !is_alignment_of_layout(rules.a) ||
      !is_alignment_of_layout(rules.b) || !is_alignment_of_layout(rules.out) ||
      (rules.has_c && !is_alignment_of_layout(rules.c)) ||
      !abi::is_legal(skinny_design(rules, *tile)))
    return std::nullopt;
  return SkinnyParts{.rules = rules, .tile = *tile, .epilogue = parts->epilogue};
}

}  // namespace gemmery::templates
