// SPDX-License-Identifier: Apache-2.0
// The table of tiles, and the values that follow from a tile.
#include "providers/templates/sm80/design.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "operation/types.hpp"
#include "providers/templates/abi_type.hpp"
#include "providers/templates/companions.hpp"
#include "providers/templates/conv_windows.hpp"
#include "providers/templates/name_words.hpp"

namespace gemmery::templates {
namespace {

// `k` counts bytes of A: a row of a staged tile has 64 or 128 bytes. Large tiles come first; with
// warps_k above 1, groups of warps split each block of k of a small tile.
struct TileShape {
  std::uint16_t m;
  std::uint16_t n;
  std::uint16_t k_bytes;
  std::uint8_t warps_m;
  std::uint8_t warps_n;
  std::uint8_t warps_k;
  std::uint8_t stages;
};

constexpr TileShape shapes[] = {
    {256, 128, 64, 4, 2, 1, 3},  {128, 256, 64, 2, 4, 1, 3}, {128, 128, 64, 2, 2, 1, 4},
    {128, 128, 128, 2, 2, 1, 3}, {128, 64, 128, 2, 2, 1, 3}, {64, 128, 128, 2, 2, 1, 3},
    {64, 64, 128, 2, 2, 1, 4},   {32, 128, 128, 1, 4, 1, 4}, {128, 32, 128, 4, 1, 1, 4},
    {32, 64, 128, 1, 2, 2, 4},   {16, 128, 128, 1, 4, 1, 5}, {16, 64, 128, 1, 2, 2, 5},
    {128, 16, 128, 4, 1, 1, 5},  {64, 16, 128, 2, 1, 2, 5},  {32, 32, 128, 1, 1, 4, 4},
};
// One operand of 16-bit floats, the other one of codes: a step of fragments has 32 k, and decoded
// fragments of a step leave room for 64 accumulators. `k_bytes` counts bytes of the floats.
constexpr TileShape mixed_shapes[] = {
    {128, 128, 128, 2, 4, 1, 3}, {128, 64, 128, 2, 2, 1, 4}, {64, 128, 128, 2, 2, 1, 4},
    {64, 64, 128, 2, 2, 1, 4},   {32, 128, 128, 1, 4, 1, 4}, {128, 32, 128, 4, 1, 1, 4},
    {16, 128, 128, 1, 4, 1, 5},  {128, 16, 128, 4, 1, 1, 5}, {16, 64, 256, 1, 2, 2, 4},
    {64, 16, 256, 2, 1, 2, 4},
};
// With scales each accumulator has one of the current group of k beside it.
constexpr TileShape scaled_shapes[] = {
    {128, 128, 128, 2, 4, 1, 3}, {128, 64, 128, 4, 2, 1, 3}, {64, 128, 128, 2, 4, 1, 3},
    {64, 64, 128, 2, 2, 1, 4},   {32, 128, 128, 1, 4, 1, 4}, {128, 32, 128, 4, 1, 1, 4},
    {16, 128, 128, 1, 4, 1, 5},  {128, 16, 128, 4, 1, 1, 5}, {16, 64, 256, 1, 2, 2, 4},
    {64, 16, 256, 2, 1, 2, 4},
};
// float64 accumulators take four times as many bytes for each element of an operand.
constexpr TileShape double_shapes[] = {
    {128, 64, 128, 4, 2, 1, 3}, {64, 128, 128, 2, 4, 1, 3}, {64, 64, 128, 2, 2, 1, 4},
    {64, 32, 128, 2, 2, 1, 4},  {32, 64, 128, 2, 2, 1, 4},  {32, 32, 128, 2, 2, 1, 4},
    {16, 64, 128, 1, 4, 1, 4},  {32, 16, 128, 2, 1, 2, 4},
};
// The same with m16n8k8, which exists from sm_90 on. m16n8k16, which a name can request, was 2 to
// 30 % slower in every tile that was timed on an H100 (bench/results/h100-sm80.md).
constexpr std::uint8_t wide_double_k = 8;
constexpr TileShape wide_double_shapes[] = {
    {64, 64, 128, 2, 2, 1, 4},  {128, 64, 128, 2, 2, 1, 3}, {128, 128, 128, 4, 4, 1, 3},
    {128, 64, 128, 4, 2, 1, 4}, {64, 128, 128, 2, 4, 1, 3}, {64, 32, 128, 2, 2, 1, 4},
    {32, 64, 128, 2, 2, 1, 4},  {32, 32, 128, 2, 2, 1, 4},
};
// float32: rows of 128 bytes have one more step of k.
constexpr TileShape single_shapes[] = {
    {256, 128, 64, 4, 2, 1, 3}, {128, 256, 64, 2, 4, 1, 3}, {128, 128, 128, 2, 2, 1, 3},
    {128, 128, 64, 2, 2, 1, 4}, {128, 64, 128, 2, 2, 1, 3}, {64, 128, 128, 2, 2, 1, 3},
    {64, 64, 128, 2, 2, 1, 4},  {32, 128, 128, 1, 4, 1, 4}, {128, 32, 128, 4, 1, 1, 4},
    {16, 128, 128, 1, 4, 1, 4}, {128, 16, 128, 4, 1, 1, 4}, {32, 32, 128, 1, 2, 2, 4},
};

// float32 by three products: with two parts of every fragment and separate accumulators for a step,
// there is room for 64 accumulators in a thread if a stage has two steps.
constexpr TileShape split_shapes[] = {
    {128, 128, 128, 2, 4, 1, 3}, {128, 128, 64, 2, 4, 1, 4}, {128, 64, 128, 2, 2, 1, 3},
    {128, 64, 64, 2, 2, 1, 4},   {64, 128, 128, 1, 4, 1, 3}, {64, 128, 64, 2, 2, 1, 4},
    {64, 64, 128, 2, 2, 1, 4},   {32, 128, 128, 1, 4, 1, 4}, {128, 32, 128, 4, 1, 1, 4},
    {16, 128, 128, 1, 4, 1, 4},  {128, 16, 128, 4, 1, 1, 4}, {32, 32, 128, 1, 2, 2, 4},
};

std::span<const TileShape> shapes_of(const OperandRules& rules) {
  if (rules.a_companions.are_used() || rules.b_companions.are_used()) return scaled_shapes;
  if (is_mixed_sm80(rules.a.dtype, rules.b.dtype)) return mixed_shapes;
  if (rules.a.dtype == DType::float64) return double_shapes;
  if (rules.a.dtype != DType::float32) return shapes;
  return operation::product_count(rules.math) > 1 ? std::span<const TileShape>(split_shapes)
                                                  : std::span<const TileShape>(single_shapes);
}

constexpr DType float_outputs[] = {DType::bfloat16, DType::float16, DType::float32};
constexpr DType double_outputs[] = {DType::float64, DType::float32};
constexpr DType integer_outputs[] = {DType::int32, DType::int8, DType::uint8, DType::float32};

Sm80Tile tile_of(const TileShape& shape, std::uint8_t mma_k, const OperandRules& rules) noexcept {
  return {.m = shape.m,
          .n = shape.n,
          .k = static_cast<std::uint16_t>(
              shape.k_bytes / byte_width(multiplied_type(rules.a.dtype, rules.b.dtype))),
          .warps_m = shape.warps_m,
          .warps_n = shape.warps_n,
          .warps_k = shape.warps_k,
          .stages = shape.stages,
          .mma_k = mma_k};
}

// Bytes of the widest access along columns of the computed matrix; 0 if they are not adjacent.
int column_vector(const OperandRule& rule, bool is_turned) noexcept {
  const LayoutRule adjacent = is_turned ? LayoutRule::column : LayoutRule::row;
  return rule.layout == adjacent ? rule.alignment : 0;
}

// Registers of a thread for a block of k in flight.
int copy_words(const abi::StagedOperand& operand, int threads) noexcept {
  if (operand.is_async() || operand.vector_bytes < 4) return 0;
  return (operand.bytes() / 4 + threads - 1) / threads;
}

// True if accumulators leave registers for these copies; for twice the fragments of 8-bit floats,
// which devices before sm_120 convert first; and for the addresses of 8-bit elements that are
// copied one by one.
bool has_room_for_copies(const abi::Sm80Design& design) noexcept {
  const int words = abi::accumulators_per_thread(design) * abi::accumulator_bytes(design) / 4;
  const int threads = abi::thread_count(design);
  const int copies =
      copy_words(abi::staged_a(design), threads) + copy_words(abi::staged_b(design), threads);
  const bool has_elements = design.a_vector_bytes < 4 || design.b_vector_bytes < 4;
  // 8 to 16 bytes of tf32's 128x128x32 spilled (ptxas 13.0).
  const bool is_wgrad = design.convolution == abi::ConvolutionKind::wgrad;
  if ((design.has_indices || design.clears_outside || is_wgrad) && words >= 128 &&
      design.a == abi::DType::float32 && abi::k_steps(design) > 2)
    return false;
  // 100 to 330 bytes of tf32's 128x128x16 and 256x128x16 with an index for each chunk of less than
  // 16 bytes, and 4 where zeros are stored outside of groups. Smaller tiles serve.
  const bool has_small_chunks =
      design.a_vector_bytes < 16 && (design.has_indices || design.b_vector_bytes < 16);
  if ((design.has_indices || design.clears_outside) && words >= 128 &&
      design.a == abi::DType::float32 && has_small_chunks)
    return false;
  // 16 bytes of tf32's 128x64x32 in three dimensions, with chunks of A in parts beside whole ones
  // of B. Other tiles serve.
  if (is_wgrad && design.dimensions == 3 && words >= 64 && design.a == abi::DType::float32 &&
      abi::k_steps(design) > 2 && design.a_vector_bytes < design.b_vector_bytes)
    return false;
  if (abi::is_mixed(design)) return true;
  if (has_elements && abi::bytes_of(design.a) == 1 && words >= 128) return false;
  if (abi::is_float8(design.a) && (words >= 64 && (abi::k_steps(design) > 2 || has_elements)))
    return false;
  return copies == 0 || words + copies <= 96;
}

}  // namespace

// --- types --------------------------------------------------------------------------------------

std::optional<abi::MmaMath> sm80_math(DType a, DType b, DType accumulator, Math math) noexcept {
  const bool is_float8 = !is_mixed_sm80(a, b) && abi::is_float8(abi_type(a));
  std::optional<abi::MmaMath> form;
  switch (math) {
    case Math::native:
      if (!is_float8) form = abi::MmaMath::native;
      break;
    case Math::fp8_fast:
      if (is_float8) form = abi::MmaMath::native;
      break;
    case Math::saturate:
      form = abi::MmaMath::saturate;
      break;
    case Math::tf32:
      form = abi::MmaMath::tf32;
      break;
    case Math::tf32x3:
      form = abi::MmaMath::tf32x3;
      break;
    case Math::bf16x3:
      form = abi::MmaMath::bf16x3;
      break;
    case Math::f16x3:
      form = abi::MmaMath::f16x3;
      break;
    case Math::bf16:
      form = abi::MmaMath::bf16;
      break;
    case Math::f16:
      form = abi::MmaMath::f16;
      break;
    default:
      break;
  }
  using namespace abi::detail;
  const bool fits = form && are_mma_operands(abi_type(a), abi_type(b)) &&
                    is_mma_math(abi_type(multiplied_type(a, b)), *form) &&
                    is_mma_accumulator(abi_type(a), abi_type(b), abi_type(accumulator));
  return fits ? form : std::nullopt;
}

bool is_mixed_sm80(DType a, DType b) noexcept {
  return (abi::is_half(abi_type(a)) && abi::is_code(abi_type(b))) ||
         (abi::is_code(abi_type(a)) && abi::is_half(abi_type(b)));
}

DType multiplied_type(DType a, DType b) noexcept {
  return is_mixed_sm80(a, b) && abi::is_code(abi_type(a)) ? b : a;
}

std::span<const DType> sm80_codes() noexcept {
  static constexpr std::array all{DType::float4_e2m1fn, DType::float8_e4m3fn, DType::float8_e5m2};
  return all;
}

std::span<const Sm80Products> sm80_products() {
  using enum DType;
  static constexpr auto all = std::to_array<Sm80Products>({
      {bfloat16, bfloat16, float32, Math::native},
      {float16, float16, float32, Math::native},
      {float16, float16, float16, Math::native},
      {float32, float32, float32, Math::tf32},
      {float32, float32, float32, Math::tf32x3},
      {float32, float32, float32, Math::bf16x3},
      {float32, float32, float32, Math::f16x3},
      {float32, float32, float32, Math::bf16},
      {float32, float32, float32, Math::f16},
      {float64, float64, float64, Math::native},
      {int8, int8, int32, Math::native},
      {int8, uint8, int32, Math::native},
      {uint8, int8, int32, Math::native},
      {uint8, uint8, int32, Math::native},
      {int8, int8, int32, Math::saturate},
      {int8, uint8, int32, Math::saturate},
      {uint8, int8, int32, Math::saturate},
      {uint8, uint8, int32, Math::saturate},
      {float8_e4m3fn, float8_e4m3fn, float32, Math::fp8_fast},
      {float8_e4m3fn, float8_e5m2, float32, Math::fp8_fast},
      {float8_e5m2, float8_e4m3fn, float32, Math::fp8_fast},
      {float8_e5m2, float8_e5m2, float32, Math::fp8_fast},
  });
  return all;
}

std::span<const DType> sm80_outputs(DType accumulator) noexcept {
  if (accumulator == DType::float64) return double_outputs;
  return accumulator == DType::int32 ? std::span<const DType>(integer_outputs)
                                     : std::span<const DType>(float_outputs);
}

std::vector<OperandRule> sm80_input_rules(DType dtype) {
  std::vector<OperandRule> rules;
  const auto element = static_cast<std::uint8_t>(byte_width(dtype));
  for (const LayoutRule layout : {LayoutRule::row, LayoutRule::column}) {
    rules.push_back({dtype, layout, widest_access});
    if (element < 4) rules.push_back({dtype, layout, 4});
    rules.push_back({dtype, layout, element});
  }
  return rules;
}

std::vector<OperandRule> sm80_mixed_input_rules(DType dtype, bool is_a) {
  std::vector<OperandRule> rules = sm80_input_rules(dtype);
  std::erase_if(rules, [&](const OperandRule& rule) {
    return rule.layout != (is_a ? LayoutRule::row : LayoutRule::column) ||
           (is_packed(dtype) && rule.alignment < 4);
  });
  return rules;
}

std::vector<OperandRule> sm80_conv_input_rules(DType dtype) {
  std::vector<OperandRule> rules;
  for (const OperandRule& rule : sm80_input_rules(dtype)) {
    rules.push_back(rule);
    if (rule.alignment == widest_access && byte_width(dtype) < 8)
      rules.push_back({dtype, rule.layout, 8});
  }
  return rules;
}

std::vector<OperandRule> sm80_output_rules(DType dtype) {
  return {OperandRule{dtype, LayoutRule::row, widest_access},
          OperandRule{dtype, LayoutRule::column, widest_access},
          OperandRule{dtype, LayoutRule::any, static_cast<std::uint8_t>(byte_width(dtype))}};
}

std::vector<OperandRule> sm80_grouped_output_rules(DType dtype) {
  const auto element = static_cast<std::uint8_t>(byte_width(dtype));
  std::vector<OperandRule> rules = sm80_output_rules(dtype);
  rules.insert(rules.end() - 1,
               {{dtype, LayoutRule::row, element}, {dtype, LayoutRule::column, element}});
  return rules;
}

// --- tiles --------------------------------------------------------------------------------------

abi::ConvolutionKind kind_of(Sm80Conv conv) noexcept {
  constexpr abi::ConvolutionKind kinds[] = {
      abi::ConvolutionKind::none,  abi::ConvolutionKind::fprop, abi::ConvolutionKind::fprop,
      abi::ConvolutionKind::dgrad, abi::ConvolutionKind::dgrad, abi::ConvolutionKind::wgrad,
      abi::ConvolutionKind::wgrad, abi::ConvolutionKind::dgrad, abi::ConvolutionKind::dgrad};
  return kinds[static_cast<std::size_t>(conv)];
}

int dimensions_of(Sm80Conv conv) noexcept {
  if (conv == Sm80Conv::none) return 0;
  return static_cast<int>(conv) % 2 == 1 ? 2 : 3;
}

std::vector<Sm80Tile> sm80_tiles(const OperandRules& rules, const Sm80GroupForm& form,
                                 Sm80Conv conv) {
  std::vector<Sm80Tile> tiles;
  const auto offer = [&](const TileShape& shape, std::uint8_t mma_k) {
    Sm80Tile tile = tile_of(shape, mma_k, rules);
    tile.indexed = form.indexed;
    tile.clears_outside = form.clears_outside;
    tile.conv = conv;
    abi::Sm80Design design = sm80_design(rules, tile);
    if (form != Sm80GroupForm{}) design.groups = abi::GroupSchedule::device;
    const bool has_room = operation::product_count(rules.math) == 1 ||
                          abi::accumulators_per_thread(design) < 64 || abi::k_steps(design) <= 2;
    if (abi::is_legal(design) && has_room && has_room_for_copies(design)) tiles.push_back(tile);
  };
  if (rules.a.dtype == DType::float64) {
    for (const TileShape& shape : wide_double_shapes) offer(shape, wide_double_k);
  }
  for (const TileShape& shape : shapes_of(rules)) offer(shape, 0);
  return tiles;
}

Sm80Tile with_split(Sm80Tile tile, abi::SplitMode mode, std::uint16_t slices) noexcept {
  tile.split = mode;
  tile.slices = slices;
  return tile;
}

Sm80Tile with_groups(Sm80Tile tile, abi::GroupSchedule schedule) noexcept {
  tile.groups = schedule;
  return tile;
}

std::optional<Sm80Tile> scheduled_tile(const Sm80Tile& tile, const OperandRules& rules,
                                       abi::GroupSchedule schedule) noexcept {
  const Sm80Tile scheduled = with_groups(tile, schedule);
  return abi::is_legal(sm80_design(rules, scheduled)) ? std::optional(scheduled) : std::nullopt;
}

Sm80GroupForm group_form(const Groups& groups) noexcept {
  Sm80GroupForm form{.clears_outside = clears_outside(groups)};
  if (groups.have_indices())
    form.indexed =
        groups.ragged == Ragged::n ? abi::IndexedExtent::columns : abi::IndexedExtent::rows;
  return form;
}

bool is_turned_sm80(const OperandRules& rules, const Sm80Tile& tile) noexcept {
  if (tile.conv != Sm80Conv::none) return false;
  if (tile.indexed != abi::IndexedExtent::none) return tile.indexed == abi::IndexedExtent::columns;
  return rules.out.layout == LayoutRule::column;
}

std::optional<LayoutRule> layout_along(abi::IndexedExtent indexed) noexcept {
  if (indexed == abi::IndexedExtent::none) return std::nullopt;
  return indexed == abi::IndexedExtent::rows ? LayoutRule::column : LayoutRule::row;
}

bool takes_indices(const OperandRules& rules, abi::IndexedExtent indexed) noexcept {
  const auto along = layout_along(indexed);
  if (!along) return true;
  const bool is_rows = indexed == abi::IndexedExtent::rows;
  return (is_rows ? rules.a.layout == LayoutRule::row : rules.b.layout == LayoutRule::column) &&
         rules.out.layout != *along && (!rules.has_c || rules.c.layout != *along);
}

bool has_scales_of_codes(const OperandRules& rules) noexcept {
  const bool is_a = abi::is_code(abi_type(rules.a.dtype));
  const CompanionRules& of_numbers = is_a ? rules.b_companions : rules.a_companions;
  const bool are_used = rules.a_companions.are_used() || rules.b_companions.are_used();
  return !are_used || (is_mixed_sm80(rules.a.dtype, rules.b.dtype) && !of_numbers.are_used());
}

abi::Sm80Design sm80_design(const OperandRules& rules, const Sm80Tile& tile) noexcept {
  const bool turns = is_turned_sm80(rules, tile);
  const OperandRule& first = turns ? rules.b : rules.a;
  const OperandRule& second = turns ? rules.a : rules.b;
  // k is adjacent in a row-major A and a column-major B. If the kernel computes the transpose, the
  // column-major B is its A.
  const LayoutRule first_k = turns ? LayoutRule::column : LayoutRule::row;
  const LayoutRule second_k = turns ? LayoutRule::row : LayoutRule::column;
  const OperandRule& c = rules.has_c ? rules.c : rules.out;
  return {.a = abi_type(first.dtype),
          .b = abi_type(second.dtype),
          .c = abi_type(c.dtype),
          .out = abi_type(rules.out.dtype),
          .accumulator = abi_type(rules.accumulator),
          .math = sm80_math(rules.a.dtype, rules.b.dtype, rules.accumulator, rules.math)
                      .value_or(abi::MmaMath::native),
          .a_major = first.layout == first_k ? abi::Major::k : abi::Major::extent,
          .b_major = second.layout == second_k ? abi::Major::k : abi::Major::extent,
          .a_vector_bytes = first.alignment,
          .b_vector_bytes = second.alignment,
          .c_vector_bytes = column_vector(c, turns),
          .out_vector_bytes = column_vector(rules.out, turns),
          .tile_m = tile.m,
          .tile_n = tile.n,
          .tile_k = tile.k,
          .warps_m = tile.warps_m,
          .warps_n = tile.warps_n,
          .warps_k = tile.warps_k,
          .stages = tile.stages,
          .split = tile.split,
          .raster = tile.raster,
          .has_c = rules.has_c,
          .mma_k = tile.mma_k,
          .groups = tile.groups,
          .has_indices = tile.indexed != abi::IndexedExtent::none,
          .clears_outside = tile.clears_outside,
          .convolution = kind_of(tile.conv),
          .dimensions = dimensions_of(tile.conv),
          .has_phases = has_phases(tile.conv),
          .scales = companion_types(abi::is_code(abi_type(rules.a.dtype)) ? rules.a_companions
                                                                          : rules.b_companions)};
}

abi::Sm80Design sm80_design(const Kernel& kernel) noexcept {
  return sm80_design(kernel.operands(), sm80_tile(kernel));
}

Sm80Tile sm80_tile(const Kernel& kernel) noexcept { return kernel.design().as<Sm80Tile>(); }

Sm80Extents sm80_extents(const OperandRules& rules, const Sm80Tile& tile,
                         const GemmProblem& problem) noexcept {
  const bool turns = is_turned_sm80(rules, tile);
  const auto rows = static_cast<unsigned>(turns ? problem.n : problem.m);
  const auto columns = static_cast<unsigned>(turns ? problem.m : problem.n);
  return {.rows = rows,
          .columns = columns,
          .tile_rows = has_phases(tile.conv) ? tile_rows_of_phases(problem, tile.m)
                                             : abi::tiles_along(rows, tile.m),
          .tile_columns = abi::tiles_along(columns, tile.n)};
}

GroupTileExtents extents_in_out(const Sm80Tile& tile, const OperandRules& rules) noexcept {
  const bool turns = is_turned_sm80(rules, tile);
  return {.m = turns ? tile.n : tile.m, .n = turns ? tile.m : tile.n};
}

// --- texts --------------------------------------------------------------------------------------

std::string tile_text(const Sm80Tile& tile) {
  return fmt::format("{}x{}x{}", tile.m, tile.n, tile.k);
}

std::string warps_text(const Sm80Tile& tile) {
  return fmt::format("{}x{}x{}", tile.warps_m, tile.warps_n, tile.warps_k);
}

SplitWord split_word(const Sm80Tile& tile) noexcept {
  return {.mode = tile.split, .slices = tile.slices};
}

std::string split_text(const Sm80Tile& tile) { return split_text(split_word(tile)); }

std::string_view schedule_text(abi::GroupSchedule schedule) noexcept {
  constexpr std::string_view texts[] = {"", "device", "persistent", "host", "list"};
  return texts[static_cast<std::size_t>(schedule)];
}

}  // namespace gemmery::templates
