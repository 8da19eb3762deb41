// SPDX-License-Identifier: Apache-2.0
// The source of skinny kernels: a design, an epilogue and a call of the device half.
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/name_words.hpp"
#include "providers/templates/skinny/design.hpp"
#include "providers/templates/skinny/family.hpp"

namespace gemmery::templates {
namespace {

std::string_view text_of(abi::DType dtype) { return name(static_cast<DType>(dtype)); }

std::string design_text(const abi::SkinnyDesign& d) {
  return fmt::format(
      "{{.a = DType::{}, .b = DType::{}, .c = DType::{}, .out = DType::{}, .accumulator = "
      "DType::{},\n"
      "    .b_major = Major::{}, .a_vector_bytes = {}, .b_vector_bytes = {}, .c_vector_bytes = {}, "
      ".out_vector_bytes = {},\n"
      "    .rows = {}, .threads = {}, .loads = {}, .lanes = {}, .slots = {}, .splits_k = {}, "
      ".has_c = {}}}",
      text_of(d.a), text_of(d.b), text_of(d.c), text_of(d.out), text_of(d.accumulator),
      d.b_major == abi::Major::k ? "k" : "extent", d.a_vector_bytes, d.b_vector_bytes,
      d.c_vector_bytes, d.out_vector_bytes, d.rows, d.threads, d.loads, d.lanes, d.slots,
      d.splits_k, d.has_c);
}

constexpr std::string_view entry_name = "gemmery_skinny";

}  // namespace

runtime::EmittedSource SkinnyFamily::emit(const Kernel& kernel, Target target) const {
  const abi::SkinnyDesign design = skinny_design(kernel);
  const EpilogueText epilogue =
      epilogue_text(kernel, is_turned(skinny_tile(kernel)), "SkinnyParams", "skinny_gemm");
  // An emitted program needs additional registers.
  const std::string blocks =
      kernel.epilogue() == default_epilogue
          ? fmt::format("least_blocks_per_multiprocessor(design, {})", target.architecture)
          : "1";
  return {.text = fmt::format(
              "// {}\n"
              "{}"
              "#include <device/gemm/skinny.cuh>\n\n"
              "using namespace gemmery::abi;\n"
              "constexpr SkinnyDesign design{};\n"
              "static_assert(tile_columns(design) == {} && shared_bytes(design) == {}, \"host and "
              "device disagree\");\n\n"
              "{}"
              "extern \"C\" __global__ void __launch_bounds__(design.threads, {})\n"
              "{}(const __grid_constant__ {} params) {{\n"
              "    gemmery::device::{}(params);\n"
              "}}\n",
              class_line(kernel.operands()), epilogue.comment, design_text(design),
              abi::tile_columns(design), abi::shared_bytes(design), epilogue.head, blocks,
              entry_name, epilogue.parameters, epilogue.call),
          .entry = std::string(entry_name),
          .max_dynamic_shared_bytes = abi::shared_bytes(design),
          .options = {}};
}

}  // namespace gemmery::templates
