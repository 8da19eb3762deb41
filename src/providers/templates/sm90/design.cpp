// SPDX-License-Identifier: Apache-2.0
// The table of tiles, and kernels to and from their names.
#include "providers/templates/sm90/design.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "device/abi/simt_design.hpp"
#include "providers/templates/class_table.hpp"
#include "providers/templates/name_words.hpp"
#include "providers/templates/repacking.hpp"

namespace gemmery::templates {
namespace {

constexpr DType inputs[] = {DType::bfloat16, DType::float16};
constexpr DType outputs[] = {DType::bfloat16, DType::float16, DType::float32};

abi::DType abi_type(DType dtype) noexcept { return static_cast<abi::DType>(dtype); }

// With all stages that fit; a tile that is not legal for operands of these rules is left out.
void add_legal(const OperandRules& rules, Sm90Tile tile, std::vector<Sm90Tile>& tiles) {
  tile.stages = static_cast<std::uint8_t>(abi::most_stages(sm90_design(rules, tile)));
  if (abi::is_legal(sm90_design(rules, tile))) tiles.push_back(tile);
}

constexpr std::array<std::uint8_t, 2> clusters[] = {{1, 1}, {2, 1}, {1, 2}};

std::vector<Sm90Tile> list_tiles(const OperandRules& rules) {
  std::vector<Sm90Tile> tiles;
  for (std::uint16_t m = 320; m >= 64; m = static_cast<std::uint16_t>(m - 64)) {
    for (std::uint16_t n = 256; n >= 16; n = static_cast<std::uint16_t>(n - 16)) {
      for (const auto& cluster : clusters) {
        for (const abi::Schedule schedule :
             {abi::Schedule::cooperative, abi::Schedule::ping_pong}) {
          add_legal(rules,
                    {.m = m,
                     .n = n,
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
        add_legal(rules, tile, tiles);
      }
    }
  }
  return tiles;
}

// Shapes whose columns are whole staging tiles; those of few accumulators leave registers for what
// walks the shares.
std::vector<Sm90Tile> list_part_tiles(const OperandRules& rules) {
  struct Shape {
    std::uint16_t m;
    std::uint16_t n;
    std::uint8_t cluster_m;
  };
  constexpr Shape shapes[] = {{256, 128, 2}, {256, 128, 1}, {128, 256, 1},
                              {128, 192, 1}, {128, 128, 1}, {128, 64, 1},
                              {64, 256, 1},  {64, 128, 1},  {64, 64, 1}};
  constexpr std::uint8_t slice_counts[] = {2, 3, 4, 6, 8, 12, 16, 24, 32};
  std::vector<Sm90Tile> tiles;
  for (const Shape& shape : shapes) {
    Sm90Tile tile{
        .m = shape.m, .n = shape.n, .cluster_m = shape.cluster_m, .cluster_n = 1, .stages = 0};
    tile.split = abi::SplitMode::stream;
    add_legal(rules, tile, tiles);
    if (shape.cluster_m > 1) continue;
    tile.split = abi::SplitMode::parallel;
    for (const std::uint8_t slices : slice_counts) {
      tile.slices = slices;
      add_legal(rules, tile, tiles);
    }
  }
  return tiles;
}

// What decides which tiles are legal and how many stages fit, a bit each: adjacent indices of what
// the device multiplies, the widths of sums, out and C, and whether C is read.
constexpr std::size_t k_major_a = 1;
constexpr std::size_t k_major_b = 2;
constexpr std::size_t half_sums = 4;
constexpr std::size_t wide_out = 8;
constexpr std::size_t with_c = 16;
constexpr std::size_t wide_c = 32;

using TileTable = ClassTable<Sm90Tile, sm90_tile_class_count>;

std::span<const Sm90Tile> tiles_of(TileTable& table,
                                   std::vector<Sm90Tile> (*list)(const OperandRules&),
                                   const OperandRules& rules) {
  const std::size_t index = sm90_tile_class(rules);
  return table.rows_of(index, [&] { return list(sm90_rules_of_class(index)); });
}

bool is_sm90_rule(const OperandRule& rule, std::span<const DType> dtypes) {
  return std::ranges::find(dtypes, rule.dtype) != dtypes.end() && rule.layout != LayoutRule::any &&
         rule.alignment == widest_access;
}

bool is_output_rule(const OperandRule& rule) {
  if (is_sm90_rule(rule, outputs)) return true;
  const int width = static_cast<int>(byte_width(rule.dtype));
  const bool is_narrow = std::has_single_bit(rule.alignment) && rule.alignment >= width &&
                         rule.alignment < widest_access;
  return std::ranges::find(outputs, rule.dtype) != std::end(outputs) &&
         (rule.layout == LayoutRule::any ? rule.alignment == width : is_narrow);
}

// C lies as out does, or has any strides.
bool is_c_rule(const OperandRule& rule, const OperandRule& out) {
  return (is_sm90_rule(rule, outputs) && rule.layout == out.layout) ||
         (is_output_rule(rule) && rule.layout == LayoutRule::any);
}

bool is_input_rule(const OperandRule& rule) {
  return is_sm90_rule(rule, inputs) || (std::ranges::find(inputs, rule.dtype) != std::end(inputs) &&
                                        rule == repacked_rule(rule.dtype, rule.layout));
}

bool is_served(const OperandRules& rules) {
  return is_input_rule(rules.a) && is_input_rule(rules.b) && rules.a.dtype == rules.b.dtype &&
         is_output_rule(rules.out) && is_sm90_accumulator(rules.accumulator, rules.a.dtype) &&
         (!rules.has_c || is_c_rule(rules.c, rules.out));
}

// The schedule of a name, and whether it adds a vector.
std::optional<Sm90Tile> read_schedule(std::string_view text) {
  for (const abi::Schedule schedule : sm90_schedules) {
    for (const bool adds_vector : {false, true}) {
      Sm90Tile tile{};
      tile.schedule = schedule;
      tile.adds_vector = adds_vector;
      if (schedule_text(tile) == text) return tile;
    }
  }
  return std::nullopt;
}

std::optional<abi::Raster> read_raster(std::string_view text) {
  const auto along_m = read_tagged(text, "m");
  const auto along_n = read_tagged(text, "n");
  const auto band = along_m ? along_m : along_n;
  if (!band || *band > 64) return std::nullopt;
  return abi::Raster{.along = along_m ? abi::Along::m : abi::Along::n,
                     .band = static_cast<unsigned char>(*band)};
}

// "k4", or as in sm80 "parallel4"; 255 slices at most.
std::optional<Sm90Tile> read_split_word(std::string_view text) {
  Sm90Tile tile{};
  if (const auto blocks = read_tagged(text, "k")) {
    if (*blocks < 2 || *blocks > 8) return std::nullopt;
    tile.split_k = static_cast<std::uint8_t>(*blocks);
    return tile;
  }
  const auto split = read_split(text);
  if (!split || split->mode == abi::SplitMode::none || split->slices > 255) return std::nullopt;
  tile.split = split->mode;
  tile.slices = static_cast<std::uint8_t>(split->slices);
  return tile;
}

// "128x256x64", "1x1", "k4" where k is split, "coop", "m8", "s4", "packa" where A is repacked
constexpr std::size_t fewest_design_words = 5;
constexpr std::size_t most_design_words = 7;

bool is_repacking_word(std::string_view word) { return word.starts_with("pack"); }

std::optional<Sm90Tile> read_tile(std::span<const std::string_view> words) {
  if (is_repacking_word(words.back())) words = words.first(words.size() - 1);
  if (words.size() < fewest_design_words || words.size() > fewest_design_words + 1)
    return std::nullopt;
  const auto extents = read_integers(words[0], 3);
  const auto blocks = read_integers(words[1], 2);
  const bool is_split = words.size() > fewest_design_words;
  const auto split = is_split ? read_split_word(words[2]) : Sm90Tile{};
  const auto others = words.last(3);
  const auto schedule = read_schedule(others[0]);
  const auto raster = read_raster(others[1]);
  const auto count = read_tagged(others[2], "s");
  if (!extents || !blocks || !count || !schedule || !raster || !split) return std::nullopt;
  if ((*extents)[0] > 320 || (*extents)[1] > 256 || (*extents)[2] != 64 || (*blocks)[0] > 2 ||
      (*blocks)[1] > 2 || *count > 8) {
    return std::nullopt;
  }
  return Sm90Tile{.m = static_cast<std::uint16_t>((*extents)[0]),
                  .n = static_cast<std::uint16_t>((*extents)[1]),
                  .cluster_m = static_cast<std::uint8_t>((*blocks)[0]),
                  .cluster_n = static_cast<std::uint8_t>((*blocks)[1]),
                  .stages = static_cast<std::uint8_t>(*count),
                  .schedule = schedule->schedule,
                  .raster = *raster,
                  .split_k = split->split_k,
                  .adds_vector = schedule->adds_vector,
                  .slices = split->slices,
                  .split = split->split};
}

}  // namespace

std::size_t sm90_tile_class(const OperandRules& rules) noexcept {
  const abi::Sm90Design design = sm90_design(rules, Sm90Tile{});
  return (design.a_major == abi::Major::k ? k_major_a : 0U) |
         (design.b_major == abi::Major::k ? k_major_b : 0U) |
         (design.accumulator == abi::DType::float16 ? half_sums : 0U) |
         (design.out == abi::DType::float32 ? wide_out : 0U) | (design.has_c ? with_c : 0U) |
         (design.has_c && design.c == abi::DType::float32 ? wide_c : 0U);
}

OperandRules sm90_rules_of_class(std::size_t index) noexcept {
  const auto rule = [](DType dtype, bool is_row) {
    return OperandRule{.dtype = dtype,
                       .layout = is_row ? LayoutRule::row : LayoutRule::column,
                       .alignment = widest_access};
  };
  const OperandRule out = rule((index & wide_out) != 0 ? DType::float32 : DType::float16, true);
  const bool has_c = (index & with_c) != 0;
  const OperandRule c = rule((index & wide_c) != 0 ? DType::float32 : DType::float16, true);
  return {.a = rule(DType::float16, (index & k_major_a) != 0),
          .b = rule(DType::float16, (index & k_major_b) == 0),
          .c = has_c ? c : OperandRule{},
          .out = out,
          .accumulator = (index & half_sums) != 0 ? DType::float16 : DType::float32,
          .has_c = has_c};
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
  static auto* const table = new TileTable;
  return tiles_of(*table, list_split_tiles, rules);
}

std::span<const Sm90Tile> sm90_part_tiles(const OperandRules& rules) noexcept {
  static auto* const table = new TileTable;
  return tiles_of(*table, list_part_tiles, rules);
}

std::span<const DType> sm90_inputs() noexcept { return inputs; }
std::span<const DType> sm90_outputs() noexcept { return outputs; }

bool is_sm90_accumulator(DType accumulator, DType input) noexcept {
  return abi::is_sm90_accumulator(abi_type(accumulator), abi_type(input));
}

bool is_turned(const OperandRules& rules) noexcept {
  return rules.out.layout == LayoutRule::column;
}

abi::Sm90Design sm90_design(const OperandRules& rules, const Sm90Tile& tile) noexcept {
  // A has k adjacent where it is row major, B where it is column major, and so do copies of
  // operands of any strides; out^T = B^T A^T.
  const abi::Major a = rules.a.layout == LayoutRule::column ? abi::Major::extent : abi::Major::k;
  const abi::Major b = rules.b.layout == LayoutRule::row ? abi::Major::extent : abi::Major::k;
  return {.operand = abi_type(rules.a.dtype),
          .accumulator = abi_type(rules.accumulator),
          .c = abi_type(rules.has_c ? rules.c.dtype : rules.out.dtype),
          .out = abi_type(rules.out.dtype),
          .a_major = is_turned(rules) ? b : a,
          .b_major = is_turned(rules) ? a : b,
          .tile_m = tile.m,
          .tile_n = tile.n,
          .cluster_m = tile.cluster_m,
          .cluster_n = tile.cluster_n,
          .schedule = tile.schedule,
          .raster = tile.raster,
          .stages = tile.stages,
          .has_c = rules.has_c,
          .split_k = tile.split_k,
          .adds_vector = tile.adds_vector,
          .split = tile.split,
          .out_access = rules.out.layout == LayoutRule::any ? 0 : rules.out.alignment,
          .has_any_c = rules.has_c && rules.c.layout == LayoutRule::any};
}

bool has_vector_addend(const ProgramTensors& tensors, const abi::StoredShare& share) noexcept {
  return abi::vector_addend(tensors.inputs.data(), static_cast<int>(tensors.inputs.size()),
                            tensors.addend, share) >= 0;
}

int program_bytes(const ProgramTensors& tensors, const abi::StoredShare& share) noexcept {
  const auto count = [](const auto& values) { return static_cast<int>(values.size()); };
  const abi::ProgramBytes bytes =
      abi::program_bytes(tensors.inputs.data(), count(tensors.inputs), tensors.addend,
                         tensors.outputs.data(), count(tensors.outputs), share);
  return abi::all_program_bytes(bytes, share);
}

abi::Sm90Design with_program(abi::Sm90Design design, const ProgramTensors& tensors) noexcept {
  design.program_bytes = program_bytes(tensors, abi::stored_design(design));
  return design;
}

abi::Sm90Design sm90_design(const Kernel& kernel) {
  const abi::Sm90Design design = sm90_design(kernel.operands(), sm90_tile(kernel));
  if (kernel.epilogue() == default_epilogue) return design;
  return with_program(design, program_tensors(kernel.epilogue(), is_turned(kernel.operands())));
}

Sm90Tile sm90_tile(const Kernel& kernel) noexcept { return kernel.design().as<Sm90Tile>(); }

Sm90Extents extents_of(const OperandRules& rules, const GemmProblem& problem) noexcept {
  const auto m = static_cast<unsigned>(problem.m);
  const auto n = static_cast<unsigned>(problem.n);
  return is_turned(rules) ? Sm90Extents{n, m} : Sm90Extents{m, n};
}

Sm90TileCounts count_tiles(const Sm90Extents& extents, const Sm90Tile& tile) noexcept {
  return {abi::tiles_along(extents.rows, tile.m * tile.cluster_m),
          abi::tiles_along(extents.columns, tile.n * tile.cluster_n)};
}

std::string tile_text(const Sm90Tile& tile) { return fmt::format("{}x{}x64", tile.m, tile.n); }

SplitWord split_word(const Sm90Tile& tile) noexcept {
  return {.mode = tile.split, .slices = tile.slices};
}

std::string split_text(const Sm90Tile& tile) {
  return tile.split == abi::SplitMode::none ? std::to_string(tile.split_k)
                                            : split_text(split_word(tile));
}

std::string schedule_text(const Sm90Tile& tile) {
  constexpr std::string_view texts[] = {"coop", "pingpong", "rotation"};
  static_assert(std::size(texts) == std::size(sm90_schedules));
  return fmt::format("{}{}", texts[static_cast<std::size_t>(tile.schedule)],
                     tile.adds_vector ? "-add" : "");
}

std::string raster_text(abi::Raster raster) {
  return fmt::format("{}{}", raster.along == abi::Along::m ? 'm' : 'n', raster.band);
}

std::string repacked_text(const OperandRules& rules) {
  return std::string(is_repacked(rules.a) ? "a" : "") + (is_repacked(rules.b) ? "b" : "");
}

std::string sm90_name(const Kernel& kernel) {
  const Sm90Tile tile = sm90_tile(kernel);
  const std::string_view tag = tile.split == abi::SplitMode::none ? "k" : "";
  const bool is_split = tile.split_k > 1 || tile.split != abi::SplitMode::none;
  const std::string repacked = repacked_text(kernel.operands());
  return gemm_name(
      fmt::format("sm90v{}", sm90_version), kernel.operands(),
      fmt::format("{}x{}x64_{}x{}{}_{}_{}_s{}{}", tile.m, tile.n, tile.cluster_m, tile.cluster_n,
                  is_split ? fmt::format("_{}{}", tag, split_text(tile)) : "", schedule_text(tile),
                  raster_text(tile.raster), tile.stages,
                  repacked.empty() ? "" : "_pack" + repacked),
      kernel.epilogue());
}

std::optional<Sm90Parts> parse_sm90_name(std::string_view name) {
  const std::string head = fmt::format("sm90v{}", sm90_version);
  std::optional<GemmNameParts> name_parts;
  for (std::size_t words = fewest_design_words; !name_parts && words <= most_design_words; ++words)
    name_parts = read_gemm_name(name, head, words);
  if (!name_parts) return std::nullopt;
  const auto tile = read_tile(name_parts->design);
  if (!tile) return std::nullopt;
  if (!is_served(name_parts->rules)) return std::nullopt;
  if (is_for_programs(*tile) && name_parts->epilogue == default_epilogue) return std::nullopt;
  // Without its program first: what a program needs is worked out for sound tiles only.
  const abi::Sm90Design design = sm90_design(name_parts->rules, *tile);
  if (!abi::is_legal(design)) return std::nullopt;
  const ProgramTensors tensors =
      program_tensors(name_parts->epilogue, is_turned(name_parts->rules));
  if (!abi::is_legal(with_program(design, tensors)) ||
      (tile->adds_vector && !has_vector_addend(tensors, design)))
    return std::nullopt;
  return Sm90Parts{.rules = name_parts->rules, .tile = *tile, .epilogue = name_parts->epilogue};
}

}  // namespace gemmery::templates
