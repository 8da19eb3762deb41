// SPDX-License-Identifier: Apache-2.0
// The supported combinations of types, and the design as the device sees it.
#include "providers/templates/sm90/design.hpp"

#include <algorithm>
#include <array>

#include "device/abi/simt_design.hpp"
#include "providers/templates/companions.hpp"
#include "providers/templates/name_words.hpp"
#include "providers/templates/repacking.hpp"
#include "providers/templates/sm90/convolution.hpp"

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
    case Math::tf32x3:
      return abi::MmaMath::tf32x3;
    case Math::bf16x3:
      return abi::MmaMath::bf16x3;
    case Math::bf16x6:
      return abi::MmaMath::bf16x6;
    case Math::bf16x9:
      return abi::MmaMath::bf16x9;
    default:
      return abi::MmaMath::native;
  }
}

// Both are in the order of forms: kinds, and dimensions within them.
abi::Sm90Conv conv_of(const Sm90Tile& tile) noexcept {
  if (!tile.is_convolution()) return abi::Sm90Conv::none;
  if (tile.has_phases()) return abi::Sm90Conv::dgrad;
  if (tile.has_tap_columns()) return abi::Sm90Conv::wgrad;
  const auto place = static_cast<int>(tile.form) - static_cast<int>(Sm90Form::fprop_1d);
  return static_cast<abi::Sm90Conv>(static_cast<int>(abi::Sm90Conv::fprop) + place / 3);
}
int dimensions_of(const Sm90Tile& tile) noexcept {
  if (!tile.is_convolution()) return 0;
  return (static_cast<int>(tile.form) - static_cast<int>(Sm90Form::fprop_1d)) % 3 + 1;
}

}  // namespace

bool decodes_a_sm90(DType a, DType b) noexcept {
  return abi::is_code(abi_type(a)) && abi::is_half(abi_type(b));
}
bool is_mixed_sm90(DType a, DType b) noexcept {
  return decodes_a_sm90(a, b) || decodes_a_sm90(b, a);
}

namespace {

constexpr DType code_types[] = {DType::int8, DType::uint8, DType::float8_e4m3fn, DType::float8_e5m2,
                                DType::int4, DType::uint4, DType::float4_e2m1fn};
constexpr DType half_types[] = {DType::bfloat16, DType::float16};

// Products of codes and 16-bit floats in either order.
constexpr auto mixed_products = [] {
  std::array<Sm90Products, 2 * std::size(code_types) * std::size(half_types)> all{};
  std::size_t count = 0;
  for (const DType half : half_types) {
    for (const DType code : code_types) {
      all[count++] = {half, code, DType::float32, Math::native};
      all[count++] = {code, half, DType::float32, Math::native};
    }
  }
  return all;
}();

constexpr auto like_products = [] {
  using enum DType;
  return std::to_array<Sm90Products>({
      {bfloat16, bfloat16, float32, Math::native},
      {float16, float16, float32, Math::native},
      {float16, float16, float16, Math::native},
      {float32, float32, float32, Math::tf32},
      {float32, float32, float32, Math::tf32x3},
      {float32, float32, float32, Math::bf16x3},
      {float32, float32, float32, Math::bf16x6},
      {float32, float32, float32, Math::bf16x9},
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
}();

}  // namespace

std::span<const Sm90Products> sm90_products() noexcept {
  static constexpr auto all = [] {
    std::array<Sm90Products, std::size(like_products) + std::size(mixed_products)> both{};
    std::ranges::copy(mixed_products, std::ranges::copy(like_products, both.begin()).out);
    return both;
  }();
  return all;
}

std::optional<Sm90Products> sm90_products_of(const GemmProblem& problem) noexcept {
  const DType a = problem.a.dtype;
  const bool is_byte_float =
      is_floating(a) && bit_width(a) == 8 && !is_mixed_sm90(a, problem.b.dtype);
  const Math math =
      is_byte_float && problem.math == Math::native ? Math::fp8_promoted : problem.math;
  const Sm90Products products{a, problem.b.dtype, problem.accumulator, math};
  const auto all = sm90_products();
  return std::ranges::find(all, products) == all.end() ? std::nullopt : std::optional(products);
}

namespace {

// 8-bit floats are among them for equal operands of at most `most_bits`.
std::span<const DType> result_types(DType a, DType b, int most_bits) noexcept {
  const bool is_mixed = is_mixed_sm90(a, b);
  if (!is_mixed && is_integer(a)) return integer_outputs;
  return std::span(float_outputs).first(!is_mixed && bit_width(a) <= most_bits ? 5 : 3);
}

}  // namespace

std::span<const DType> sm90_outputs(DType a, DType b) noexcept { return result_types(a, b, 16); }
std::span<const DType> sm90_addends(DType a, DType b) noexcept { return result_types(a, b, 8); }

namespace {

bool has_column_major_out(const OperandRules& rules) noexcept {
  return rules.out.layout == LayoutRule::column;
}

}  // namespace

bool is_turned(const OperandRules& rules) noexcept {
  return is_mixed_sm90(rules.a.dtype, rules.b.dtype) ? decodes_a_sm90(rules.b.dtype, rules.a.dtype)
                                                     : has_column_major_out(rules);
}

namespace {

bool is_k_major_a(const OperandRules& rules) noexcept {
  return rules.a.layout != LayoutRule::column;
}
bool is_k_major_b(const OperandRules& rules) noexcept { return rules.b.layout != LayoutRule::row; }

}  // namespace

// If both operands could go through registers, the layout of out decides.
bool is_turned(const OperandRules& rules, const Sm90Tile& tile) noexcept {
  const bool turned = is_turned(rules);
  if (!tile.by_registers || is_mixed_sm90(rules.a.dtype, rules.b.dtype)) return turned;
  const bool is_k_major = turned ? is_k_major_b(rules) : is_k_major_a(rules);
  return is_k_major ? !turned : turned;
}

bool is_turned(const Kernel& kernel) noexcept {
  return is_turned(kernel.operands(), sm90_tile(kernel));
}

bool has_adjacent_rows(const OperandRules& rules, const Sm90Tile& tile) noexcept {
  return is_turned(rules, tile) != has_column_major_out(rules);
}

bool can_store(const OperandRules& rules, const Sm90Tile& tile) noexcept {
  return !has_adjacent_rows(rules, tile) || is_mixed_sm90(rules.a.dtype, rules.b.dtype) ||
         (rules.out.layout != LayoutRule::any &&
          rules.out.alignment >= 2 * byte_width(rules.out.dtype));
}

abi::Sm90Design sm90_design(const OperandRules& rules, const Sm90Tile& tile) noexcept {
  const bool turned = is_turned(rules, tile);
  const bool has_rows = has_adjacent_rows(rules, tile);
  // A is K-major if it is row major, B if it is column major; so are repacked operands of any
  // strides. out^T = B^T A^T.
  const abi::Major a = is_k_major_a(rules) ? abi::Major::k : abi::Major::extent;
  const abi::Major b = is_k_major_b(rules) ? abi::Major::k : abi::Major::extent;
  const auto scales_of = [&](const CompanionRules& companions) {
    return tile.has_scales() ? companion_types(companions) : abi::CompanionTypes{};
  };
  const abi::DType a_type = abi_type(rules.a.dtype);
  const abi::DType b_type = abi_type(rules.b.dtype);
  return {.a = turned ? b_type : a_type,
          .b = turned ? a_type : b_type,
          .accumulator = abi_type(rules.accumulator),
          .math = abi_math(rules.math),
          .c = abi_type(rules.has_c ? rules.c.dtype : rules.out.dtype),
          .out = abi_type(rules.out.dtype),
          .a_major = turned ? b : a,
          .b_major = turned ? a : b,
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
          .has_any_c = rules.has_c && (has_rows || rules.c.layout == LayoutRule::any),
          .a_by_registers = tile.by_registers,
          .has_adjacent_rows = has_rows,
          .has_pointers = tile.has_pointers(),
          .has_groups = tile.has_groups(),
          .has_group_table = tile.has_group_table(),
          .has_list = tile.has_list(),
          .clears_outside = tile.clears_outside(),
          .scatters_rows = tile.scatters_rows(),
          .gathers_rows = tile.gathers_rows(),
          .conv = conv_of(tile),
          .dimensions = dimensions_of(tile),
          .has_phases = tile.has_phases(),
          .has_tap_columns = tile.has_tap_columns(),
          .scale_vectors = tile.scale_vectors,
          .scaled_k = tile.scaled_k,
          .a_scales = scales_of(turned ? rules.b_companions : rules.a_companions),
          .b_scales = scales_of(turned ? rules.a_companions : rules.b_companions)};
}

OperandRules listed_rules(OperandRules rules) noexcept {
  constexpr std::uint8_t widest_of_threads = 8;
  rules.out.alignment = std::min(rules.out.alignment, widest_of_threads);
  if (rules.has_c) rules.c = repacked_rule(rules.c.dtype, LayoutRule::any);
  return rules;
}

bool is_legal(const OperandRules& rules, const Sm90Tile& tile) noexcept {
  const bool is_fitting =
      !tile.is_convolution() ||
      (!is_turned(rules) && rules.a.layout != LayoutRule::any &&
       rules.b.layout != LayoutRule::any && rules.a.alignment == widest_access &&
       rules.b.alignment == widest_access);
  return is_fitting && abi::is_legal(sm90_design(rules, tile));
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
  return with_program(design, program_tensors(kernel.epilogue(), is_turned(kernel)));
}

Sm90Tile sm90_tile(const Kernel& kernel) noexcept { return kernel.design().as<Sm90Tile>(); }

Sm90Extents extents_of(bool is_turned, const GemmProblem& problem) noexcept {
  const auto m = static_cast<unsigned>(sm90_rows(problem));
  const auto n = static_cast<unsigned>(sm90_columns(problem));
  return is_turned ? Sm90Extents{n, m} : Sm90Extents{m, n};
}

GroupTileExtents extents_in_out(const Sm90Tile& tile, bool is_turned) noexcept {
  return {.m = is_turned ? tile.n : tile.m, .n = is_turned ? tile.m : tile.n};
}

Sm90TileCounts count_tiles(const Sm90Extents& extents, const Sm90Tile& tile) noexcept {
  return {abi::tiles_along(extents.rows, tile.m * tile.cluster_m),
          abi::tiles_along(extents.columns, tile.n * tile.cluster_n)};
}

}  // namespace gemmery::templates
