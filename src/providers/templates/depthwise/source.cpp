// SPDX-License-Identifier: Apache-2.0
// The source of depthwise kernels: a design, an epilogue and a call of the device code.
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "device/abi/depthwise_params.hpp"
#include "providers/templates/depthwise/design.hpp"
#include "providers/templates/depthwise/family.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/name_words.hpp"

namespace gemmery::templates {
namespace {

std::string_view text_of(abi::DType dtype) { return name(static_cast<DType>(dtype)); }

std::string_view kind_name(abi::DepthwiseKind kind) {
  return kind == abi::DepthwiseKind::strided_dgrad ? "strided_dgrad" : kind_text(kind);
}

std::string design_text(const abi::DepthwiseDesign& d) {
  return fmt::format(
      "{{.a = DType::{}, .b = DType::{}, .c = DType::{}, .out = DType::{}, .accumulator = "
      "DType::{},\n"
      "    .kind = DepthwiseKind::{}, .channels = {}, .pixels = {}, .rows = {}, .taps = {}, "
      ".stride = {}, .lanes = {}, .has_c = {}}}",
      text_of(d.a), text_of(d.b), text_of(d.c), text_of(d.out), text_of(d.accumulator),
      kind_name(d.kind), d.channels, d.pixels, d.rows, d.taps, d.stride, d.lanes, d.has_c);
}

constexpr std::string_view entry_name = "gemmery_depthwise";

}  // namespace

runtime::EmittedSource DepthwiseFamily::emit(const Kernel& kernel, Target) const {
  const abi::DepthwiseDesign design = depthwise_design(kernel);
  const std::string_view function = abi::is_wgrad(design) ? "depthwise_wgrad" : "depthwise";
  const EpilogueText epilogue = epilogue_text(kernel, false, "DepthwiseParams", function);
  // An emitted program needs additional registers.
  const std::string_view blocks =
      kernel.epilogue() == default_epilogue ? "depthwise_blocks(design)" : "1";
  return {.text = fmt::format(
              "// {}\n"
              "{}"
              "#include <device/gemm/{}.cuh>\n\n"
              "using namespace gemmery::abi;\n"
              "constexpr DepthwiseDesign design{};\n"
              "static_assert(tile_channels(design) == {} && sizeof(DepthwiseParams) == {}, \"host "
              "and device disagree\");\n\n"
              "{}"
              "extern \"C\" __global__ void __launch_bounds__(depthwise_threads, {})\n"
              "{}(const __grid_constant__ {} params) {{\n"
              "    gemmery::device::{}(params);\n"
              "}}\n",
              class_line(kernel.operands()), epilogue.comment, function, design_text(design),
              abi::tile_channels(design), sizeof(abi::DepthwiseParams), epilogue.head, blocks,
              entry_name, epilogue.parameters, epilogue.call),
          .entry = std::string(entry_name),
          .max_dynamic_shared_bytes = abi::most_depthwise_shared_bytes,
          .options = {}};
}

}  // namespace gemmery::templates
