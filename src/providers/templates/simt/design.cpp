// SPDX-License-Identifier: Apache-2.0
// The table of tiles, and kernels to and from their names.
#include "providers/templates/simt/design.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "providers/templates/abi_type.hpp"
#include "providers/templates/companions.hpp"
#include "providers/templates/name_words.hpp"

namespace gemmery::templates {
namespace {

// docs/performance-simt.md says which tile is fastest for which problem on an H200. Large tiles
// come first. If k_slices is above 1, groups of threads share a tile and split k, so that small
// outputs still fill the device. The last four are for outputs with few rows or few columns.
constexpr SimtTile f32_tiles[] = {
    {.m = 128, .n = 128, .k = 8, .thread_m = 8, .thread_n = 8, .k_slices = 1, .stages = 4},
    {.m = 128, .n = 128, .k = 16, .thread_m = 8, .thread_n = 8, .k_slices = 1, .stages = 3},
    {.m = 64, .n = 64, .k = 16, .thread_m = 8, .thread_n = 4, .k_slices = 2, .stages = 3},
    {.m = 32, .n = 32, .k = 64, .thread_m = 4, .thread_n = 4, .k_slices = 4, .stages = 3},
    {.m = 16, .n = 32, .k = 64, .thread_m = 4, .thread_n = 4, .k_slices = 8, .stages = 4},
    {.m = 32, .n = 16, .k = 64, .thread_m = 4, .thread_n = 4, .k_slices = 8, .stages = 4},
    {.m = 8, .n = 32, .k = 64, .thread_m = 4, .thread_n = 4, .k_slices = 8, .stages = 4},
    {.m = 32, .n = 8, .k = 64, .thread_m = 4, .thread_n = 4, .k_slices = 8, .stages = 4},
};
constexpr SimtTile f64_tiles[] = {
    {.m = 128, .n = 128, .k = 8, .thread_m = 8, .thread_n = 8, .k_slices = 1, .stages = 4},
    {.m = 64, .n = 64, .k = 16, .thread_m = 4, .thread_n = 4, .k_slices = 1, .stages = 3},
    {.m = 32, .n = 32, .k = 16, .thread_m = 4, .thread_n = 4, .k_slices = 2, .stages = 3},
    {.m = 8, .n = 32, .k = 32, .thread_m = 4, .thread_n = 4, .k_slices = 8, .stages = 4},
    {.m = 32, .n = 8, .k = 32, .thread_m = 4, .thread_n = 4, .k_slices = 8, .stages = 4},
};
constexpr SimtTile integer_tiles[] = {
    {.m = 128, .n = 128, .k = 32, .thread_m = 8, .thread_n = 8, .k_slices = 1, .stages = 3},
    {.m = 64, .n = 64, .k = 32, .thread_m = 4, .thread_n = 4, .k_slices = 1, .stages = 2},
    {.m = 32, .n = 32, .k = 64, .thread_m = 4, .thread_n = 4, .k_slices = 2, .stages = 3},
    {.m = 8, .n = 32, .k = 128, .thread_m = 4, .thread_n = 4, .k_slices = 8, .stages = 4},
    {.m = 32, .n = 8, .k = 128, .thread_m = 4, .thread_n = 4, .k_slices = 8, .stages = 4},
};

// Tiles for groups with many and with few rows, and for convolutions. Not timed on a device.
constexpr SimtTile f32_form_tiles[] = {
    {.m = 64, .n = 64, .k = 16, .thread_m = 8, .thread_n = 4, .k_slices = 2, .stages = 3},
    {.m = 16, .n = 32, .k = 64, .thread_m = 4, .thread_n = 4, .k_slices = 8, .stages = 4},
};
constexpr SimtTile f64_form_tiles[] = {
    {.m = 64, .n = 64, .k = 16, .thread_m = 4, .thread_n = 4, .k_slices = 1, .stages = 3},
    {.m = 32, .n = 32, .k = 16, .thread_m = 4, .thread_n = 4, .k_slices = 2, .stages = 3},
};
constexpr SimtTile integer_form_tiles[] = {
    {.m = 64, .n = 64, .k = 32, .thread_m = 4, .thread_n = 4, .k_slices = 1, .stages = 2},
    {.m = 32, .n = 32, .k = 64, .thread_m = 4, .thread_n = 4, .k_slices = 2, .stages = 3},
};

constexpr DType f32_outputs[] = {DType::float32, DType::float16, DType::bfloat16};
constexpr DType f64_outputs[] = {DType::float64, DType::float32};
constexpr DType integer_outputs[] = {DType::int32, DType::float32, DType::int8, DType::uint8};

abi::Contiguity contiguity(LayoutRule rule) noexcept {
  switch (rule) {
    case LayoutRule::row:
      return abi::Contiguity::row_major;
    case LayoutRule::column:
      return abi::Contiguity::column_major;
    case LayoutRule::any:
      return abi::Contiguity::none;
  }
  return abi::Contiguity::none;
}

int word_bytes(SimtArithmetic arithmetic) noexcept {
  return arithmetic == SimtArithmetic::f64 ? 8 : 4;
}

// Suffixes of names, in the order of SimtForm.
constexpr std::array<std::string_view, simt_form_count> form_words{
    "",      "groups", "groups-rows", "groups-columns", "groups-host", "groups-list",
    "fprop", "dgrad",  "wgrad",       "dgrad-strided"};

abi::IndexedExtent indexed_extent(SimtForm form) noexcept {
  switch (form) {
    case SimtForm::indexed_rows:
      return abi::IndexedExtent::rows;
    case SimtForm::indexed_columns:
      return abi::IndexedExtent::columns;
    default:
      return abi::IndexedExtent::none;
  }
}

abi::ConvolutionKind convolution_kind(SimtForm form) noexcept {
  switch (form) {
    case SimtForm::fprop:
      return abi::ConvolutionKind::fprop;
    case SimtForm::dgrad:
    case SimtForm::strided_dgrad:
      return abi::ConvolutionKind::dgrad;
    case SimtForm::wgrad:
      return abi::ConvolutionKind::wgrad;
    default:
      return abi::ConvolutionKind::none;
  }
}

// The same tiles for each form.
template <std::size_t count>
struct TilesOfForms {
  std::array<std::array<SimtTile, count>, simt_form_count> of{};

  constexpr explicit TilesOfForms(const SimtTile (&tiles)[count]) {
    for (std::size_t form = 0; form < simt_form_count; ++form) {
      for (std::size_t i = 0; i < count; ++i) {
        of[form][i] = tiles[i];
        of[form][i].form = static_cast<SimtForm>(form);
      }
    }
  }
};
constexpr TilesOfForms f32_forms(f32_form_tiles);
constexpr TilesOfForms f64_forms(f64_form_tiles);
constexpr TilesOfForms integer_forms(integer_form_tiles);

// --- names --------------------------------------------------------------------------------------

std::optional<SimtTile> read_tile(std::string_view block, std::string_view thread,
                                  std::string_view slices, std::string_view stages) {
  const auto extents = read_integers(block, 3);
  const auto of_thread = read_integers(thread, 2);
  const auto k_slices = read_tagged(slices, "k");
  const auto stage_count = read_tagged(stages, "s");
  if (!extents || !of_thread || !k_slices || !stage_count) return std::nullopt;
  if ((*extents)[2] > 255 || (*of_thread)[0] > 255 || (*of_thread)[1] > 255 || *k_slices > 255 ||
      *stage_count > 255) {
    return std::nullopt;
  }
  return SimtTile{.m = static_cast<std::uint16_t>((*extents)[0]),
                  .n = static_cast<std::uint16_t>((*extents)[1]),
                  .k = static_cast<std::uint8_t>((*extents)[2]),
                  .thread_m = static_cast<std::uint8_t>((*of_thread)[0]),
                  .thread_n = static_cast<std::uint8_t>((*of_thread)[1]),
                  .k_slices = static_cast<std::uint8_t>(*k_slices),
                  .stages = static_cast<std::uint8_t>(*stage_count)};
}

bool is_nonzero(const SimtTile& tile) {
  return tile.m != 0 && tile.n != 0 && tile.k != 0 && tile.thread_m != 0 && tile.thread_n != 0 &&
         tile.k_slices != 0;
}

}  // namespace

std::optional<SimtArithmetic> simt_arithmetic(DType a, DType b, DType accumulator) noexcept {
  using abi::detail::accepts_operand_or_codes;
  if (!accepts_operand_or_codes(abi_type(accumulator), abi_type(a)) ||
      !accepts_operand_or_codes(abi_type(accumulator), abi_type(b))) {
    return std::nullopt;
  }
  if (accumulator == DType::float64) return SimtArithmetic::f64;
  return accumulator == DType::int32 ? SimtArithmetic::integer : SimtArithmetic::f32;
}

std::span<const SimtTile> simt_tiles(SimtArithmetic arithmetic, SimtForm form) noexcept {
  const auto pick = [&](const auto& plain, const auto& forms) -> std::span<const SimtTile> {
    if (form == SimtForm::gemm) return plain;
    return forms.of[static_cast<std::size_t>(form)];
  };
  switch (arithmetic) {
    case SimtArithmetic::f32:
      return pick(f32_tiles, f32_forms);
    case SimtArithmetic::f64:
      return pick(f64_tiles, f64_forms);
    case SimtArithmetic::integer:
      return pick(integer_tiles, integer_forms);
  }
  return {};
}

std::span<const DType> simt_outputs(SimtArithmetic arithmetic) noexcept {
  switch (arithmetic) {
    case SimtArithmetic::f32:
      return f32_outputs;
    case SimtArithmetic::f64:
      return f64_outputs;
    case SimtArithmetic::integer:
      return integer_outputs;
  }
  return {};
}

SimtInputRules simt_input_rules(DType dtype) noexcept {
  const auto element = static_cast<std::uint8_t>(byte_width(dtype));
  if (is_packed(dtype))
    return {.rules = {OperandRule{dtype, LayoutRule::any, element}}, .count = 1};
  return {.rules = {OperandRule{dtype, LayoutRule::row, widest_access},
                    OperandRule{dtype, LayoutRule::column, widest_access},
                    OperandRule{dtype, LayoutRule::row, element},
                    OperandRule{dtype, LayoutRule::column, element},
                    OperandRule{dtype, LayoutRule::any, element}},
          .count = 5};
}

std::array<OperandRule, 3> simt_output_rules(DType dtype) noexcept {
  return {OperandRule{dtype, LayoutRule::row, widest_access},
          OperandRule{dtype, LayoutRule::column, widest_access},
          OperandRule{dtype, LayoutRule::any, static_cast<std::uint8_t>(byte_width(dtype))}};
}

SimtTile simt_tile(const Kernel& kernel) noexcept { return kernel.design().as<SimtTile>(); }

abi::SimtDesign simt_design(const OperandRules& rules, const SimtTile& tile) noexcept {
  const OperandRule& c = rules.has_c ? rules.c : rules.out;
  return {.a = abi_type(rules.a.dtype),
          .b = abi_type(rules.b.dtype),
          .c = abi_type(c.dtype),
          .out = abi_type(rules.out.dtype),
          .accumulator = abi_type(rules.accumulator),
          .a_contiguity = contiguity(rules.a.layout),
          .b_contiguity = contiguity(rules.b.layout),
          .c_contiguity = contiguity(c.layout),
          .out_contiguity = contiguity(rules.out.layout),
          .a_vector_bytes = rules.a.alignment,
          .b_vector_bytes = rules.b.alignment,
          .c_vector_bytes = c.alignment,
          .out_vector_bytes = rules.out.alignment,
          .tile_m = tile.m,
          .tile_n = tile.n,
          .tile_k = tile.k,
          .thread_m = tile.thread_m,
          .thread_n = tile.thread_n,
          .k_slices = tile.k_slices,
          .stages = tile.stages,
          .has_c = rules.has_c,
          .indexed = indexed_extent(tile.form),
          .convolution = convolution_kind(tile.form),
          .has_phases = tile.form == SimtForm::strided_dgrad,
          .a_companions = companion_types(rules.a_companions),
          .b_companions = companion_types(rules.b_companions)};
}

abi::SimtDesign simt_design(const Kernel& kernel) noexcept {
  return simt_design(kernel.operands(), simt_tile(kernel));
}

std::int64_t simt_run_elements(const OperandRule& rule, const SimtTile& tile,
                               SimtArithmetic arithmetic) noexcept {
  if (rule.layout == LayoutRule::any) return 1;
  const int per_thread = rule.layout == LayoutRule::row ? tile.thread_n : tile.thread_m;
  const int chunk = std::min(per_thread, 16 / word_bytes(arithmetic));
  return std::min<std::int64_t>(chunk, rule.alignment / static_cast<int>(byte_width(rule.dtype)));
}

std::string tile_text(const SimtTile& tile) {
  return fmt::format("{}x{}x{}", tile.m, tile.n, tile.k);
}

std::string simt_name(const Kernel& kernel) {
  const SimtTile tile = simt_tile(kernel);
  return gemm_name(
      fmt::format("simt{}", simt_version), kernel.operands(),
      fmt::format("{}x{}x{}_{}x{}_k{}_s{}{}{}", tile.m, tile.n, tile.k, tile.thread_m,
                  tile.thread_n, tile.k_slices, tile.stages, tile.form == SimtForm::gemm ? "" : "_",
                  form_words[static_cast<std::size_t>(tile.form)]),
      kernel.epilogue());
}

std::optional<SimtParts> parse_simt_name(std::string_view name) {
  const std::string head = fmt::format("simt{}", simt_version);
  auto name_parts = read_gemm_name(name, head, 5, NamedCompanions::with_programs);
  const auto* const word =
      name_parts ? std::ranges::find(form_words, name_parts->design[4]) : form_words.end();
  const bool has_form = word != form_words.end() && !word->empty();
  if (!has_form) name_parts = read_gemm_name(name, head, 4, NamedCompanions::with_programs);
  if (!name_parts) return std::nullopt;
  const auto& words = name_parts->design;
  auto tile = read_tile(words[0], words[1], words[2], words[3]);
  if (tile && has_form) tile->form = static_cast<SimtForm>(word - form_words.begin());
  if (!tile || !is_nonzero(*tile)) return std::nullopt;
  const OperandRules& rules = name_parts->rules;
  const bool is_scaled = rules.a_companions.are_used() || rules.b_companions.are_used() ||
                         rules.programs != OperandProgramsId::none;
  if (is_scaled && tile->form != SimtForm::gemm && tile->form != SimtForm::ordered)
    return std::nullopt;
  const bool has_codes = is_packed(rules.a.dtype) || is_packed(rules.b.dtype);
  if (has_codes && tile->form != SimtForm::gemm) return std::nullopt;
  if (!abi::is_legal(simt_design(name_parts->rules, *tile))) return std::nullopt;
  return SimtParts{.rules = name_parts->rules, .tile = *tile, .epilogue = name_parts->epilogue};
}

}  // namespace gemmery::templates
