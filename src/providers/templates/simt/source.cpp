// SPDX-License-Identifier: Apache-2.0
// The source of simt kernels: a design, an epilogue and a call of the device half.
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "providers/templates/companions.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/name_words.hpp"
#include "providers/templates/operand_programs.hpp"
#include "providers/templates/simt/design.hpp"
#include "providers/templates/simt/family.hpp"

namespace gemmery::templates {
namespace {

std::string_view text_of(abi::Contiguity contiguity) {
  switch (contiguity) {
    case abi::Contiguity::none:
      return "none";
    case abi::Contiguity::row_major:
      return "row_major";
    case abi::Contiguity::column_major:
      return "column_major";
  }
  return "none";
}

// The text of a design field; fields with their default value are left out.
std::string_view text_of(abi::IndexedExtent indexed) {
  switch (indexed) {
    case abi::IndexedExtent::none:
      return "";
    case abi::IndexedExtent::rows:
      return ", .indexed = IndexedExtent::rows";
    case abi::IndexedExtent::columns:
      return ", .indexed = IndexedExtent::columns";
  }
  return "";
}

std::string_view text_of(abi::ConvolutionKind kind) {
  switch (kind) {
    case abi::ConvolutionKind::none:
      return "";
    case abi::ConvolutionKind::fprop:
      return ", .convolution = ConvolutionKind::fprop";
    case abi::ConvolutionKind::dgrad:
      return ", .convolution = ConvolutionKind::dgrad";
    case abi::ConvolutionKind::wgrad:
      return ", .convolution = ConvolutionKind::wgrad";
  }
  return "";
}

std::string_view text_of(abi::DType dtype) { return name(static_cast<DType>(dtype)); }

// The companions of one operand.
std::string text_of(std::string_view field, const abi::CompanionTypes& types) {
  if (!types.are_used()) return {};
  return fmt::format(",\n    .{} = {}", field, companions_text(types));
}

std::string design_text(const abi::SimtDesign& d) {
  return fmt::format(
      "{{.a = DType::{}, .b = DType::{}, .c = DType::{}, .out = DType::{}, .accumulator = "
      "DType::{},\n"
      "    .a_contiguity = Contiguity::{}, .b_contiguity = Contiguity::{}, .c_contiguity = "
      "Contiguity::{}, .out_contiguity = Contiguity::{},\n"
      "    .a_vector_bytes = {}, .b_vector_bytes = {}, .c_vector_bytes = {}, .out_vector_bytes = "
      "{},\n"
      "    .tile_m = {}, .tile_n = {}, .tile_k = {}, .thread_m = {}, .thread_n = {}, .k_slices = "
      "{}, .stages = {}, .has_c = {}{}{}{}{}{}}}",
      text_of(d.a), text_of(d.b), text_of(d.c), text_of(d.out), text_of(d.accumulator),
      text_of(d.a_contiguity), text_of(d.b_contiguity), text_of(d.c_contiguity),
      text_of(d.out_contiguity), d.a_vector_bytes, d.b_vector_bytes, d.c_vector_bytes,
      d.out_vector_bytes, d.tile_m, d.tile_n, d.tile_k, d.thread_m, d.thread_n, d.k_slices,
      d.stages, d.has_c, text_of(d.indexed), text_of(d.convolution),
      d.has_phases ? ", .has_phases = true" : "", text_of("a_companions", d.a_companions),
      text_of("b_companions", d.b_companions));
}

constexpr std::string_view entry_name = "gemmery_simt";

// The parameters of a kernel without those of its epilogue, and the device function that takes
// them.
struct ParamsText {
  std::string_view type;
  std::string_view call;
  std::string_view header = "simt";
};
ParamsText params_text(SimtForm form, const abi::SimtDesign& design, bool has_programs) {
  const bool has_c = design.has_c;
  if (has_programs)
    return form == SimtForm::ordered
               ? ParamsText{"SimtProgramGroupParams<Programs>", "simt_grouped_gemm", "simt_grouped"}
               : ParamsText{"SimtProgramParams<Programs>", "simt_program_gemm", "simt_programs"};
  if (design.a_companions.are_used() || design.b_companions.are_used())
    return form == SimtForm::ordered
               ? ParamsText{"SimtScaledGroupParams", "simt_grouped_gemm", "simt_grouped"}
               : ParamsText{"SimtScaledParams", "simt_scaled_gemm", "simt_scaled"};
  switch (form) {
    case SimtForm::gemm:
      return {"SimtParams", "simt_gemm"};
    case SimtForm::ordered:
      return {"SimtGroupedParams", "simt_grouped_gemm", "simt_grouped"};
    case SimtForm::indexed_rows:
    case SimtForm::indexed_columns:
      return {"SimtIndexedParams", "simt_grouped_gemm", "simt_grouped"};
    case SimtForm::in_table:
      return {"SimtGroupTableParams", "simt_grouped_gemm", "simt_grouped"};
    case SimtForm::listed:
      return {has_c ? "ProblemListWithC" : "ProblemList", "simt_list_gemm", "simt_listed"};
    case SimtForm::strided_dgrad:
      return {"SimtPhaseParams", "simt_phase_gemm", "simt_phases"};
    default:
      return {"SimtConvParams", "simt_conv_gemm"};
  }
}

}  // namespace

runtime::EmittedSource SimtFamily::emit(const Kernel& kernel, Target) const {
  const abi::SimtDesign design = simt_design(kernel);
  const bool is_default = kernel.epilogue() == default_epilogue;
  const std::string programs = operand_programs_text(kernel.operands());
  const ParamsText params = params_text(simt_tile(kernel).form, design, !programs.empty());
  const EpilogueText epilogue = epilogue_text(kernel, false, params.type, params.call);
  // A program needs additional registers: with two blocks per multiprocessor they would spill.
  const std::string_view blocks =
      is_default && programs.empty() ? "least_blocks_per_multiprocessor(design)" : "1";
  return {.text = fmt::format(
              "// {}\n"
              "{}"
              "#include <device/gemm/{}.cuh>\n\n"
              "using namespace gemmery::abi;\n"
              "constexpr SimtDesign design{};\n"
              "static_assert(thread_count(design) == {} && shared_bytes(design) == {}, \"host and "
              "device disagree\");\n\n"
              "{}"
              "{}"
              "extern \"C\" __global__ void\n"
              "__launch_bounds__(thread_count(design), {})\n"
              "{}(const __grid_constant__ {} params) {{\n"
              "    gemmery::device::{}(params);\n"
              "}}\n",
              class_line(kernel.operands()), epilogue.comment, params.header, design_text(design),
              abi::thread_count(design), abi::shared_bytes(design), programs, epilogue.head, blocks,
              entry_name, epilogue.parameters, epilogue.call),
          .entry = std::string(entry_name),
          .max_dynamic_shared_bytes = abi::shared_bytes(design),
          .options = {}};
}

}  // namespace gemmery::templates
