// SPDX-License-Identifier: Apache-2.0
// The fields that a convolution adds to a description.
#include "describe/conv_description.hpp"

#include <algorithm>
#include <string>

#include "describe/described_kernel.hpp"
#include "describe/description_check.hpp"
#include "describe/refusal.hpp"

namespace gemmery::describe {
namespace {

bool is_simt(const Conv2dDescription& description) noexcept {
  return description.tile_description.math_instruction.opcode_class == OpcodeClass::Simt;
}

bool is_strided_dgrad(const Conv2dDescription& description) noexcept {
  return description.conv_kind == ConvKind::dgrad &&
         description.stride_support == StrideSupport::Strided;
}

bool is_of_bytes(const TensorDescription& tensor) noexcept {
  const DType dtype = storage_type(tensor.element);
  return dtype == DType::int8 || dtype == DType::uint8;
}

void check_interleaved(const Conv2dDescription& description) {
  for (const auto& [field, tensor] : {std::pair{"A.element", description.A},
                                      {"B.element", description.B},
                                      {"C.element", description.C}}) {
    if (!is_of_bytes(tensor))
      refuse_unsupported(field, "int8 or uint8 in an interleaved layout",
                         std::string(name(tensor.element)));
  }
}

void check_layouts(const Conv2dDescription& description) {
  if (is_interleaved(description)) return check_interleaved(description);
  for (const auto& [field, tensor] : {std::pair{"A.layout", description.A},
                                      {"B.layout", description.B},
                                      {"C.layout", description.C}}) {
    if (tensor.layout == Layout::TensorNHWC) continue;
    refuse_unsupported(field, "TensorNHWC", std::string(name(tensor.layout)),
                       "TensorNC32HW32 of A and C go with TensorC32RSK32 of B");
  }
}

// Gradients of integers are not supported; PyCUTLASS has no kernels for them either.
void check_kind(const Conv2dDescription& description) {
  if (description.conv_kind == ConvKind::fprop) return;
  const auto refuse_kind = [&](std::string for_what) {
    refuse_unsupported("conv_kind", "fprop " + std::move(for_what),
                       std::string(name(description.conv_kind)),
                       "gemmery.get_kernels finds kernels of ConvArguments for more types");
  };
  if (is_interleaved(description)) refuse_kind("for interleaved layouts");
  if (is_of_bytes(description.A) || is_of_bytes(description.B))
    refuse_kind("for operands of int8 and uint8");
}

void check_algorithm(const Conv2dDescription& description) {
  const IteratorAlgorithm algorithm = description.iterator_algorithm;
  if (algorithm == IteratorAlgorithm::analytic || algorithm == IteratorAlgorithm::optimized) return;
  if (description.conv_kind != ConvKind::fprop)
    refuse_unsupported("iterator_algorithm",
                       "analytic or optimized for " + std::string(name(description.conv_kind)),
                       std::string(name(algorithm)));
  if (is_simt(description))
    refuse_unsupported("iterator_algorithm", "analytic or optimized for Simt",
                       std::string(name(algorithm)));
}

void check_swizzle(const Conv2dDescription& description) {
  if (!is_of_strided_dgrad(description.swizzling_functor) || is_strided_dgrad(description)) return;
  refuse_unsupported("swizzling_functor", "that of a dgrad with StrideSupport::Strided, or another",
                     std::string(name(description.swizzling_functor)));
}

Layout row_if(bool is_row) noexcept { return is_row ? Layout::RowMajor : Layout::ColumnMajor; }

SwizzlingFunctor plain_swizzle(SwizzlingFunctor swizzle) noexcept {
  switch (swizzle) {
    case SwizzlingFunctor::StridedDgradIdentitySwizzle1:
      return SwizzlingFunctor::IdentitySwizzle1;
    case SwizzlingFunctor::StridedDgradIdentitySwizzle4:
      return SwizzlingFunctor::IdentitySwizzle4;
    case SwizzlingFunctor::StridedDgradHorizontalSwizzle:
      return SwizzlingFunctor::HorizontalSwizzle;
    default:
      return swizzle;
  }
}

// --- rules --------------------------------------------------------------------------------------

OperandRule by_element(const OperandRule& rule) noexcept {
  return {rule.dtype, LayoutRule::any, static_cast<std::uint8_t>(byte_width(rule.dtype))};
}

// Convolution kernels store vectors of 16 bytes, or single elements.
OperandRule whole_rows(const OperandRule& rule) noexcept {
  return rule.alignment == 16 ? rule : by_element(rule);
}

// simt copies 16 bytes, or single elements.
OperandRule widest_or_element(OperandRule rule) noexcept {
  if (rule.alignment != 16) rule.alignment = static_cast<std::uint8_t>(byte_width(rule.dtype));
  return rule;
}

}  // namespace

bool is_interleaved(const Conv2dDescription& description) noexcept {
  return description.A.layout == Layout::TensorNC32HW32 &&
         description.B.layout == Layout::TensorC32RSK32 &&
         description.C.layout == Layout::TensorNC32HW32;
}

GemmDescription as_gemm(const Conv2dDescription& description) {
  const ConvKind kind = description.conv_kind;
  GemmDescription gemm{.compute_capability = description.compute_capability,
                       .tile_description = description.tile_description,
                       .A = description.A,
                       .B = description.B,
                       .C = description.C,
                       .epilogue_functor = description.epilogue_functor,
                       .swizzling_functor = plain_swizzle(description.swizzling_functor)};
  gemm.A.layout = row_if(kind != ConvKind::wgrad);
  gemm.B.layout = row_if(kind != ConvKind::fprop);
  gemm.C.layout = Layout::RowMajor;
  return gemm;
}

OperandRules conv_rules(const Conv2dDescription& description, bool has_c, bool is_bias) {
  OperandRules rules = rules_of(as_gemm(description), has_c);
  rules.out = whole_rows(rules.out);
  if (has_c) rules.c = is_bias ? by_element(rules.c) : whole_rows(rules.c);
  if (!is_simt(description)) return rules;
  rules.a = widest_or_element(rules.a);
  rules.b =
      description.conv_kind == ConvKind::fprop ? widest_or_element(rules.b) : by_element(rules.b);
  return rules;
}

Convolution own_convolution(const Conv2dDescription& description) {
  Convolution convolution{.kind = description.conv_kind};
  if (is_strided_dgrad(description)) convolution.stride = {1, 2, 2};
  return convolution;
}

void check_conv_description(const Conv2dDescription& description) {
  if (description.epilogue_functor.kind == EpilogueFunctor::Kind::visitor)
    refuse_unsupported("epilogue_functor", "a functor for convolutions", "a visitor",
                       "gemmery::ConvArguments take any program");
  check_layouts(description);
  check_kind(description);
  check_algorithm(description);
  check_swizzle(description);
  check_description(as_gemm(description));
}

}  // namespace gemmery::describe
