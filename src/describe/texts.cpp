// SPDX-License-Identifier: Apache-2.0
// Descriptions as text, in the spelling of a user's program.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gemmery/describe_conv.hpp>

namespace gemmery::describe {
namespace {

std::string_view name_of(EpilogueFunctor::Kind kind) {
  switch (kind) {
    case EpilogueFunctor::Kind::linear_combination:
      return "LinearCombination";
    case EpilogueFunctor::Kind::linear_combination_clamp:
      return "LinearCombinationClamp";
    case EpilogueFunctor::Kind::fast_linear_combination_clamp:
      return "FastLinearCombinationClamp";
    case EpilogueFunctor::Kind::linear_combination_generic:
      return "LinearCombinationGeneric";
    case EpilogueFunctor::Kind::visitor:
      return "EpilogueVisitTree";
  }
  return "unknown";
}

std::string_view name_of(epilogue::Activation activation) {
  constexpr std::string_view texts[] = {"identity", "relu", "leaky_relu", "tanh",
                                        "sigmoid",  "silu", "hardswish",  "gelu"};
  return texts[static_cast<std::size_t>(activation)];
}

}  // namespace

std::string to_string(const MathInstruction& instruction) {
  return fmt::format("MathInstruction([{}], {}, {}, {}, {}, {})",
                     fmt::join(instruction.instruction_shape, ", "), name(instruction.element_a),
                     name(instruction.element_b), name(instruction.element_accumulator),
                     name(instruction.opcode_class), name(instruction.math_operation));
}

std::string to_string(const TileDescription& tile) {
  return fmt::format("TileDescription([{}], {}, [{}], {})", fmt::join(tile.threadblock_shape, ", "),
                     tile.stages, fmt::join(tile.warp_count, ", "),
                     to_string(tile.math_instruction));
}

std::string to_string(const TensorDescription& tensor) {
  return fmt::format("TensorDescription({}, {}, {})", name(tensor.element), name(tensor.layout),
                     tensor.alignment);
}

std::string to_string(const EpilogueFunctor& functor) {
  std::string first;
  if (functor.kind == EpilogueFunctor::Kind::linear_combination_generic)
    first = fmt::format("{}, ", name_of(functor.activation));
  if (functor.program) first = fmt::format("\"{}\", ", functor.program->text());
  return fmt::format("{}({}{}, {}, {}, {})", name_of(functor.kind), first,
                     name(functor.element_output), functor.epilogue_vector_length,
                     name(functor.element_accumulator), name(functor.element_compute));
}

std::string to_string(const GemmDescription& description) {
  return fmt::format(
      "GemmOperationUniversal({},\n  {},\n  A={},\n  B={},\n  C={},\n  {},\n  {}, visitor={})",
      description.compute_capability, to_string(description.tile_description),
      to_string(description.A), to_string(description.B), to_string(description.C),
      to_string(description.epilogue_functor), name(description.swizzling_functor),
      description.visitor);
}

std::string to_string(const Conv2dDescription& description) {
  return fmt::format(
      "Conv2dOperation({}, {}, {},\n  {},\n  A={},\n  B={},\n  C={},\n  {},\n  {},\n  {})",
      name(description.conv_kind), name(description.iterator_algorithm),
      description.compute_capability, to_string(description.tile_description),
      to_string(description.A), to_string(description.B), to_string(description.C),
      name(description.stride_support), to_string(description.epilogue_functor),
      name(description.swizzling_functor));
}

std::string to_string(const ReductionDescription& description) {
  return fmt::format("ReductionOperation([{}], C={}, {}, {}, {}, {})",
                     fmt::join(description.shape, ", "), to_string(description.C),
                     name(description.element_accumulator), name(description.element_compute),
                     to_string(description.epilogue_functor), description.count);
}

}  // namespace gemmery::describe
