// SPDX-License-Identifier: Apache-2.0
// The table of unit roundoffs.
#include "providers/host/error_model.hpp"

#include <algorithm>

#include "operation/types.hpp"
#include "providers/host/number.hpp"

namespace gemmery::host {
namespace {

// The error of operands as they enter products (DESIGN §12). For tf32 it is the hardware's
// truncation, unless a kernel rounds beforehand; the larger error counts.
double input_unit_of(Math math) {
  switch (math) {
    case Math::native:
    case Math::saturate:
    case Math::fp8_fast:
    case Math::fp8_promoted:
      return 0;
    case Math::tf32:
      return 0x1p-10;
    case Math::tf32x3:
      return 0x1p-21;
    case Math::f16:
      return 0x1p-11;
    case Math::bf16:
      return 0x1p-8;
    case Math::f16x3:
      return 0x1p-21;  // two parts of 11 bits each, the product of the low parts left out
    case Math::bf16x3:
      return 0x1p-15;  // two parts of 8 bits each, likewise
    case Math::bf16x6:
      return 0x1p-24;  // three parts are the number; products of parts 2 and 3 are left out
    case Math::bf16x9:
      return 0x1p-32;  // 0, but for numbers so small that their parts are subnormal (pack.hpp)
  }
  return 1;
}

bool uses_tensor_cores(const DeclaredMath& declared) {
  return declared.arithmetic == Arithmetic::tensor_core ||
         (declared.math != Math::native && declared.math != Math::saturate);
}

double accumulator_unit_of(const DeclaredMath& declared) {
  if (declared.math == Math::fp8_fast || declared.math == Math::fp8_promoted) return 0x1p-13;
  switch (declared.accumulator) {
    case DType::int32:
      return 0;
    case DType::float64:
      return 0x1p-53;
    case DType::float16:
      return 0x1p-11;
    default:
      return uses_tensor_cores(declared) ? 0x1p-23 : 0x1p-24;
  }
}

// The blocks of k that are accumulated separately: in sm80 the 8 or 16 k of one mma, in sm90 the 32
// k of a stage of split float32 or the 128 k of 8-bit floats.
ErrorModel::Blocks blocks_of(const DeclaredMath& declared) {
  if (declared.math == Math::fp8_promoted)
    return {.unit = 0x1p-23, .widest = 128, .narrowest = 128, .more = 2};
  const bool is_split = operation::product_count(declared.math) > 1;
  if (is_split && declared.arithmetic == Arithmetic::tensor_core)
    return {.unit = 0x1p-24, .widest = 32, .narrowest = 8, .more = 4};
  return {};
}

// Gradual underflow loses up to half the smallest subnormal. Instructions on bfloat16 flush to
// zero, which loses up to the smallest normal number (VDPBF16PS in the architecture's manual:
// denormals are flushed whatever MXCSR says).
double underflow_of(const DeclaredMath& declared) {
  switch (declared.accumulator) {
    case DType::int32:
      return 0;
    case DType::float64:
      return 0x1p-1074;
    case DType::float16:
      return 0x1p-25;
    default:
      break;
  }
  const bool is_bfloat16 = declared.a == DType::bfloat16 || declared.b == DType::bfloat16 ||
                           bit_width(declared.a) == 8 || bit_width(declared.b) == 8 ||
                           uses_tensor_cores(declared);
  return is_bfloat16 ? 0x1p-126 : 0x1p-149;
}

}  // namespace

DeclaredMath declared_math(const OperandRules& rules, Arithmetic arithmetic, bool adds_vector) {
  return {rules.a.dtype, rules.b.dtype, rules.accumulator, rules.math, arithmetic, adds_vector};
}

double ErrorModel::product_factor(std::int64_t k) const {
  const auto terms = static_cast<double>(k);
  if (blocks.unit == 0) return 2 * input_unit + (terms + 2) * accumulator_unit;
  const double count = std::ceil(terms / blocks.narrowest);
  return 2 * input_unit + (std::min(terms, blocks.widest) + blocks.more) * accumulator_unit +
         (count + 2) * blocks.unit;
}

double decoding_factor(const GemmProblem& problem) noexcept {
  std::size_t count = 0;
  for (const OperandCompanions* const companions : {&problem.a_companions, &problem.b_companions})
    if (!companions->program)  // whose deviations include those of scales
      count += companions->scales.size() + (companions->zero_point ? 1 : 0);
  // The small excess is that of products of several roundings.
  const double unit = problem.accumulator == DType::float64 ? 0x1p-53 : 0x1p-24;
  return static_cast<double>(count) * unit * 1.0001;
}

ErrorModel error_model(const DeclaredMath& declared) {
  const bool computes_in_double = epilogue_compute_type(declared.accumulator) == DType::float64;
  return {.input_unit = input_unit_of(declared.math),
          .accumulator_unit = accumulator_unit_of(declared),
          .blocks = blocks_of(declared),
          .underflow = underflow_of(declared),
          .accumulator_max = rounding_of(declared.accumulator).largest,
          .compute_max = rounding_of(computes_in_double ? DType::float64 : DType::float32).largest};
}

PackedValue magnitude_of(const DeclaredMath& declared) noexcept {
  if (declared.accumulator == DType::int32) return PackedValue::itself;
  if (declared.math == Math::f16) return PackedValue::f16_magnitude;
  if (declared.math == Math::f16x3) return PackedValue::f16x3_magnitude;
  if (operation::product_count(declared.math) > 1) return PackedValue::split_magnitude;
  return declared.arithmetic == Arithmetic::tensor_core ? PackedValue::aligned_magnitude
                                                        : PackedValue::magnitude;
}

}  // namespace gemmery::host
