// SPDX-License-Identifier: Apache-2.0
// Plans a call of oneDNN: conversions before, orientation, epilogue after.
#include "providers/host/onednn_gemm.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "platform/parallel.hpp"
#include "providers/host/epilogue_writer.hpp"
#include "providers/host/number.hpp"
#include "providers/host/onednn.hpp"
#include "providers/host/plain.hpp"
#include "providers/host/scratch.hpp"

namespace gemmery::host {
namespace {

using onednn::DataType;
using onednn::MatmulShape;
using onednn::OperandShape;

// --- types ---

bool is_exact_in_bfloat16(DType dtype) {
  return dtype == DType::bfloat16 || dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2;
}

// In which types oneDNN multiplies and sums.
struct ComputeTypes {
  DataType a, b, sum;
};

DataType integer_type(DType dtype) { return dtype == DType::uint8 ? DataType::u8 : DataType::s8; }

ComputeTypes compute_types(DType a, DType b) {
  if (is_integer(a)) return {integer_type(a), integer_type(b), DataType::s32};
  const bool in_bfloat16 = is_exact_in_bfloat16(a) && is_exact_in_bfloat16(b) &&
                           onednn::multiplies(DataType::bf16, DataType::bf16, DataType::f32);
  const DataType type = in_bfloat16 ? DataType::bf16 : DataType::f32;
  return {type, type, DataType::f32};
}

DataType storage_type(DType dtype) {
  switch (dtype) {
    case DType::float32: return DataType::f32;
    case DType::bfloat16: return DataType::bf16;
    case DType::int32: return DataType::s32;
    case DType::int8: return DataType::s8;
    case DType::uint8: return DataType::u8;
    default: return DataType::undefined;
  }
}

// --- memory ---

struct Extents {
  std::int64_t batches, rows, columns;
};

// How oneDNN would see a batch of matrices in place; nothing where its strides are not those of packed or padded matrices.
std::optional<OperandShape> in_place_shape(const MatrixType& matrix, const Extents& extents) {
  const bool is_row_major = matrix.column_stride == 1 || extents.columns <= 1;
  const bool is_column_major = matrix.row_stride == 1 || extents.rows <= 1;
  if (!is_row_major && !is_column_major) return std::nullopt;
  const std::int64_t line = is_row_major ? extents.columns : extents.rows;
  const std::int64_t lines = is_row_major ? extents.rows : extents.columns;
  const std::int64_t stored_step = is_row_major ? matrix.row_stride : matrix.column_stride;
  const std::int64_t step = lines <= 1 ? line : stored_step;
  if (step < line) return std::nullopt;
  const bool is_broadcast = extents.batches > 1 && matrix.batch_stride == 0;
  const std::int64_t packed = step * lines;
  const std::int64_t batch_step = extents.batches <= 1 || is_broadcast ? packed : matrix.batch_stride;
  if (batch_step < packed) return std::nullopt;
  return OperandShape{.type = storage_type(matrix.dtype),
                      .extents = {is_broadcast ? 1 : extents.batches, extents.rows, extents.columns},
                      .strides = {batch_step, is_row_major ? step : 1, is_row_major ? 1 : step}};
}

OperandShape packed_shape(DataType type, const Extents& extents) {
  return {.type = type, .extents = {extents.batches, extents.rows, extents.columns}, .strides = {extents.rows * extents.columns, extents.columns, 1}};
}

Extents extents_of_a(const GemmProblem& problem) { return {problem.l, problem.m, problem.k}; }
Extents extents_of_b(const GemmProblem& problem) { return {problem.l, problem.k, problem.n}; }
Extents extents_of_out(const GemmProblem& problem) { return {problem.l, problem.m, problem.n}; }

bool is_converted(const MatrixType& matrix, DataType compute) { return storage_type(matrix.dtype) != compute; }

// Whether an operand can be presented: converted ones are packed anew, whatever their strides.
bool fits(const MatrixType& matrix, const Extents& extents, DataType compute) {
  return is_converted(matrix, compute) || in_place_shape(matrix, extents).has_value();
}

// --- conversion of operands ---

template <class Stored, class Target, class Convert>
void convert_row(const MatrixView& source, std::int64_t row, std::int64_t columns, Target* packed, const Convert& convert) {
  const Stored* element = static_cast<const Stored*>(source.data) + row * source.row_stride;
  if (source.column_stride == 1) {
    for (std::int64_t column = 0; column < columns; ++column) packed[column] = convert(element[column]);
    return;
  }
  for (std::int64_t column = 0; column < columns; ++column) packed[column] = convert(element[column * source.column_stride]);
}

template <class Stored, class Read>
void convert_row_to(const MatrixView& source, std::int64_t row, std::int64_t columns, DataType compute, void* packed, const Read& read) {
  if (compute == DataType::f32) return convert_row<Stored>(source, row, columns, static_cast<float*>(packed), read);
  // Exact: no rounding happens.
  const auto to_bits = [&](Stored element) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(read(element)) >> 16); };
  convert_row<Stored>(source, row, columns, static_cast<std::uint16_t*>(packed), to_bits);
}

void convert_any_row(const MatrixView& source, std::int64_t row, std::int64_t columns, DataType compute, void* packed) {
  switch (source.dtype) {
    case DType::float32: return convert_row_to<float>(source, row, columns, compute, packed, [](float v) { return v; });
    case DType::float16: return convert_row_to<std::uint16_t>(source, row, columns, compute, packed, from_float16);
    case DType::bfloat16: return convert_row_to<std::uint16_t>(source, row, columns, compute, packed, from_bfloat16);
    case DType::float8_e4m3fn: return convert_row_to<std::uint8_t>(source, row, columns, compute, packed, from_float8_e4m3fn);
    case DType::float8_e5m2: return convert_row_to<std::uint8_t>(source, row, columns, compute, packed, from_float8_e5m2);
    default: return;  // no other type is converted (onednn_serves_types)
  }
}

std::size_t width_of(DataType type) { return type == DataType::bf16 ? 2 : type == DataType::f32 || type == DataType::s32 ? 4 : 1; }

// What oneDNN reads for one operand.
struct Presented {
  OperandShape shape;
  const void* data;
};

Presented present(const Tensor& view, const MatrixType& matrix, DataType compute, Scratch& scratch) {
  const bool is_broadcast = view.stride(0) == 0;
  const Extents extents{view.extent(0), view.extent(1), view.extent(2)};
  if (!is_converted(matrix, compute)) return {in_place_shape(matrix, extents).value(), view.data()};
  const Extents stored{is_broadcast ? 1 : extents.batches, extents.rows, extents.columns};
  const auto row_bytes = static_cast<std::size_t>(stored.columns) * width_of(compute);
  const std::int64_t rows = stored.batches * stored.rows;
  auto* packed = scratch.reserve<std::byte>(static_cast<std::size_t>(rows) * row_bytes);
  platform::parallel_for(rows, 1 + 65536 / (stored.columns + 1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      convert_any_row(matrix_of(view, row / stored.rows), row % stored.rows, stored.columns, compute, packed + static_cast<std::size_t>(row) * row_bytes);
  });
  return {packed_shape(compute, stored), packed};
}

// --- the result ---

OperandShape transposed(OperandShape shape) {
  std::swap(shape.extents[1], shape.extents[2]);
  std::swap(shape.strides[1], shape.strides[2]);
  return shape;
}

bool is_plain_epilogue(const GemmArguments& arguments) { return arguments.alpha() == 1 && !arguments.c(); }

// Where oneDNN itself writes `out`: without an epilogue, in a type that it rounds sums to, row major (or column major, as the
// product of the transposed operands).
std::optional<OperandShape> direct_destination(const GemmArguments& arguments, const ComputeTypes& types) {
  const GemmProblem& problem = arguments.problem();
  if (!is_plain_epilogue(arguments)) return std::nullopt;
  const bool is_sum = storage_type(problem.out.dtype) == types.sum;
  const bool is_rounded = problem.out.dtype == DType::bfloat16 && types.a == DataType::bf16;
  if (!is_sum && !is_rounded) return std::nullopt;
  const auto shape = in_place_shape(problem.out, extents_of_out(problem));
  if (!shape) return std::nullopt;
  const bool is_transposed = shape->strides[2] != 1;
  const bool has_integer_weights = types.a == DataType::s8 || types.a == DataType::u8;
  if (is_transposed && has_integer_weights && types.a != DataType::s8) return std::nullopt;  // weights are s8 only
  return shape;
}

void multiply_oriented(MatmulShape shape, const void* a, const void* b, void* out) {
  if (shape.destination.strides[2] == 1) return onednn::multiply(shape, a, b, out);
  const MatmulShape swapped{transposed(shape.weights), transposed(shape.source), transposed(shape.destination)};
  onednn::multiply(swapped, b, a, out);
}

template <class Sum>
void write_from_sums(const GemmArguments& arguments, const Sum* sums) {
  const GemmProblem& problem = arguments.problem();
  constexpr std::int64_t lines = 8;
  constexpr std::int64_t piece = most_tile_columns;
  for (std::int64_t batch = 0; batch < problem.l; ++batch, sums += problem.m * problem.n) {
    const EpilogueWriter writer(arguments, batch);
    platform::parallel_for(problem.m, lines, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t column = 0; column < problem.n; column += piece)
        writer(FinishedTile<Sum>{.row = begin,
                                 .column = column,
                                 .rows = static_cast<int>(end - begin),
                                 .columns = static_cast<int>(std::min(piece, problem.n - column)),
                                 .sums = sums + begin * problem.n + column,
                                 .row_stride = static_cast<int>(problem.n),
                                 .plane_stride = 0});
    });
  }
}

void multiply_into_sums(const GemmArguments& arguments, const Presented& a, const Presented& b, const ComputeTypes& types) {
  static thread_local Scratch scratch;
  const Extents extents = extents_of_out(arguments.problem());
  auto* sums = scratch.reserve<std::int32_t>(static_cast<std::size_t>(extents.batches * extents.rows * extents.columns));
  onednn::multiply({a.shape, b.shape, packed_shape(types.sum, extents)}, a.data, b.data, sums);
  if (types.sum == DataType::s32) return write_from_sums(arguments, sums);
  write_from_sums(arguments, reinterpret_cast<const float*>(sums));
}

bool has_no_products(const GemmArguments& arguments) {
  const GemmProblem& problem = arguments.problem();
  return arguments.alpha() == 0 || problem.m == 0 || problem.n == 0 || problem.k == 0 || problem.l == 0;
}

}  // namespace

Status onednn_serves_types(DType a, DType b, DType accumulator, Math math) {
  if (Status available = onednn::availability(); !available) return available;
  if (math != Math::native) return Status::fail("math: expected native, got " + std::string(name(math)));
  if (accumulator != DType::float32 && accumulator != DType::int32)
    return Status::fail("accumulator: expected float32 or int32, got " + std::string(name(accumulator)));
  if (b == DType::uint8) return Status::fail("B: expected int8 (oneDNN multiplies by it only), got uint8");
  const ComputeTypes types = compute_types(a, b);
  if (onednn::multiplies(types.a, types.b, types.sum)) return Status::success();
  return Status::fail("unavailable: this oneDNN on this CPU does not multiply " + std::string(name(a)) + " by " + std::string(name(b)) +
                      (is_integer(a) ? " with exact sums" : ""));
}

Status onednn_serves(const GemmProblem& problem) {
  if (Status types = onednn_serves_types(problem.a.dtype, problem.b.dtype, problem.accumulator, problem.math); !types) return types;
  const ComputeTypes types = compute_types(problem.a.dtype, problem.b.dtype);
  if (!fits(problem.a, extents_of_a(problem), types.a)) return Status::fail("A: expected a row or column major matrix without overlap, got other strides");
  if (!fits(problem.b, extents_of_b(problem), types.b)) return Status::fail("B: expected a row or column major matrix without overlap, got other strides");
  if (problem.l > 1 && problem.a.batch_stride == 0 && problem.b.batch_stride == 0)
    return Status::fail("A, B: expected at most one that is broadcast over the batch, got both");
  return Status::success();
}

void run_onednn(const GemmArguments& arguments) {
  // Nothing to multiply: only the epilogue is left, which the plain path has.
  if (has_no_products(arguments)) return run_plain(arguments);
  static thread_local Scratch a_scratch;
  static thread_local Scratch b_scratch;
  const GemmProblem& problem = arguments.problem();
  const ComputeTypes types = compute_types(problem.a.dtype, problem.b.dtype);
  const Presented a = present(arguments.a(), problem.a, types.a, a_scratch);
  const Presented b = present(arguments.b(), problem.b, types.b, b_scratch);
  if (const auto destination = direct_destination(arguments, types)) {
    MatmulShape shape{a.shape, b.shape, *destination};
    if (problem.out.dtype == DType::bfloat16) shape.destination.type = DataType::bf16;
    return multiply_oriented(shape, a.data, b.data, arguments.out().data());
  }
  multiply_into_sums(arguments, a, b, types);
}

}  // namespace gemmery::host
