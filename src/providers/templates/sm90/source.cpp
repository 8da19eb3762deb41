// SPDX-License-Identifier: Apache-2.0
// The source of sm90 kernels: a design, an epilogue and a call of the device half.
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "providers/templates/companions.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/name_words.hpp"
#include "providers/templates/repacking.hpp"
#include "providers/templates/sm90/design.hpp"
#include "providers/templates/sm90/family.hpp"
#include "providers/templates/sm90/ptx_text.hpp"

namespace gemmery::templates {
namespace {

std::string_view text_of(abi::Major major) { return major == abi::Major::k ? "k" : "extent"; }

std::string_view text_of(abi::DType dtype) { return name(static_cast<DType>(dtype)); }

std::string_view text_of(abi::Schedule schedule) {
  constexpr std::string_view texts[] = {"cooperative", "ping_pong", "rotation"};
  static_assert(std::size(texts) == std::size(sm90_schedules));
  return texts[static_cast<std::size_t>(schedule)];
}

std::string_view text_of(abi::SplitMode split) {
  constexpr std::string_view texts[] = {"none", "serial", "parallel", "stream"};
  return texts[static_cast<std::size_t>(split)];
}

std::string_view text_of(abi::MmaMath math) {
  constexpr std::string_view texts[] = {"native", "tf32", "tf32x3",   "bf16x3", "bf16",  "saturate",
                                        "f16x3",  "f16",  "promoted", "bf16x6", "bf16x9"};
  return texts[static_cast<std::size_t>(math)];
}

std::string groups_text(const abi::Sm90Design& d) {
  std::string text = d.has_groups ? ", .has_groups = true" : "";
  if (d.has_group_table) text += ", .has_group_table = true";
  if (d.has_list) text += ", .has_list = true";
  if (d.clears_outside) text += ", .clears_outside = true";
  if (d.scatters_rows) text += ", .scatters_rows = true";
  if (d.gathers_rows) text += ", .gathers_rows = true";
  return text;
}

std::string conv_text(const abi::Sm90Design& d) {
  constexpr std::string_view kinds[] = {"none", "fprop", "dgrad", "wgrad"};
  if (d.conv == abi::Sm90Conv::none) return {};
  return fmt::format(",\n    .conv = Sm90Conv::{}, .dimensions = {}{}",
                     kinds[static_cast<std::size_t>(d.conv)], d.dimensions,
                     d.has_phases        ? ", .has_phases = true"
                     : d.has_tap_columns ? ", .has_tap_columns = true"
                                         : "");
}

std::string scales_text(const abi::Sm90Design& d) {
  constexpr std::string_view vectors[] = {"none", "rows", "columns", "both"};
  if (!abi::has_scales(d)) return {};
  std::string text = fmt::format(",\n    .scale_vectors = ScaleVectors::{}, .scaled_k = {}",
                                 vectors[static_cast<std::size_t>(d.scale_vectors)], d.scaled_k);
  if (d.a_scales.are_used()) text += ",\n    .a_scales = " + companions_text(d.a_scales);
  if (d.b_scales.are_used()) text += ",\n    .b_scales = " + companions_text(d.b_scales);
  return text;
}

std::string_view parameters_of(const abi::Sm90Design& d) {
  if (d.has_phases) return "Sm90PhaseParams";
  if (d.conv != abi::Sm90Conv::none) return "Sm90ConvParams";
  if (abi::has_scales(d)) return d.has_groups ? "Sm90ScaledGroupParams" : "Sm90ScaledParams";
  if (d.has_group_table) return "Sm90GroupTableParams";
  if (d.has_list)
    return d.has_c ? "Sm90ListParams<ProblemListWithC>" : "Sm90ListParams<ProblemList>";
  if (d.gathers_rows) return "Sm90GatherParams";
  if (d.scatters_rows) return "Sm90ScatterParams";
  return d.has_groups ? "Sm90GroupedParams" : "Sm90Params";
}

std::string design_text(const abi::Sm90Design& d) {
  return fmt::format(
      "{{.a = DType::{}, .b = DType::{}, .accumulator = DType::{}, .math = MmaMath::{},\n"
      "    .c = DType::{}, .out = DType::{}, .a_major = Major::{}, .b_major = Major::{},\n"
      "    .tile_m = {}, .tile_n = {}, .cluster_m = {}, .cluster_n = {},\n"
      "    .schedule = Schedule::{}, .raster = {{.along = Along::{}, .band = {}}},\n"
      "    .stages = {}, .has_c = {}, .split_k = {}, .adds_vector = {}, .program_bytes = {},\n"
      "    .split = SplitMode::{}, .out_access = {}, .has_any_c = {}, .a_by_registers = {},\n"
      "    .has_adjacent_rows = {}{}{}{}{}}}",
      text_of(d.a), text_of(d.b), text_of(d.accumulator), text_of(d.math), text_of(d.c),
      text_of(d.out), text_of(d.a_major), text_of(d.b_major), d.tile_m, d.tile_n, d.cluster_m,
      d.cluster_n, text_of(d.schedule), d.raster.along == abi::Along::m ? "m" : "n", d.raster.band,
      d.stages, d.has_c, d.split_k, d.adds_vector, d.program_bytes, text_of(d.split), d.out_access,
      d.has_any_c, d.a_by_registers, d.has_adjacent_rows,
      d.has_pointers ? ", .has_pointers = true" : "", groups_text(d), conv_text(d), scales_text(d));
}

// --- the kernels ---------------------------------------------------------------------------------

constexpr std::string_view entry_name = "gemmery_sm90";
constexpr std::string_view repack_name = "gemmery_sm90_repack";

// The kernel that repacks operands; empty if none is repacked.
std::string repack_text(const OperandRules& rules, bool has_pointers) {
  if (!is_repacked(rules.a) && !is_repacked(rules.b)) return {};
  const abi::RepackDesign design = repack_design(rules, has_pointers);
  return fmt::format(
      "\n"
      "#include <device/copy/repack.cuh>\n\n"
      "constexpr RepackDesign repacking{{.element_bytes = {}, .has_any_strides = {}{}}};\n"
      "extern \"C\" __global__ void __launch_bounds__(repack_threads)\n"
      "{}(const __grid_constant__ RepackParams params) {{\n"
      "    gemmery::device::repack<repacking>(params);\n"
      "}}\n",
      design.element_bytes, design.has_any_strides,
      design.has_pointers ? ", .has_pointers = true" : "", repack_name);
}

// The headers of phases that only some kernels have.
std::string phase_includes(const abi::Sm90Design& design) {
  const std::pair<bool, std::string_view> phases[] = {
      {design.has_groups, "gemm/sm90_group_tiles"},
      {design.has_groups, "gemm/sm90_group_tail"},
      {design.has_list, "gemm/sm90_listed_tiles"},
      {design.clears_outside, "gemm/sm90_outside"},
      {design.gathers_rows, "gemm/sm90_gather"},
      {abi::rounds_rows(design), "gemm/sm90_rounding"},
      {abi::has_scales(design), "gemm/sm90_scales"},
      {design.split != abi::SplitMode::none, "schedule/persistent_shares"},
      {design.split != abi::SplitMode::none, "pipeline/warpgroup_parts"},
      {design.split != abi::SplitMode::none && design.split_k == 1, "pipeline/register_parts"},
      {design.split != abi::SplitMode::none && design.split_k > 1, "pipeline/value_parts"},
      {design.split_k > 1, "pipeline/split_sums"},
      {abi::transposes_a(design) || abi::transposes_b(design), "gemm/sm90_transpose"},
      {abi::splits_operands(design.math), "gemm/sm90_operand_parts"},
      {design.a_by_registers && !abi::decodes_a(design), "copy/register_operand"},
      {abi::decodes_a(design), "copy/decoded_operand"},
      {design.has_adjacent_rows, "epilogue/row_pair_store"}};
  std::string text;
  for (const auto& [is_needed, header] : phases)
    if (is_needed) text += fmt::format("#include <device/{}.cuh>\n", header);
  return text;
}

}  // namespace

runtime::EmittedSource Sm90Family::emit(const Kernel& kernel, Target) const {
  const abi::Sm90Design design = sm90_design(kernel);
  EpilogueText epilogue =
      epilogue_text(kernel, is_turned(kernel), parameters_of(design), "sm90_gemm");
  const std::string repacking = repack_text(kernel.operands(), design.has_pointers);
  const bool has_program = kernel.epilogue() != default_epilogue;
  if (has_program) {
    epilogue.parameters = fmt::format(
        "Sm90ProgramParams<{}, tma_inputs(Epilogue::input, Epilogue::inputs, "
        "stored_design(design)).count>",
        epilogue.parameters);
  }
  return {.text = fmt::format(
              "// {}\n"
              "{}"
              "{}"
              "#include <device/gemm/{}.cuh>\n"
              "{}\n"
              "using namespace gemmery::abi;\n"
              "constexpr Sm90Design design{};\n"
              "static_assert(thread_count(design) == {} && shared_bytes(design) == {}, \"host and "
              "device disagree\");\n\n"
              "{}"
              "extern \"C\" __global__ void __launch_bounds__(thread_count(design), 1)\n"
              "{}(const __grid_constant__ {} params) {{\n"
              "    gemmery::device::{}(params);\n"
              "}}\n"
              "{}",
              class_line(kernel.operands()), epilogue.comment,
              wgmma_text(design) + (has_program ? std::string() : results_text(design)),
              has_program ? "sm90_program" : "sm90", phase_includes(design), design_text(design),
              abi::thread_count(design), abi::shared_bytes(design), epilogue.head, entry_name,
              epilogue.parameters, epilogue.call, repacking),
          .entry = std::string(entry_name),
          .max_dynamic_shared_bytes = abi::launch_shared_bytes(design),
          .options = {},
          .preparation = repacking.empty() ? "" : std::string(repack_name)};
}

}  // namespace gemmery::templates
