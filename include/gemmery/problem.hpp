// SPDX-License-Identifier: Apache-2.0
// A problem: what a GEMM computes, without pointers. Equal problems get equal answers. One line of
// text spells one problem:
//   gemm 4096x4096x8192 a=bf16 b=bf16:c out=bf16 acc=f32
//   gemm 64x64x64 a=f16 epilogue="D = gelu(accum + bias); peak = amax(D)" bias=f16[n] peak=f32[1]
//   grouped_gemm 8192x2048x7168 groups=16 a=bf16 ends=i32
//   gemm 64x256x512 a=e4m3 scale_a=f32[1x128]:m scale_b=f32[128x128] out=bf16
//   gemm 64x64x64 a=f16 program_a="A = relu(a) * gate" gate=f16[m,k]
//   conv2d_fprop 32x56x56x64 k=64 r=3 s=3 pad=1 stride=2 a=f16
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gemmery/convolution.hpp>
#include <gemmery/dtype.hpp>
#include <gemmery/epilogue.hpp>
#include <gemmery/export.hpp>
#include <gemmery/groups.hpp>
#include <gemmery/scales.hpp>
#include <gemmery/tensor.hpp>

namespace gemmery {

// How products are formed. TF32 is a way to compute, never a storage type.
enum class Math : std::uint8_t {
  native,
  tf32,
  tf32x3,
  bf16x3,
  f16x3,
  f16,
  bf16,
  fp8_fast,
  fp8_promoted,
  saturate,
  bf16x6,
  bf16x9
};
GEMMERY_API std::string_view name(Math math) noexcept;
GEMMERY_API std::optional<Math> parse_math(std::string_view word) noexcept;

// The contiguous direction of a matrix. If both fit, it is row major.
enum class Layout : std::uint8_t { row, column, strided };
GEMMERY_API std::string_view name(Layout layout) noexcept;

// One matrix (or batch of them) of a problem. Strides are in elements; those of extents 0 and 1 are
// stored as 0 and ignored, except strides of extents 0 of a reduction's result. The batch stride is
// `by_pointers` for a batch by pointers, also with a single matrix.
struct MatrixType {
  DType dtype = DType::float32;
  std::uint8_t alignment =
      16;  // bytes that divide every element address of its first row or column: 1, 2, 4, 8 or 16
  std::int64_t batch_stride = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;

  bool has_pointers() const noexcept { return batch_stride == by_pointers; }
  friend bool operator==(const MatrixType&, const MatrixType&) = default;
};

// A scale or a zero point of an operand. A strided one is a batch of matrices with a row for each
// block of the operand's rows (of B's columns) and a column for each block of k; a swizzled one is
// a single row of packed values.
struct CompanionType {
  ScaleBlock block;  // extents that reach over the whole operand are 0
  ScaleLayout layout = ScaleLayout::strided;
  MatrixType values;

  friend bool operator==(const CompanionType&, const CompanionType&) = default;
};

// The program of an operand (operand_program.hpp), interned with rules in which rows and columns of
// the operand take the places of m and n, and the memory layout of its operands in the order of the
// rules: strides are 0 along dimensions with which an operand does not vary. Entries for numbers
// are unused.
struct OperandProgramType {
  EpilogueId id = default_epilogue;
  std::vector<MatrixType> operands = {};

  friend bool operator==(const OperandProgramType&, const OperandProgramType&) = default;
};

// What belongs to an operand besides its elements (scales.hpp). Scales multiply; the program is
// applied to the scaled elements.
struct OperandCompanions {
  std::vector<CompanionType> scales = {};
  std::optional<CompanionType> zero_point = {};
  std::optional<CodeTable> table = {};
  ElementOrder order = ElementOrder::strided;
  std::optional<OperandProgramType> program = {};

  bool empty() const noexcept {
    return scales.empty() && !zero_point && !table && order == ElementOrder::strided && !program;
  }
  friend bool operator==(const OperandCompanions&, const OperandCompanions&) = default;
};

// out[l,m,n] = epilogue( sum over k of a[l,m,k] * b[l,k,n] ). `c` is set if there is a C, which is
// not read if beta is 0.
//
// With `groups` it is a batch of l GEMMs that differ in one extent. The field of that extent holds
// the sum over all groups (T) or, if each group has its own matrices (masked, list), the largest
// one. A tensor that groups share has a batch stride of 0. See grouped.hpp.
//
// With a `convolution`, m, n and k are extents of its GEMM, and l is the number of groups of
// channels, or of images. `a` and `b` describe what one tap reads of one row of pixels: their
// strides lead from pixel to pixel, from channel to channel and from group to group (or image to
// image). `out` is a matrix like any other. See conv_arguments.hpp.
//
// With companions, elements of a and b are scaled, or changed by a program, before they are
// multiplied. See scales.hpp.
struct GEMMERY_API GemmProblem {
  std::int64_t m = 0, n = 0, k = 0, l = 1;
  MatrixType a, b, out;
  std::optional<MatrixType> c;
  DType accumulator = DType::float32;
  Math math = Math::native;
  EpilogueId epilogue = default_epilogue;
  // The memory layout of the epilogue's operands, in the order of its rules: strides are 0 along
  // dimensions with which an operand does not vary. Entries for numbers are unused. Empty for the
  // default program.
  std::vector<MatrixType> epilogue_operands = {};
  std::optional<Groups> groups = {};
  std::optional<Convolution> convolution = {};
  OperandCompanions a_companions = {}, b_companions = {};

  friend bool operator==(const GemmProblem&, const GemmProblem&) = default;

  // 2 for every multiply-add; the epilogue is not counted. Groups count all T elements, or groups
  // of the expected size; a convolution counts every tap of every pixel of y.
  GEMMERY_API double flops() const noexcept;
  // The bytes of every operand once: the minimum memory traffic.
  GEMMERY_API double bytes() const noexcept;
};

GEMMERY_API std::size_t hash_value(const GemmProblem& problem) noexcept;
// Row if both layouts fit: for a single row or column, and for a matrix without elements, whose
// strides are not part of a problem.
GEMMERY_API Layout layout_of(const MatrixType& matrix, std::int64_t rows,
                             std::int64_t columns) noexcept;

// A problem with the numbers that are not part of its identity.
struct ProblemLine {
  GemmProblem problem;
  double alpha = 1;  // of the default program, as is beta
  double beta = 0;
  std::vector<double> numbers = {};  // of another program, in the order of its operands
  std::vector<double> a_numbers = {}, b_numbers = {};  // the same of programs of A and B

  friend bool operator==(const ProblemLine&, const ProblemLine&) = default;
};

// Prints all non-default fields in the grammar's order; `parse_problem(to_string(p)) == p`.
GEMMERY_API std::string to_string(const ProblemLine& line);
GEMMERY_API std::string to_string(const GemmProblem& problem);

// Reads the grammar above (docs/problems.md). Throws Error: invalid_argument with the word and its
// position, unsupported for words that the grammar has and this version does not implement.
GEMMERY_API ProblemLine parse_problem(std::string_view line);

// The default accumulator: f64 for f64, int32 for integers, f32 for everything else.
GEMMERY_API DType default_accumulator(DType a, DType b) noexcept;
// The same with the problem's companions: f32 for integers whose scales vary along k or that have a
// zero point, and where only one of the operands is integer.
GEMMERY_API DType default_accumulator(const GemmProblem& problem) noexcept;

// The type in which the epilogue computes: f64 for f64 and int32 accumulators (exact for integers),
// f32 for the rest.
GEMMERY_API DType epilogue_compute_type(DType accumulator) noexcept;

}  // namespace gemmery

template <>
struct std::hash<gemmery::GemmProblem> {
  std::size_t operator()(const gemmery::GemmProblem& problem) const noexcept {
    return gemmery::hash_value(problem);
  }
};
