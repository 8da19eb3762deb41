// SPDX-License-Identifier: Apache-2.0
// The source of sm80 kernels: a design, an epilogue and a call of the device half.
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "providers/templates/companions.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/name_words.hpp"
#include "providers/templates/sm80/design.hpp"
#include "providers/templates/sm80/family.hpp"

namespace gemmery::templates {
namespace {

std::string_view text_of(abi::Major major) { return major == abi::Major::k ? "k" : "extent"; }
std::string_view text_of(abi::DType dtype) { return name(static_cast<DType>(dtype)); }

std::string_view text_of(abi::MmaMath math) {
  constexpr std::string_view texts[] = {"native", "tf32",     "tf32x3", "bf16x3",
                                        "bf16",   "saturate", "f16x3",  "f16"};
  return texts[static_cast<std::size_t>(math)];
}

std::string_view text_of(abi::SplitMode mode) {
  constexpr std::string_view texts[] = {"none", "serial", "parallel", "stream"};
  return texts[static_cast<std::size_t>(mode)];
}

std::string_view text_of(abi::ConvolutionKind kind) {
  constexpr std::string_view texts[] = {"none", "fprop", "dgrad", "wgrad"};
  return texts[static_cast<std::size_t>(kind)];
}

std::string_view text_of(abi::GroupSchedule schedule) {
  constexpr std::string_view texts[] = {"none", "device", "persistent", "host", "list"};
  return texts[static_cast<std::size_t>(schedule)];
}

// Fields that have their default in most designs.
std::string rest_of_design(const abi::Sm80Design& design) {
  std::string text;
  if (design.mma_k > 0) text += fmt::format(", .mma_k = {}", design.mma_k);
  if (design.groups != abi::GroupSchedule::none)
    text += fmt::format(", .groups = GroupSchedule::{}", text_of(design.groups));
  if (design.has_indices) text += ", .has_indices = true";
  if (design.clears_outside) text += ", .clears_outside = true";
  if (design.convolution != abi::ConvolutionKind::none)
    text += fmt::format(",\n    .convolution = ConvolutionKind::{}, .dimensions = {}",
                        text_of(design.convolution), design.dimensions);
  if (design.has_phases) text += ", .has_phases = true";
  if (design.scales.are_used()) text += ",\n    .scales = " + companions_text(design.scales);
  return text;
}

std::string design_text(const abi::Sm80Design& d) {
  return fmt::format(
      "{{.a = DType::{}, .b = DType::{}, .c = DType::{}, .out = DType::{}, .accumulator = "
      "DType::{},\n"
      "    .math = MmaMath::{}, .a_major = Major::{}, .b_major = Major::{},\n"
      "    .a_vector_bytes = {}, .b_vector_bytes = {}, .c_vector_bytes = {}, .out_vector_bytes = "
      "{},\n"
      "    .tile_m = {}, .tile_n = {}, .tile_k = {}, .warps_m = {}, .warps_n = {}, .warps_k = {}, "
      ".stages = {},\n"
      "    .split = SplitMode::{}, .raster = {{.along = Along::{}, .band = {}}}, .has_c = {}{}}}",
      text_of(d.a), text_of(d.b), text_of(d.c), text_of(d.out), text_of(d.accumulator),
      text_of(d.math), text_of(d.a_major), text_of(d.b_major), d.a_vector_bytes, d.b_vector_bytes,
      d.c_vector_bytes, d.out_vector_bytes, d.tile_m, d.tile_n, d.tile_k, d.warps_m, d.warps_n,
      d.warps_k, d.stages, text_of(d.split), d.raster.along == abi::Along::m ? "m" : "n",
      d.raster.band, d.has_c, rest_of_design(d));
}

constexpr std::string_view entry_name = "gemmery_sm80";

// The device half of a kernel.
struct KernelWords {
  std::string_view header;
  std::string_view parameters;
  std::string_view function;
};

KernelWords words_of(const abi::Sm80Design& design) {
  if (design.has_phases) return {"sm80_phases", "Sm80PhaseParams", "sm80_phase_gemm"};
  if (design.convolution != abi::ConvolutionKind::none)
    return {"sm80", "Sm80ConvParams", "sm80_conv_gemm"};
  if (design.scales.are_used())
    return design.groups == abi::GroupSchedule::none
               ? KernelWords{"sm80", "Sm80ScaledParams", "sm80_scaled_gemm"}
               : KernelWords{"sm80_grouped", "Sm80ScaledGroupParams", "sm80_grouped_gemm"};
  if (design.groups == abi::GroupSchedule::none) return {"sm80", "Sm80Params", "sm80_gemm"};
  if (design.groups == abi::GroupSchedule::list)
    return {"sm80_listed", design.has_c ? "ProblemListWithC" : "ProblemList", "sm80_list_gemm"};
  const bool has_table = design.groups == abi::GroupSchedule::host;
  const std::string_view in_order = has_table ? "Sm80GroupTableParams" : "Sm80GroupedParams";
  const std::string_view indexed = has_table ? "Sm80IndexedTableParams" : "Sm80IndexedParams";
  return {"sm80_grouped", design.has_indices ? indexed : in_order, "sm80_grouped_gemm"};
}

// ptxas takes 80 to 110 ms longer for these at -O3, its default, for code that is as fast: on an
// H200 -O2 gave 1.00 of the time for convolutions (42 kernels), 0.80 to 0.90 for codes with scales,
// and 1.00 for others, for some of which it gave up to 1.10 (NVRTC 13.0).
std::vector<std::string> options_of(const abi::Sm80Design& design) {
  if (design.convolution == abi::ConvolutionKind::none && !abi::is_mixed(design)) return {};
  return {"--ptxas-options=-O2"};
}

}  // namespace

runtime::EmittedSource Sm80Family::emit(const Kernel& kernel, Target) const {
  const abi::Sm80Design design = sm80_design(kernel);
  const KernelWords words = words_of(design);
  const EpilogueText epilogue =
      epilogue_text(kernel, is_turned_sm80(kernel.operands(), sm80_tile(kernel)), words.parameters,
                    words.function);
  return {.text = fmt::format(
              "// {}\n"
              "{}"
              "#include <device/gemm/{}.cuh>\n\n"
              "using namespace gemmery::abi;\n"
              "constexpr Sm80Design design{};\n"
              "static_assert(thread_count(design) == {} && shared_bytes(design) == {}, \"host and "
              "device disagree\");\n\n"
              "{}"
              "extern \"C\" __global__ void __launch_bounds__(thread_count(design), 1)\n"
              "{}(const __grid_constant__ {} params) {{\n"
              "    gemmery::device::{}(params);\n"
              "}}\n",
              class_line(kernel.operands()), epilogue.comment, words.header, design_text(design),
              abi::thread_count(design), abi::shared_bytes(design), epilogue.head, entry_name,
              epilogue.parameters, epilogue.call),
          .entry = std::string(entry_name),
          .max_dynamic_shared_bytes = abi::shared_bytes(design),
          .options = options_of(design)};
}

}  // namespace gemmery::templates
