// SPDX-License-Identifier: Apache-2.0
// Work, identity and defaults of problems.
#include <gemmery/problem.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <xxhash.h>

#include "operation/companions.hpp"
#include "operation/convolution.hpp"
#include "operation/groups.hpp"
#include "operation/operand_programs.hpp"

namespace gemmery {
namespace {

constexpr std::array<std::string_view, 12> math_names{
    "native", "tf32",     "tf32x3",       "bf16x3",   "f16x3",  "f16",
    "bf16",   "fp8_fast", "fp8_promoted", "saturate", "bf16x6", "bf16x9"};

double matrix_bytes(const MatrixType& matrix, double batches, double rows, double columns) {
  // A broadcast operand is read once.
  const double count = (matrix.batch_stride == 0 ? 1 : batches) * rows * columns;
  return count * bit_width(matrix.dtype) / 8;
}

// The bytes of an epilogue's tensor, which repeats along strides of 0.
double varying_bytes(const MatrixType& matrix, double batches, double rows, double columns) {
  return matrix_bytes(matrix, batches, matrix.row_stride == 0 ? 1 : rows,
                      matrix.column_stride == 0 ? 1 : columns);
}

// Without padding, so that equal problems hash equally.
using Words = std::array<std::int64_t, 24>;

void append_matrix(Words& words, std::size_t& at, const MatrixType& matrix) {
  words[at++] =
      static_cast<std::int64_t>(matrix.dtype) | (static_cast<std::int64_t>(matrix.alignment) << 8);
  words[at++] = matrix.batch_stride;
  words[at++] = matrix.row_stride;
  words[at++] = matrix.column_stride;
}

std::int64_t word_of(const Groups& groups) {
  const auto field = [](auto value, int shift) {
    return static_cast<std::int64_t>(value) << shift;
  };
  return field(1, 0) | field(groups.sizes, 1) | field(groups.ragged, 4) |
         field(groups.index_bits, 8) | field(groups.are_on_host, 16) | field(groups.outside, 17) |
         field(groups.alignment, 20);
}

// 2 for every tap of every output, in images and in padding.
double flops_of(const Convolution& convolution) {
  const auto product = [](const Spatial& extents) {
    return static_cast<double>(extents[0]) * extents[1] * extents[2];
  };
  return 2 * static_cast<double>(convolution.images) * product(convolution.output) *
         static_cast<double>(convolution.filters) * product(convolution.filter) *
         static_cast<double>(convolution.channels / std::max(convolution.groups, 1));
}

std::uint64_t hash_of_convolution(const Convolution& convolution, std::uint64_t seed) {
  std::array<std::int64_t, 40> words{};
  std::size_t at = 0;
  words[at++] = static_cast<std::int64_t>(convolution.kind) |
                (static_cast<std::int64_t>(convolution.mode) << 8) |
                (static_cast<std::int64_t>(convolution.batch) << 16) |
                (std::int64_t{convolution.dimensions} << 24) |
                (std::int64_t{convolution.groups} << 32);
  for (const std::int64_t word : {convolution.images, convolution.channels, convolution.filters})
    words[at++] = word;
  for (const Spatial* const spatial :
       {&convolution.image, &convolution.filter, &convolution.output, &convolution.stride,
        &convolution.dilation, &convolution.lower, &convolution.upper})
    for (const std::int32_t word : *spatial) words[at++] = word;
  for (const auto* const strides : {&convolution.a_strides, &convolution.b_strides})
    for (const std::int64_t word : *strides) words[at++] = word;
  return XXH3_64bits_withSeed(words.data(), at * sizeof words[0], seed);
}

std::uint64_t hash_of_indices(const Groups& groups, std::uint64_t seed) {
  const std::array<std::int64_t, 6> words{groups.gather.bits,    groups.gather.divide,
                                          groups.gather.extent,  groups.scatter.bits,
                                          groups.scatter.divide, groups.scatter.extent};
  return XXH3_64bits_withSeed(words.data(), sizeof words, seed);
}

std::uint64_t hash_of_companion(const CompanionType& companion, std::uint64_t seed) {
  Words words{};
  std::size_t at = 0;
  append_matrix(words, at, companion.values);
  words[at++] = std::int64_t{companion.block.rows} | (std::int64_t{companion.block.k} << 32);
  words[at++] = static_cast<std::int64_t>(companion.layout);
  return XXH3_64bits_withSeed(words.data(), at * sizeof words[0], seed);
}

// Zeros of both signs are equal.
std::uint64_t hash_of_table(const CodeTable& table, std::uint64_t seed) {
  std::array<float, 16> values = table.values;
  for (float& value : values) value += 0.0F;
  return XXH3_64bits_withSeed(values.data(), sizeof values, seed);
}

std::uint64_t hash_of_program(const OperandProgramType& program, std::uint64_t seed) {
  std::uint64_t hash = seed * 31 + 1 + static_cast<std::uint64_t>(program.id);
  for (const MatrixType& operand : program.operands) {
    Words words{};
    std::size_t at = 0;
    append_matrix(words, at, operand);
    hash = XXH3_64bits_withSeed(words.data(), at * sizeof words[0], hash);
  }
  return hash;
}

std::uint64_t hash_of_companions(const OperandCompanions& companions, std::uint64_t seed) {
  std::uint64_t hash = seed * 31 + companions.scales.size() + 1;
  for (const CompanionType& scale : companions.scales) hash = hash_of_companion(scale, hash);
  if (companions.zero_point) hash = hash_of_companion(*companions.zero_point, hash + 1);
  hash += static_cast<std::uint64_t>(companions.order);
  if (companions.program) hash = hash_of_program(*companions.program, hash);
  return companions.table ? hash_of_table(*companions.table, hash) : hash;
}

double bytes_of_program(const GemmProblem& problem, bool is_a) {
  const std::optional<OperandProgramType>& program = operation::program_of(problem, is_a);
  if (!program) return 0;
  double sum = 0;
  for (std::size_t i = 0; i < program->operands.size(); ++i) {
    if (rules_of(program->id).operands[i].is_number) continue;
    const operation::MatrixExtents own =
        operation::program_extents(problem, is_a, program->operands[i]);
    sum += varying_bytes(program->operands[i], static_cast<double>(own.batch),
                         static_cast<double>(own.rows), static_cast<double>(own.columns));
  }
  return sum;
}

double bytes_of_companions(const GemmProblem& problem, bool is_a) {
  const OperandCompanions& companions = is_a ? problem.a_companions : problem.b_companions;
  if (companions.empty()) return 0;
  const operation::OperandExtents extents = operation::operand_extents(problem, is_a);
  const auto bytes_of = [&](const CompanionType& companion) {
    const operation::MatrixExtents own =
        operation::companion_extents(companion.block, companion.layout, extents);
    return matrix_bytes(companion.values, static_cast<double>(own.batch),
                        static_cast<double>(own.rows), static_cast<double>(own.columns));
  };
  double sum = bytes_of_program(problem, is_a);
  if (companions.zero_point) sum += bytes_of(*companions.zero_point);
  for (const CompanionType& scale : companions.scales) sum += bytes_of(scale);
  return sum;
}

}  // namespace

double operation::companion_bytes(const GemmProblem& problem) noexcept {
  return bytes_of_companions(problem, true) + bytes_of_companions(problem, false);
}

std::string_view name(Math math) noexcept { return math_names[static_cast<std::size_t>(math)]; }

std::optional<Math> parse_math(std::string_view word) noexcept {
  for (std::size_t i = 0; i < math_names.size(); ++i) {
    if (math_names[i] == word) return static_cast<Math>(i);
  }
  return std::nullopt;
}

std::string_view name(Layout layout) noexcept {
  switch (layout) {
    case Layout::row:
      return "row";
    case Layout::column:
      return "column";
    case Layout::strided:
      return "strided";
  }
  return "unknown";
}

Layout layout_of(const MatrixType& matrix, std::int64_t rows, std::int64_t columns) noexcept {
  if (matrix.column_stride == 1 || columns <= 1 || rows == 0) return Layout::row;
  if (matrix.row_stride == 1 || rows <= 1) return Layout::column;
  return Layout::strided;
}

double GemmProblem::flops() const noexcept {
  if (convolution) return flops_of(*convolution);
  const double each =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  if (!groups) return each * static_cast<double>(l);
  if (groups->share_tensors()) return l == 0 ? 0 : each;
  const std::int64_t whole = operation::ragged_extent(*this);
  const bool is_expected = groups->expected > 0 && whole > 0;
  const double share =
      is_expected ? static_cast<double>(groups->expected) / static_cast<double>(whole) : 1;
  return each * static_cast<double>(l) * std::min(share, 1.0);
}

double GemmProblem::bytes() const noexcept {
  const auto dm = static_cast<double>(m);
  const auto dn = static_cast<double>(n);
  const auto dk = static_cast<double>(k);
  const auto dl = static_cast<double>(l);
  double sum = matrix_bytes(out, dl, dm, dn);
  sum += convolution ? operation::conv_bytes(*this, true) + operation::conv_bytes(*this, false)
                     : matrix_bytes(a, dl, dm, dk) + matrix_bytes(b, dl, dk, dn);
  sum += operation::companion_bytes(*this);
  if (c) sum += varying_bytes(*c, dl, dm, dn);
  for (std::size_t i = 0; i < epilogue_operands.size(); ++i) {
    if (!rules_of(epilogue).operands[i].is_number)
      sum += varying_bytes(epilogue_operands[i], dl, dm, dn);
  }
  return sum;
}

std::size_t hash_value(const GemmProblem& problem) noexcept {
  Words words{};
  std::size_t at = 0;
  for (const std::int64_t extent : {problem.m, problem.n, problem.k, problem.l})
    words[at++] = extent;
  append_matrix(words, at, problem.a);
  append_matrix(words, at, problem.b);
  append_matrix(words, at, problem.out);
  if (problem.c) append_matrix(words, at, *problem.c);
  words[20] = static_cast<std::int64_t>(problem.accumulator) |
              (static_cast<std::int64_t>(problem.math) << 8) |
              (static_cast<std::int64_t>(problem.c.has_value()) << 16);
  words[21] = static_cast<std::int64_t>(problem.epilogue);
  if (problem.groups) {
    words[22] = word_of(*problem.groups);
    words[23] = problem.groups->expected;
  }
  std::uint64_t hash = XXH3_64bits(words.data(), sizeof words);
  if (problem.groups && problem.groups->have_indices())
    hash = hash_of_indices(*problem.groups, hash);
  if (problem.convolution) hash = hash_of_convolution(*problem.convolution, hash);
  if (operation::has_companions(problem))
    hash = hash_of_companions(problem.b_companions, hash_of_companions(problem.a_companions, hash));
  for (const MatrixType& operand : problem.epilogue_operands) {
    Words more{};
    at = 0;
    append_matrix(more, at, operand);
    hash = XXH3_64bits_withSeed(more.data(), at * sizeof more[0], hash);
  }
  return hash;
}

DType default_accumulator(DType a, DType b) noexcept {
  if (a == DType::float64 || b == DType::float64) return DType::float64;
  if (is_integer(a) && is_integer(b)) return DType::int32;
  return DType::float32;
}

DType default_accumulator(const GemmProblem& problem) noexcept {
  const DType dtype = default_accumulator(problem.a.dtype, problem.b.dtype);
  return dtype == DType::int32 && operation::is_product_decoded(problem) ? DType::float32 : dtype;
}

DType epilogue_compute_type(DType accumulator) noexcept {
  const bool needs_double = accumulator == DType::float64 || accumulator == DType::int32;
  return needs_double ? DType::float64 : DType::float32;
}

}  // namespace gemmery
