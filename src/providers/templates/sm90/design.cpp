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

constexpr DType float_outputs[] = {DType::bfloat16, DType::float16, DType::float32,
                                   DType::float8_e4m3fn, DType::float8_e5m2};
constexpr DType integer_outputs[] = {DType::int32, DType::int8, DType::uint8, DType::float32};

abi::DType abi_type(DType dtype) noexcept { return static_cast<abi::DType>(dtype); }

abi::MmaMath abi_math(Math math) noexcept {
  switch (math) {
    case Math::tf32:
      return abi::MmaMath::tf32;
    case Math::saturate:
      return abi::MmaMath::saturate;
    case Math::fp8_promoted:
      return abi::MmaMath::promoted;
    default:
      return abi::MmaMath::native;
  }
}

// With all stages that fit; a tile that is not legal for operands of these rules is left out.
void add_legal(const OperandRules& rules, Sm90Tile tile, std::vector<Sm90Tile>& tiles) {
  tile.stages = static_cast<std::uint8_t>(abi::most_stages(sm90_design(rules, tile)));
  if (abi::is_legal(sm90_design(rules, tile))) tiles.push_back(tile);
}

constexpr std::array<std::uint8_t, 2> clusters[] = {{1, 1}, {2, 1}, {1, 2}};

std::vector<Sm90Tile> list_tiles(const OperandRules& rules) {
  // Of types that fewer problems have, half as many widths.
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

// What decides which tiles are legal and how many stages fit: the width of A and B, what is added
// up and how, the widths of out and C (0 where none is read), and which index is adjacent.
struct TileClass {
  std::size_t input;  // 0 to 2: 8, 16, 32 bits
  std::size_t sums;   // of float32, float16, int32, or promoted ones of float32
  std::size_t out;    // as input
  std::size_t c;      // as input and 1, or 0
  bool is_a_k_major;
  bool is_b_k_major;
};

constexpr std::size_t sums_count = 4;
constexpr std::size_t width_count = 3;

std::size_t width_class(abi::DType dtype) noexcept {
  return static_cast<std::size_t>(abi::bytes_of(dtype) / 2);
}

std::size_t index_of(const TileClass& c) noexcept {
  const std::size_t types =
      ((c.input * sums_count + c.sums) * width_count + c.out) * (width_count + 1) + c.c;
  return types * 4 + (c.is_a_k_major ? 2 : 0) + (c.is_b_k_major ? 1 : 0);
}
static_assert(sm90_tile_class_count ==
              width_count * sums_count * width_count * (width_count + 1) * 4);

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

bool is_sm90_rule(const OperandRule& rule) {
  return rule.layout != LayoutRule::any && rule.alignment == widest_access;
}

bool is_output_type(DType dtype, DType input) {
  return std::ranges::find(sm90_outputs(input), dtype) != sm90_outputs(input).end();
}

// As TMA stores it, or as threads do: adjacent elements of less alignment, or of any strides.
bool is_output_rule(const OperandRule& rule) {
  if (is_sm90_rule(rule)) return true;
  const int width = static_cast<int>(byte_width(rule.dtype));
  const bool is_narrow = std::has_single_bit(rule.alignment) && rule.alignment >= width &&
                         rule.alignment < widest_access;
  return rule.layout == LayoutRule::any ? rule.alignment == width : is_narrow;
}

// C lies as out does, or has any strides.
bool is_c_rule(const OperandRule& rule, const OperandRule& out) {
  return (is_sm90_rule(rule) && rule.layout == out.layout) ||
         (is_output_rule(rule) && rule.layout == LayoutRule::any);
}

bool is_input_rule(const OperandRule& rule) {
  return is_sm90_rule(rule) || rule == repacked_rule(rule.dtype, rule.layout);
}

bool is_served(const OperandRules& rules) {
  const Sm90Products products{rules.a.dtype, rules.b.dtype, rules.accumulator, rules.math};
  const auto all = sm90_products();
  return std::ranges::find(all, products) != all.end() && is_input_rule(rules.a) &&
         is_input_rule(rules.b) && is_output_rule(rules.out) &&
         is_output_type(rules.out.dtype, rules.a.dtype) &&
         (!rules.has_c ||
          (is_c_rule(rules.c, rules.out) && is_output_type(rules.c.dtype, rules.a.dtype)));
}

// The word of how products are formed, where it is not as for any type; others have none.
std::string math_word(Math math) {
  switch (math) {
    case Math::native:
      return {};
    case Math::fp8_fast:
      return "wgmma-fast";
    case Math::fp8_promoted:
      return "wgmma-promoted";
    default:
      return fmt::format("wgmma-{}", name(math));
  }
}

std::optional<Math> read_math(std::string_view word) {
  for (const Sm90Products& products : sm90_products())
    if (math_word(products.math) == word) return products.math;
  return std::nullopt;
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
constexpr std::size_t most_design_words = 8;

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
  if ((*extents)[0] > 320 || (*extents)[1] > 256 || (*blocks)[0] > 2 || (*blocks)[1] > 2 ||
      *count > 8) {
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
  const std::size_t sums = abi::is_promoted(design)                    ? 3
                           : design.accumulator == abi::DType::int32   ? 2
                           : design.accumulator == abi::DType::float16 ? 1
                                                                       : 0;
  return index_of({.input = width_class(design.a),
                   .sums = sums,
                   .out = width_class(design.out),
                   .c = design.has_c ? 1 + width_class(design.c) : 0,
                   .is_a_k_major = design.a_major == abi::Major::k,
                   .is_b_k_major = design.b_major == abi::Major::k});
}

OperandRules sm90_rules_of_class(std::size_t index) noexcept {
  const TileClass tile_class = class_of_index(index);
  const bool is_integer = tile_class.sums == 2;
  const DType floats[] = {DType::float8_e4m3fn, DType::float16, DType::float32};
  const DType integers[] = {DType::int8, DType::float16, DType::int32};
  const auto& types = is_integer ? integers : floats;
  const auto rule = [](DType dtype, bool is_row) {
    return OperandRule{.dtype = dtype,
                       .layout = is_row ? LayoutRule::row : LayoutRule::column,
                       .alignment = widest_access};
  };
  constexpr DType accumulators[] = {DType::float32, DType::float16, DType::int32, DType::float32};
  OperandRules rules{.a = rule(types[tile_class.input], tile_class.is_a_k_major),
                     .b = rule(types[tile_class.input], !tile_class.is_b_k_major),
                     .c = {},
                     .out = rule(types[tile_class.out], true),
                     .accumulator = accumulators[tile_class.sums],
                     .has_c = tile_class.c > 0};
  if (rules.has_c) rules.c = rule(types[tile_class.c - 1], true);
  if (tile_class.input == 2) rules.math = Math::tf32;
  if (tile_class.sums == 3) rules.math = Math::fp8_promoted;
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
  if (rules.math == Math::saturate) return {};  // the one difference within a class
  static auto* const table = new TileTable;
  return tiles_of(*table, list_split_tiles, rules);
}

std::span<const Sm90Tile> sm90_part_tiles(const OperandRules& rules) noexcept {
  static auto* const table = new TileTable;
  return tiles_of(*table, list_part_tiles, rules);
}

std::span<const Sm90Products> sm90_products() noexcept {
  using enum DType;
  static constexpr auto all = std::to_array<Sm90Products>({
      {bfloat16, bfloat16, float32, Math::native},
      {float16, float16, float32, Math::native},
      {float16, float16, float16, Math::native},
      {float32, float32, float32, Math::tf32},
      {int8, int8, int32, Math::native},
      {int8, uint8, int32, Math::native},
      {uint8, int8, int32, Math::native},
      {uint8, uint8, int32, Math::native},
      {int8, int8, int32, Math::saturate},
      {int8, uint8, int32, Math::saturate},
      {uint8, int8, int32, Math::saturate},
      {uint8, uint8, int32, Math::saturate},
      {float8_e4m3fn, float8_e4m3fn, float32, Math::fp8_promoted},
      {float8_e4m3fn, float8_e5m2, float32, Math::fp8_promoted},
      {float8_e5m2, float8_e4m3fn, float32, Math::fp8_promoted},
      {float8_e5m2, float8_e5m2, float32, Math::fp8_promoted},
      {float8_e4m3fn, float8_e4m3fn, float32, Math::fp8_fast},
      {float8_e4m3fn, float8_e5m2, float32, Math::fp8_fast},
      {float8_e5m2, float8_e4m3fn, float32, Math::fp8_fast},
      {float8_e5m2, float8_e5m2, float32, Math::fp8_fast},
  });
  return all;
}

std::optional<Sm90Products> sm90_products_of(const GemmProblem& problem) noexcept {
  const DType a = problem.a.dtype;
  const bool is_byte_float = is_floating(a) && bit_width(a) == 8;
  const Math math =
      is_byte_float && problem.math == Math::native ? Math::fp8_promoted : problem.math;
  const Sm90Products products{a, problem.b.dtype, problem.accumulator, math};
  const auto all = sm90_products();
  return std::ranges::find(all, products) == all.end() ? std::nullopt : std::optional(products);
}

std::span<const DType> sm90_outputs(DType input) noexcept {
  if (is_integer(input)) return integer_outputs;
  return std::span(float_outputs).first(bit_width(input) == 8 ? 5 : 3);
}

bool is_turned(const OperandRules& rules) noexcept {
  return rules.out.layout == LayoutRule::column;
}

abi::Sm90Design sm90_design(const OperandRules& rules, const Sm90Tile& tile) noexcept {
  // A has k adjacent where it is row major, B where it is column major, and so do copies of
  // operands of any strides; out^T = B^T A^T.
  const abi::Major a = rules.a.layout == LayoutRule::column ? abi::Major::extent : abi::Major::k;
  const abi::Major b = rules.b.layout == LayoutRule::row ? abi::Major::extent : abi::Major::k;
  const abi::DType a_type = abi_type(rules.a.dtype);
  const abi::DType b_type = abi_type(rules.b.dtype);
  return {.a = is_turned(rules) ? b_type : a_type,
          .b = is_turned(rules) ? a_type : b_type,
          .accumulator = abi_type(rules.accumulator),
          .math = abi_math(rules.math),
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

std::string tile_text(const OperandRules& rules, const Sm90Tile& tile) {
  return fmt::format("{}x{}x{}", tile.m, tile.n, abi::tile_k(sm90_design(rules, tile)));
}

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
  const std::string math = math_word(kernel.operands().math);
  const std::string repacked = repacked_text(kernel.operands());
  return gemm_name(fmt::format("sm90v{}", sm90_version), kernel.operands(),
                   fmt::format("{}{}{}_{}x{}{}_{}_{}_s{}{}", math, math.empty() ? "" : "_",
                               tile_text(kernel.operands(), tile), tile.cluster_m, tile.cluster_n,
                               is_split ? fmt::format("_{}{}", tag, split_text(tile)) : "",
                               schedule_text(tile), raster_text(tile.raster), tile.stages,
                               repacked.empty() ? "" : "_pack" + repacked),
                   kernel.epilogue());
}

namespace {

// With as many words for the design as there are.
std::optional<GemmNameParts> read_sm90_parts(std::string_view name) {
  const std::string head = fmt::format("sm90v{}", sm90_version);
  for (std::size_t words = fewest_design_words; words <= most_design_words; ++words)
    if (auto parts = read_gemm_name(name, head, words)) return parts;
  return std::nullopt;
}

}  // namespace

std::optional<Sm90Parts> parse_sm90_name(std::string_view name) {
  auto name_parts = read_sm90_parts(name);
  if (!name_parts) return std::nullopt;
  std::span<const std::string_view> words = name_parts->design;
  if (words.front().starts_with("wgmma-")) {
    const auto math = read_math(words.front());
    if (!math) return std::nullopt;
    name_parts->rules.math = *math;
    words = words.subspan(1);
  }
  const auto tile = read_tile(words);
  if (!tile) return std::nullopt;
  if (!is_served(name_parts->rules)) return std::nullopt;
  if (tile_text(name_parts->rules, *tile) != words.front()) return std::nullopt;
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
