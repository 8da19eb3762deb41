// SPDX-License-Identifier: Apache-2.0
// The rules of element types, accumulator and math.
#include "operation/types.hpp"

#include <gemmery/error.hpp>

#include <string>
#include <utility>

#include "operation/refusal.hpp"

namespace gemmery::operation {
namespace {

// Elements that share bytes are read; of them only e2m1 is written, by programs.
bool is_operand_type(std::string_view operand, DType dtype) {
  const bool is_product = operand == "A" || operand == "B";
  return dtype != DType::float8_e8m0fnu && dtype != DType::uint32 &&
         (is_product || !is_packed(dtype) || (operand == "out" && dtype == DType::float4_e2m1fn));
}

std::string type_text(DType dtype) { return std::string(name(dtype)); }

// wgmma and mma.sync can accumulate products of 8-bit floats in float16, but a single product may
// exceed its range.
std::string accumulator_hint(DType a, DType b, DType accumulator) {
  const auto is_byte_float = [](DType dtype) {
    return is_floating(dtype) && bit_width(dtype) == 8;
  };
  return accumulator == DType::float16 && is_byte_float(a) && is_byte_float(b)
             ? "a product of e4m3 may be 200704, one of e5m2 more, and float16 ends at 65504"
             : "";
}

// Products of floats accumulate in floats, of integers in int32; f64 only with f64.
void check_accumulator(const ProductTypes& types) {
  const auto& [a, b, accumulator, math, are_decoded] = types;
  const bool is_integer_product = is_integer(a) && is_integer(b) && !are_decoded;
  if (is_integer(a) != is_integer(b) && !are_decoded) {
    refuse("B", "an integer type together with integer A, a floating type together with floating A",
           type_text(b) + " with A of " + type_text(a),
           "convert one of them, or give the integers a scale", ErrorKind::unsupported);
  }
  const auto is_wrong_width = [&](DType dtype) {
    return is_integer(dtype) && (are_decoded ? bit_width(dtype) > 8 : bit_width(dtype) != 8);
  };
  if (is_wrong_width(a) || is_wrong_width(b)) {
    refuse("A", are_decoded ? "integers of at most 8 bits" : "int8 or uint8 for integer products",
           type_text(a) + " and " + type_text(b), "", ErrorKind::unsupported);
  }
  const bool has_double = a == DType::float64 || b == DType::float64;
  const bool fits = is_integer_product ? accumulator == DType::int32
                    : has_double       ? accumulator == DType::float64
                    : a == DType::float16 && b == DType::float16
                        ? accumulator == DType::float32 || accumulator == DType::float16 ||
                              accumulator == DType::float64
                        : accumulator == DType::float32 || accumulator == DType::float64;
  if (fits) return;
  refuse("accumulator_type",
         is_integer_product ? "int32 for integer products"
         : has_double       ? "float64 for products of float64"
                            : "float32 (float64, or float16 for products of float16)",
         type_text(accumulator) + " for " + type_text(a) + " times " + type_text(b),
         accumulator_hint(a, b, accumulator));
}

void check_math(Math math, DType a, DType b) {
  if (math == Math::native) return;
  const bool needs_f32 =
      product_count(math) > 1 || math == Math::tf32 || math == Math::f16 || math == Math::bf16;
  const bool is_f32 = a == DType::float32 && b == DType::float32;
  const bool is_fp8 = bit_width(a) == 8 && bit_width(b) == 8 && is_floating(a);
  const bool is_int8 = is_integer(a);
  const bool fits = needs_f32 ? is_f32 : math == Math::saturate ? is_int8 : is_fp8;
  if (fits) return;
  refuse("math",
         needs_f32                ? "float32 operands for this math"
         : math == Math::saturate ? "integer operands for saturate"
                                  : "fp8 operands for this math",
         std::string(name(math)) + " with " + type_text(a) + " times " + type_text(b));
}

// The extent of an operand beside k, and its stride.
struct GroupLines {
  Ragged extent;
  std::int64_t stride;
};

// Groups that share a tensor begin with a byte.
void check_packed_operand(std::string_view operand, const MatrixType& matrix,
                          const GemmProblem& problem, const GroupLines& lines,
                          std::int64_t k_stride) {
  const std::int64_t whole = whole_elements(matrix.dtype);
  if (whole == 1) return;
  if (problem.convolution)
    refuse(operand, "elements of whole bytes in a convolution", type_text(matrix.dtype), "",
           ErrorKind::unsupported);
  if (!problem.groups || problem.groups->sizes == GroupSizes::masked ||
      problem.groups->sizes == GroupSizes::list)
    return;
  const Ragged ragged = problem.groups->ragged;
  const std::int64_t stride = ragged == Ragged::k      ? k_stride
                              : ragged == lines.extent ? lines.stride
                                                       : 0;
  if (stride * problem.groups->alignment % whole == 0) return;
  refuse(operand,
         "groups that begin with a byte: an alignment of groups that is a multiple of " +
             std::to_string(whole),
         "alignment " + std::to_string(problem.groups->alignment) + " with adjacent elements of " +
             type_text(matrix.dtype),
         "promise the alignment, or store the operand the other way around");
}

}  // namespace

int product_count(Math math) noexcept {
  switch (math) {
    case Math::tf32x3:
    case Math::bf16x3:
    case Math::f16x3:
      return 3;
    case Math::bf16x6:
      return 6;
    case Math::bf16x9:
      return 9;
    default:
      return 1;
  }
}

void check_operand_type(std::string_view operand, DType dtype) {
  if (is_operand_type(operand, dtype)) return;
  refuse(operand, "an element type that a gemm takes by itself", type_text(dtype),
         is_packed(dtype) ? "types of fewer than 8 bits are for A and B, e2m1 for out"
         : dtype == DType::float8_e8m0fnu ? "scales belong to an operand"
                                          : "",
         ErrorKind::unsupported);
}

namespace {

// A byte of out is of one group.
void check_packed_out_of_groups(const GemmProblem& problem, const std::string& type) {
  if (!problem.groups) return;
  const Groups& groups = *problem.groups;
  if (groups.share_tensors() && groups.ragged == Ragged::n)
    refuse("out", "elements of whole bytes where groups divide columns", type,
           "let them divide rows", ErrorKind::unsupported);
  if (groups.outside == OutsideGroups::zero)
    refuse("outside", "untouched beside results of " + type, "zero", "fill out with zeros before",
           ErrorKind::unsupported);
}

// Two elements of out are a byte, which one thread stores.
void check_packed_out(const GemmProblem& problem) {
  const std::int64_t whole = whole_elements(problem.out.dtype);
  if (whole == 1) return;
  const std::string type = type_text(problem.out.dtype);
  if (problem.epilogue == default_epilogue)
    refuse("out", "an epilogue's program for results of " + type,
           type + " with the default program",
           "scale the accumulators to the type's range: D = accum * scale", ErrorKind::unsupported);
  if (problem.convolution)
    refuse("out", "elements of whole bytes in a convolution", type, "", ErrorKind::unsupported);
  check_packed_out_of_groups(problem, type);
  if (problem.out.column_stride != 1 && problem.n > 1)
    refuse("out", "adjacent columns of results of " + type,
           "a distance of " + std::to_string(problem.out.column_stride), "store it row by row",
           ErrorKind::unsupported);
}

}  // namespace

void check_packed_operands(const GemmProblem& problem) {
  check_packed_out(problem);
  check_packed_operand("A", problem.a, problem, {Ragged::m, problem.a.row_stride},
                       problem.a.column_stride);
  check_packed_operand("B", problem.b, problem, {Ragged::n, problem.b.column_stride},
                       problem.b.row_stride);
}

void check_products(const ProductTypes& types) {
  check_accumulator(types);
  check_math(types.math, types.a, types.b);
}

}  // namespace gemmery::operation
