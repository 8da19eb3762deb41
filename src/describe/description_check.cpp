// SPDX-License-Identifier: Apache-2.0
// The checks, in the order of the fields of a description.
#include "describe/description_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "describe/combinations.hpp"
#include "describe/described_kernel.hpp"
#include "describe/functor_program.hpp"
#include "describe/refusal.hpp"
#include "providers/templates/simt/design.hpp"
#include "providers/templates/sm80/design.hpp"

namespace gemmery::describe {
namespace {

constexpr int capabilities[] = {80, 86, 87, 89, 90, 100, 103, 110, 120, 121};

void check_capability(const GemmDescription& description, const Combination& combination) {
  const int asked = description.compute_capability;
  if (std::ranges::find(capabilities, asked) == std::end(capabilities))
    refuse_unsupported("compute_capability",
                       fmt::format("one of {}", fmt::join(capabilities, ", ")),
                       std::to_string(asked));
  if (asked < combination.least_capability)
    refuse_unsupported("compute_capability",
                       fmt::format("at least {} for {}", combination.least_capability,
                                   name(combination.element_a)),
                       std::to_string(asked));
}

void check_element(std::string_view operand, const TensorDescription& tensor, DType expected) {
  if (storage_type(tensor.element) == expected) return;
  refuse_unsupported(fmt::format("{}.element", operand),
                     fmt::format("{} for this math instruction", name(expected)),
                     std::string(name(tensor.element)));
}

void check_output(const GemmDescription& description, const Combination& combination) {
  const DType accumulator = storage_type(combination.element_accumulator);
  const bool is_simt = combination.opcode_class == OpcodeClass::Simt;
  const auto outputs = is_simt ? templates::simt_outputs(*templates::simt_arithmetic(
                                     combination.a, combination.b, accumulator))
                               : templates::sm80_outputs(accumulator);
  const DType asked = storage_type(description.C.element);
  if (std::ranges::find(outputs, asked) != outputs.end()) return;
  std::vector<std::string_view> served;
  for (const DType output : outputs) served.push_back(name(output));
  refuse_unsupported(
      "C.element",
      fmt::format("one of {} for accumulators of {}", fmt::join(served, ", "), name(accumulator)),
      std::string(name(description.C.element)));
}

bool is_plain(Layout layout) noexcept {
  return layout == Layout::RowMajor || layout == Layout::ColumnMajor;
}

void check_layout(std::string_view operand, const TensorDescription& tensor) {
  if (is_plain(tensor.layout)) return;
  refuse_unsupported(
      fmt::format("{}.layout", operand), "RowMajor or ColumnMajor",
      std::string(name(tensor.layout)),
      "ColumnMajorInterleaved32 of A and C go with RowMajorInterleaved32 of B; the Tensor layouts "
      "are those of convolutions");
}

void check_interleaved(const GemmDescription& description) {
  for (const auto& [operand, tensor] :
       {std::pair{"A", description.A}, {"B", description.B}, {"C", description.C}}) {
    if (bit_width(storage_type(tensor.element)) == 8) continue;
    refuse_unsupported(fmt::format("{}.element", operand), "int8 or uint8 in an interleaved layout",
                       std::string(name(tensor.element)));
  }
}

}  // namespace

void check_alignment(std::string_view operand, const TensorDescription& tensor) {
  const int bytes = static_cast<int>(byte_width(storage_type(tensor.element)));
  const int most = 16 / bytes;
  const int asked = tensor.alignment;
  if (asked >= 1 && asked <= most && (asked & (asked - 1)) == 0) return;
  refuse(fmt::format("{}.alignment", operand),
         fmt::format("a power of two of at most {} elements of {} (16 bytes)", most,
                     name(tensor.element)),
         std::to_string(asked));
}

void check_description(const GemmDescription& description) {
  const TileDescription& tile = description.tile_description;
  const Combination& combination = find_combination(tile.math_instruction);
  check_capability(description, combination);
  check_element("A", description.A, combination.a);
  check_element("B", description.B, combination.b);
  check_output(description, combination);
  if (is_interleaved(description)) {
    check_interleaved(description);
  } else {
    check_layout("A", description.A);
    check_layout("B", description.B);
    check_layout("C", description.C);
  }
  check_alignment("A", description.A);
  check_alignment("B", description.B);
  check_alignment("C", description.C);
  const bool is_visitor = description.epilogue_functor.kind == EpilogueFunctor::Kind::visitor;
  if (description.visitor != is_visitor)
    refuse("visitor",
           is_visitor ? "true for an EpilogueVisitTree" : "false for a functor that is no visitor",
           description.visitor ? "true" : "false");
  check_functor(description.epilogue_functor, combination.element_accumulator, description.C);
  if (is_of_strided_dgrad(description.swizzling_functor))
    refuse_unsupported("swizzling_functor", "one for GEMMs, such as IdentitySwizzle1",
                       std::string(name(description.swizzling_functor)),
                       "a Conv2dOperation of a dgrad takes it");
  if (tile.cluster_shape != std::array{1, 1, 1})
    refuse_unsupported("tile_description.cluster_shape", "[1, 1, 1]",
                       fmt::format("[{}]", fmt::join(tile.cluster_shape, ", ")),
                       "kernels with clusters are found by get_kernels: the family sm90");
}

}  // namespace gemmery::describe
