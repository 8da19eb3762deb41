// SPDX-License-Identifier: Apache-2.0
// The tables of tiles that discovery offers, one for each class of operand rules.
#include <array>

#include "providers/templates/class_table.hpp"
#include "providers/templates/name_words.hpp"
#include "providers/templates/sm90/design.hpp"

namespace gemmery::templates {
namespace {

// Adds a tile with all stages that fit, if it is legal for operands of these rules.
void add_legal(const OperandRules& rules, Sm90Tile tile, std::vector<Sm90Tile>& tiles) {
  tile.stages = static_cast<std::uint8_t>(abi::most_stages(sm90_design(rules, tile)));
  if (abi::is_legal(sm90_design(rules, tile))) tiles.push_back(tile);
}

constexpr std::array<std::uint8_t, 2> clusters[] = {{1, 1}, {2, 1}, {1, 2}};

// Tiles of one shape with a register operand, alone and in clusters of two.
void add_by_registers(const OperandRules& rules, std::uint16_t m, std::uint16_t n,
                      std::vector<Sm90Tile>& tiles) {
  for (const auto& cluster : clusters) {
    for (const abi::Schedule schedule : {abi::Schedule::cooperative, abi::Schedule::ping_pong}) {
      Sm90Tile tile{.m = m,
                    .n = n,
                    .cluster_m = cluster[0],
                    .cluster_n = cluster[1],
                    .stages = 0,
                    .schedule = schedule};
      tile.by_registers = true;
      add_legal(rules, tile, tiles);
    }
  }
}

bool has_codes(const OperandRules& rules) { return is_mixed_sm90(rules.a.dtype, rules.b.dtype); }

// Tiles whose rows are codes: large ones, and those for few columns, which read codes once.
std::vector<Sm90Tile> list_code_tiles(const OperandRules& rules) {
  struct Shape {
    std::uint16_t m;
    std::uint16_t n;
  };
  constexpr Shape shapes[] = {{256, 128}, {128, 256}, {256, 96}, {192, 128}, {128, 192},
                              {128, 128}, {128, 96},  {256, 64}, {128, 64},  {128, 32},
                              {128, 16},  {64, 256},  {64, 192}, {64, 128},  {64, 96},
                              {64, 64},   {64, 48},   {64, 32},  {64, 16}};
  std::vector<Sm90Tile> tiles;
  for (const Shape& shape : shapes) add_by_registers(rules, shape.m, shape.n, tiles);
  return tiles;
}

std::vector<Sm90Tile> list_tiles(const OperandRules& rules) {
  if (has_codes(rules)) return list_code_tiles(rules);
  // Half as many widths for types that fewer problems have.
  const int step = byte_width(rules.a.dtype) == 2 ? 16 : 32;
  std::vector<Sm90Tile> tiles;
  for (std::uint16_t m = 320; m >= 64; m = static_cast<std::uint16_t>(m - 64)) {
    for (int n = 256; n >= step; n -= step) {
      for (const auto& cluster : clusters) {
        for (const abi::Schedule schedule :
             {abi::Schedule::cooperative, abi::Schedule::ping_pong}) {
          add_legal(rules,
                    {.m = m,
                     .n = static_cast<std::uint16_t>(n),
                     .cluster_m = cluster[0],
                     .cluster_n = cluster[1],
                     .stages = 0,
                     .schedule = schedule},
                    tiles);
        }
      }
    }
  }
  return tiles;
}

std::vector<Sm90Tile> list_program_tiles(const OperandRules& rules) {
  std::vector<Sm90Tile> tiles;
  for (const auto& cluster : clusters) {
    for (const bool adds_vector : {false, true}) {
      add_legal(rules,
                {.m = abi::rotation_tile,
                 .n = abi::rotation_tile,
                 .cluster_m = cluster[0],
                 .cluster_n = cluster[1],
                 .stages = 0,
                 .schedule = abi::Schedule::rotation,
                 .adds_vector = adds_vector},
                tiles);
    }
  }
  return tiles;
}

std::vector<Sm90Tile> list_split_tiles(const OperandRules& rules) {
  constexpr std::uint8_t splits[] = {2, 4, 8};
  std::vector<Sm90Tile> tiles;
  for (std::uint16_t m = 256; m >= 64; m = static_cast<std::uint16_t>(m - 64)) {
    for (std::uint16_t n = 256; n >= 32; n = static_cast<std::uint16_t>(n - 32)) {
      for (const std::uint8_t split_k : splits) {
        Sm90Tile tile{.m = m, .n = n, .cluster_m = 1, .cluster_n = 1, .stages = 0};
        tile.split_k = split_k;
        tile.by_registers = has_codes(rules);
        add_legal(rules, tile, tiles);
      }
    }
  }
  return tiles;
}

// Shapes whose columns are multiples of a staging tile; few accumulators leave registers for the
// tile scheduler of shares. Slices are for few tiles and a long k: large tiles read less, and
// clusters still less.
std::vector<Sm90Tile> list_part_tiles(const OperandRules& rules) {
  struct Shape {
    std::uint16_t m;
    std::uint16_t n;
  };
  constexpr Shape shapes[] = {{256, 128}, {128, 256}, {128, 192}, {128, 128},
                              {128, 64},  {64, 256},  {64, 128},  {64, 64}};
  constexpr std::uint8_t all_counts[] = {2, 4, 8, 16, 32, 3, 6, 12, 24};
  // Only powers of two for types that fewer problems have.
  const auto slice_counts =
      std::span(all_counts).first(byte_width(rules.a.dtype) == 2 ? std::size(all_counts) : 5);
  std::vector<Sm90Tile> tiles;
  for (const Shape& shape : shapes) {
    for (const auto& cluster : clusters) {
      Sm90Tile tile{.m = shape.m,
                    .n = shape.n,
                    .cluster_m = cluster[0],
                    .cluster_n = cluster[1],
                    .stages = 0};
      tile.split = abi::SplitMode::parallel;
      tile.by_registers = has_codes(rules);
      for (const std::uint8_t slices : slice_counts) {
        tile.slices = slices;
        add_legal(rules, tile, tiles);
      }
      if (cluster[0] * cluster[1] > 1) continue;
      tile.slices = 1;
      tile.split = abi::SplitMode::stream;
      add_legal(rules, tile, tiles);
    }
  }
  return tiles;
}

// With small tiles, or clusters that split k, the last block to arrive adds up little.
std::vector<Sm90Tile> list_slice_tiles(const OperandRules& rules) {
  struct Shape {
    std::uint16_t m;
    std::uint16_t n;
  };
  constexpr Shape shapes[] = {{128, 128}, {128, 64}, {64, 128}, {64, 64}, {64, 32}, {64, 16}};
  constexpr std::uint8_t splits[] = {1, 2, 4};
  std::vector<Sm90Tile> tiles;
  for (const Shape& shape : shapes) {
    for (const std::uint8_t split_k : splits) {
      Sm90Tile tile{.m = shape.m, .n = shape.n, .cluster_m = 1, .cluster_n = 1, .stages = 0};
      tile.split_k = split_k;
      tile.split = abi::SplitMode::parallel;
      tile.by_registers = has_codes(rules);
      tile.slices = 5;  // those of a problem are found later; no part tile has as many
      add_legal(rules, tile, tiles);
    }
  }
  return tiles;
}

// Tiles with a register operand.
std::vector<Sm90Tile> list_register_tiles(const OperandRules& rules) {
  std::vector<Sm90Tile> tiles;
  for (std::uint16_t m = 256; m >= 64; m = static_cast<std::uint16_t>(m - 64)) {
    for (std::uint16_t n = 256; n >= 32; n = static_cast<std::uint16_t>(n - 32))
      add_by_registers(rules, m, n, tiles);
  }
  return tiles;
}

// Tiles of groups: large ones, and those that waste little of groups of few rows or columns.
std::vector<Sm90Tile> list_group_tiles(const OperandRules& rules) {
  struct Shape {
    std::uint16_t m;
    std::uint16_t n;
  };
  constexpr Shape shapes[] = {{256, 128}, {128, 256}, {192, 128}, {128, 192}, {128, 128},
                              {256, 64},  {128, 64},  {256, 32},  {128, 32},  {128, 16},
                              {64, 256},  {64, 128},  {64, 64},   {64, 32},   {64, 16}};
  std::vector<Sm90Tile> tiles;
  for (const Shape& shape : shapes) {
    Sm90Tile tile{.m = shape.m, .n = shape.n, .cluster_m = 1, .cluster_n = 1, .stages = 0};
    tile.form = Sm90Form::groups;
    tile.by_registers = has_codes(rules);
    add_legal(rules, tile, tiles);
  }
  return tiles;
}

// What determines which tiles are legal and how many stages fit: the width of A and B, the type and
// math of the accumulation, the widths of out and C (0 if none is read), and the majors.
struct TileClass {
  std::size_t input;  // 0 to 2: 8, 16, 32 bits; 3 and 4: codes of 8 and 4 bits beside 16 bits
  std::size_t sums;   // accumulation and, for split operands, math: an index of `sums_of`
  std::size_t out;    // as input
  std::size_t c;      // as input and 1, or 0
  bool is_a_k_major;
  bool is_b_k_major;
};

// The accumulation: type, promotion, parts. One math stands for all that are alike.
struct SumsOf {
  DType accumulator;
  Math math;
};
constexpr SumsOf sums_of[] = {{DType::float32, Math::native}, {DType::float16, Math::native},
                              {DType::int32, Math::native},   {DType::float32, Math::fp8_promoted},
                              {DType::float32, Math::tf32x3}, {DType::float32, Math::bf16x3},
                              {DType::float32, Math::bf16x6}, {DType::float32, Math::bf16x9}};
constexpr std::size_t sums_count = std::size(sums_of);
constexpr std::size_t width_count = 3;
constexpr std::size_t input_count = width_count + 2;

std::size_t width_class(abi::DType dtype) noexcept {
  return static_cast<std::size_t>(abi::bytes_of(dtype) / 2);
}
std::size_t input_class(const abi::Sm90Design& design) noexcept {
  if (!abi::decodes_a(design)) return width_class(design.a);
  return abi::bits_of(design.a) == 8 ? width_count : width_count + 1;
}

std::size_t index_of(const TileClass& c) noexcept {
  const std::size_t types =
      ((c.input * sums_count + c.sums) * width_count + c.out) * (width_count + 1) + c.c;
  return types * 4 + (c.is_a_k_major ? 2 : 0) + (c.is_b_k_major ? 1 : 0);
}
static_assert(sm90_tile_class_count ==
              input_count * sums_count * width_count * (width_count + 1) * 4);

TileClass class_of_index(std::size_t index) noexcept {
  const std::size_t types = index / 4;
  const std::size_t inputs = types / (width_count + 1) / width_count;
  return {.input = inputs / sums_count,
          .sums = inputs % sums_count,
          .out = types / (width_count + 1) % width_count,
          .c = types % (width_count + 1),
          .is_a_k_major = index % 4 / 2 != 0,
          .is_b_k_major = index % 2 != 0};
}

using TileTable = ClassTable<Sm90Tile, sm90_tile_class_count>;

std::span<const Sm90Tile> tiles_of(TileTable& table,
                                   std::vector<Sm90Tile> (*list)(const OperandRules&),
                                   const OperandRules& rules) {
  const std::size_t index = sm90_tile_class(rules);
  return table.rows_of(index, [&] { return list(sm90_rules_of_class(index)); });
}

}  // namespace

std::size_t sm90_tile_class(const OperandRules& rules) noexcept {
  const abi::Sm90Design design = sm90_design(rules, Sm90Tile{});
  const Math math = abi::is_promoted(design) ? rules.math : Math::native;
  std::size_t sums = 0;
  while (sums_of[sums].accumulator != rules.accumulator || sums_of[sums].math != math) ++sums;
  return index_of({.input = input_class(design),
                   .sums = sums,
                   .out = width_class(design.out),
                   .c = design.has_c ? 1 + width_class(design.c) : 0,
                   .is_a_k_major = design.a_major == abi::Major::k,
                   .is_b_k_major = design.b_major == abi::Major::k});
}

OperandRules sm90_rules_of_class(std::size_t index) noexcept {
  const TileClass tile_class = class_of_index(index);
  const SumsOf& sums = sums_of[tile_class.sums];
  const bool is_integer = sums.accumulator == DType::int32;
  const DType floats[] = {DType::float8_e4m3fn, DType::float16, DType::float32, DType::int8,
                          DType::int4};
  const DType integers[] = {DType::int8, DType::float16, DType::int32, DType::int8, DType::int4};
  const auto& types = is_integer ? integers : floats;
  const bool has_codes = tile_class.input >= width_count;
  const auto rule = [](DType dtype, bool is_row) {
    return OperandRule{.dtype = dtype,
                       .layout = is_row ? LayoutRule::row : LayoutRule::column,
                       .alignment = widest_access};
  };
  OperandRules rules{
      .a = rule(types[tile_class.input], tile_class.is_a_k_major),
      .b = rule(has_codes ? DType::float16 : types[tile_class.input], !tile_class.is_b_k_major),
      .c = {},
      .out = rule(types[tile_class.out], true),
      .accumulator = sums.accumulator,
      .math = sums.math,
      .has_c = tile_class.c > 0};
  if (rules.has_c) rules.c = rule(types[tile_class.c - 1], true);
  if (tile_class.input == 2 && sums.math == Math::native) rules.math = Math::tf32;
  return rules;
}

std::span<const Sm90Tile> sm90_tiles(const OperandRules& rules) noexcept {
  static auto* const table = new TileTable;
  return tiles_of(*table, list_tiles, rules);
}

std::span<const Sm90Tile> sm90_program_tiles(const OperandRules& rules) noexcept {
  static auto* const table = new TileTable;
  return tiles_of(*table, list_program_tiles, rules);
}

std::span<const Sm90Tile> sm90_split_tiles(const OperandRules& rules) noexcept {
  if (rules.math == Math::saturate) return {};  // never split: the only difference within a class
  static auto* const table = new TileTable;
  return tiles_of(*table, list_split_tiles, rules);
}

std::span<const Sm90Tile> sm90_part_tiles(const OperandRules& rules) noexcept {
  if (rules.math == Math::saturate) return {};
  static auto* const table = new TileTable;
  return tiles_of(*table, list_part_tiles, rules);
}

std::span<const Sm90Tile> sm90_slice_tiles(const OperandRules& rules) noexcept {
  if (rules.math == Math::saturate) return {};
  static auto* const table = new TileTable;
  return tiles_of(*table, list_slice_tiles, rules);
}

std::span<const Sm90Tile> sm90_group_tiles(const OperandRules& rules) noexcept {
  static auto* const table = new TileTable;
  return tiles_of(*table, list_group_tiles, rules);
}

std::span<const Sm90Tile> sm90_register_tiles(const OperandRules& rules) noexcept {
  if (has_codes(rules) || byte_width(rules.a.dtype) != 1) return {};
  static auto* const table = new TileTable;
  return tiles_of(*table, list_register_tiles, rules);
}

}  // namespace gemmery::templates
