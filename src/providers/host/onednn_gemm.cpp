// SPDX-License-Identifier: Apache-2.0
// Plans a call of oneDNN: conversions, orientation, epilogue.
#include "providers/host/onednn_gemm.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "platform/host_info.hpp"
#include "platform/parallel.hpp"
#include "providers/host/epilogue_writer.hpp"
#include "providers/host/number.hpp"
#include "providers/host/onednn.hpp"
#include "providers/host/plain.hpp"
#include "providers/host/program_writer.hpp"
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

// The types in which oneDNN multiplies and accumulates.
struct ComputeTypes {
  DataType a, b, sum;
};

DataType integer_type(DType dtype) { return dtype == DType::uint8 ? DataType::u8 : DataType::s8; }

// Without them oneDNN takes four times as long as for float32 (1024^3, two cores with AVX-512 and
// no avx512_bf16).
bool has_bfloat16_instructions() {
  return platform::host_product_rate(DType::bfloat16) > platform::host_product_rate(DType::float32);
}

ComputeTypes compute_types(DType a, DType b) {
  if (is_integer(a)) return {integer_type(a), integer_type(b), DataType::s32};
  const bool in_bfloat16 = is_exact_in_bfloat16(a) && is_exact_in_bfloat16(b) &&
                           has_bfloat16_instructions() &&
                           onednn::multiplies(DataType::bf16, DataType::bf16, DataType::f32);
  const DataType type = in_bfloat16 ? DataType::bf16 : DataType::f32;
  return {type, type, DataType::f32};
}

// --- subnormal numbers ---

// True for an element of bfloat16 that is neither 0 nor normal.
bool is_subnormal_bfloat16(std::uint16_t code) {
  return (code & 0x7f80) == 0 && (code & 0x7f) != 0;
}

bool row_has_subnormals(const MatrixView& matrix, std::int64_t row, std::int64_t columns) {
  const auto* const first =
      static_cast<const std::uint16_t*>(matrix.data) + row * matrix.row_stride;
  unsigned found = 0;  // no early exit: this loop runs at the speed of memory
  if (matrix.column_stride == 1) {
    for (std::int64_t column = 0; column < columns; ++column)
      found |= is_subnormal_bfloat16(first[column]) ? 1U : 0U;
  } else {
    for (std::int64_t column = 0; column < columns; ++column)
      found |= is_subnormal_bfloat16(first[column * matrix.column_stride]) ? 1U : 0U;
  }
  return found != 0;
}

// The matrix with its contiguous direction as rows.
MatrixView along_memory(MatrixView matrix, std::int64_t& rows, std::int64_t& columns) {
  if (matrix.column_stride == 1 || matrix.row_stride != 1) return matrix;
  std::swap(rows, columns);
  std::swap(matrix.row_stride, matrix.column_stride);
  return matrix;
}

bool has_subnormals(const Tensor& operand) {
  if (operand.dtype() != DType::bfloat16) return false;
  const std::int64_t batches = operand.stride(0) == 0 ? 1 : operand.extent(0);
  std::atomic<bool> found{false};
  for (std::int64_t batch = 0; batch < batches && !found; ++batch) {
    std::int64_t rows = operand.extent(1);
    std::int64_t columns = operand.extent(2);
    const MatrixView matrix = along_memory(matrix_of(operand, batch), rows, columns);
    platform::parallel_for(rows, 1 + 65536 / (columns + 1),
                           [&](std::int64_t begin, std::int64_t end) {
                             for (std::int64_t row = begin; row < end && !found; ++row)
                               if (row_has_subnormals(matrix, row, columns)) found = true;
                           });
  }
  return found;
}

// Instructions on bfloat16 read subnormal operands as 0, whatever the processor's mode: multiplied
// by 1e30 that is no small error. Such operands, which are rare, are multiplied in float32.
ComputeTypes compute_types_of(const GemmArguments& arguments) {
  const GemmProblem& problem = arguments.problem();
  const ComputeTypes types = compute_types(problem.a.dtype, problem.b.dtype);
  if (types.a != DataType::bf16) return types;
  if (!has_subnormals(arguments.a()) && !has_subnormals(arguments.b())) return types;
  return {DataType::f32, DataType::f32, DataType::f32};
}

DataType storage_type(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return DataType::f32;
    case DType::bfloat16:
      return DataType::bf16;
    case DType::int32:
      return DataType::s32;
    case DType::int8:
      return DataType::s8;
    case DType::uint8:
      return DataType::u8;
    default:
      return DataType::undefined;
  }
}

// --- memory ---

struct Extents {
  std::int64_t batches, rows, columns;
};

// A batch of matrices in place, in oneDNN's terms; nothing if its strides are not those of packed
// or padded matrices.
std::optional<OperandShape> in_place_shape(const MatrixType& matrix, const Extents& extents) {
  if (matrix.has_pointers()) return std::nullopt;
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
  const std::int64_t batch_step =
      extents.batches <= 1 || is_broadcast ? packed : matrix.batch_stride;
  if (batch_step < packed) return std::nullopt;
  return OperandShape{
      .type = storage_type(matrix.dtype),
      .extents = {is_broadcast ? 1 : extents.batches, extents.rows, extents.columns},
      .strides = {batch_step, is_row_major ? step : 1, is_row_major ? 1 : step}};
}

OperandShape packed_shape(DataType type, const Extents& extents) {
  return {.type = type,
          .extents = {extents.batches, extents.rows, extents.columns},
          .strides = {extents.rows * extents.columns, extents.columns, 1}};
}

Extents extents_of_a(const GemmProblem& problem) { return {problem.l, problem.m, problem.k}; }
Extents extents_of_b(const GemmProblem& problem) { return {problem.l, problem.k, problem.n}; }
Extents extents_of_out(const GemmProblem& problem) { return {problem.l, problem.m, problem.n}; }

bool is_converted(const MatrixType& matrix, DataType compute) {
  return storage_type(matrix.dtype) != compute;
}

// True if an operand can be presented; converted ones are packed anew, whatever their strides.
bool fits(const MatrixType& matrix, const Extents& extents, DataType compute) {
  return is_converted(matrix, compute) || in_place_shape(matrix, extents).has_value();
}

// --- conversion of operands ---

template <class Stored, class Target, class Convert>
void convert_row(const MatrixView& source, std::int64_t row, std::int64_t columns, Target* packed,
                 const Convert& convert) {
  const Stored* element = static_cast<const Stored*>(source.data) + row * source.row_stride;
  if (source.column_stride == 1) {
    for (std::int64_t column = 0; column < columns; ++column)
      packed[column] = convert(element[column]);
    return;
  }
  for (std::int64_t column = 0; column < columns; ++column)
    packed[column] = convert(element[column * source.column_stride]);
}

template <class Stored, class Read>
void convert_row_to(const MatrixView& source, std::int64_t row, std::int64_t columns,
                    DataType compute, void* packed, const Read& read) {
  if (compute == DataType::f32)
    return convert_row<Stored>(source, row, columns, static_cast<float*>(packed), read);
  // Exact: no rounding happens.
  const auto to_bits = [&](Stored element) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(read(element)) >> 16);
  };
  convert_row<Stored>(source, row, columns, static_cast<std::uint16_t*>(packed), to_bits);
}

void convert_any_row(const MatrixView& source, std::int64_t row, std::int64_t columns,
                     DataType compute, void* packed) {
  switch (source.dtype) {
    case DType::float32:
      return convert_row_to<float>(source, row, columns, compute, packed,
                                   [](float v) { return v; });
    case DType::float16:
      return convert_row_to<std::uint16_t>(source, row, columns, compute, packed, from_float16);
    case DType::bfloat16:
      return convert_row_to<std::uint16_t>(source, row, columns, compute, packed, from_bfloat16);
    case DType::float8_e4m3fn:
      return convert_row_to<std::uint8_t>(source, row, columns, compute, packed,
                                          from_float8_e4m3fn);
    case DType::float8_e5m2:
      return convert_row_to<std::uint8_t>(source, row, columns, compute, packed, from_float8_e5m2);
    default:
      return;  // no other type is converted (see onednn_serves_types)
  }
}

std::size_t width_of(DataType type) {
  return type == DataType::bf16 ? 2 : type == DataType::f32 || type == DataType::s32 ? 4 : 1;
}

// One operand as oneDNN reads it.
struct Presented {
  OperandShape shape;
  const void* data;
};

// Zero rows and columns added to a copy.
struct Padding {
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  bool is_none() const { return rows == 0 && columns == 0; }
};

// The memory of a copy, and the operand that it is for.
struct CopyPlace {
  Scratch& scratch;
  std::string_view operand;
};

// Packed, row by row, of the compute type.
Presented present_copy(const Tensor& view, DataType compute, const Padding& padding,
                       const CopyPlace& place) {
  const Extents stored{view.stride(0) == 0 ? 1 : view.extent(0), view.extent(1) + padding.rows,
                       view.extent(2) + padding.columns};
  const std::size_t width = width_of(compute);
  const auto row_bytes = static_cast<std::size_t>(stored.columns) * width;
  const std::int64_t rows = stored.batches * stored.rows;
  auto* packed = place.scratch.reserve<std::byte>(rows * static_cast<std::int64_t>(row_bytes),
                                                  place.operand, "a converted copy");
  const auto copy_row = [&](std::int64_t row) {
    std::byte* target = packed + static_cast<std::size_t>(row) * row_bytes;
    const std::int64_t source_row = row % stored.rows;
    const std::int64_t columns = source_row < view.extent(1) ? view.extent(2) : 0;
    if (columns > 0)
      convert_any_row(matrix_of(view, row / stored.rows), source_row, columns, compute, target);
    std::memset(target + static_cast<std::size_t>(columns) * width, 0,
                static_cast<std::size_t>(stored.columns - columns) * width);
  };
  platform::parallel_for(rows, 1 + 65536 / (stored.columns + 1),
                         [&](std::int64_t begin, std::int64_t end) {
                           for (std::int64_t row = begin; row < end; ++row) copy_row(row);
                         });
  return {packed_shape(compute, stored), packed};
}

Presented present(const Tensor& view, const MatrixType& matrix, DataType compute,
                  const Padding& padding, const CopyPlace& place) {
  if (is_converted(matrix, compute) || !padding.is_none())
    return present_copy(view, compute, padding, place);
  return {in_place_shape(matrix, {view.extent(0), view.extent(1), view.extent(2)}).value(),
          view.data()};
}

// --- the result ---

OperandShape transposed(OperandShape shape) {
  std::swap(shape.extents[1], shape.extents[2]);
  std::swap(shape.strides[1], shape.strides[2]);
  return shape;
}

// oneDNN (2.6.3, brg:avx512_core_vnni) converts accumulators of int8 times int8 to float before
// int32: measured, odd sums beyond 2^24 become even. 1024 products of -128 by -128 are 2^24, so
// longer sums are split into parts of that length. uint8 times int8 is exact.
constexpr std::int64_t exact_int8_depth = 1024;

bool is_summed_in_pieces(const GemmArguments& arguments, const ComputeTypes& types) {
  return types.a == DataType::s8 && arguments.problem().k > exact_int8_depth;
}

bool is_plain_epilogue(const GemmArguments& arguments) {
  return arguments.alpha() == 1 && arguments.beta() == 0 && !has_program(arguments);
}

// The case in which oneDNN itself writes `out`: without an epilogue, in a type that it rounds to,
// row major (or column major, as the product of the transposed operands).
std::optional<OperandShape> direct_destination(const GemmArguments& arguments,
                                               const ComputeTypes& types) {
  const GemmProblem& problem = arguments.problem();
  if (!is_plain_epilogue(arguments) || is_summed_in_pieces(arguments, types)) return std::nullopt;
  const bool is_sum = storage_type(problem.out.dtype) == types.sum;
  const bool is_rounded = problem.out.dtype == DType::bfloat16 && types.a == DataType::bf16;
  if (!is_sum && !is_rounded) return std::nullopt;
  const auto shape = in_place_shape(problem.out, extents_of_out(problem));
  if (!shape) return std::nullopt;
  const bool is_transposed = shape->strides[2] != 1;
  const bool has_integer_weights = types.a == DataType::s8 || types.a == DataType::u8;
  if (is_transposed && has_integer_weights && types.a != DataType::s8)
    return std::nullopt;  // weights are s8 only
  return shape;
}

void multiply_oriented(MatmulShape shape, const void* a, const void* b, void* out) {
  if (shape.destination.strides[2] == 1) return onednn::multiply(shape, a, b, out);
  const MatmulShape swapped{transposed(shape.weights), transposed(shape.source),
                            transposed(shape.destination)};
  onednn::multiply(swapped, b, a, out);
}

constexpr TileGrid written_tile{8, most_tile_columns};

template <class Sum, class WriterOf>
void write_tiles(const GemmArguments& arguments, const Sum* sums, const WriterOf& writer_of) {
  const GemmProblem& problem = arguments.problem();
  for (std::int64_t batch = 0; batch < problem.l; ++batch, sums += problem.m * problem.n) {
    const auto writer = writer_of(batch);
    platform::parallel_for(problem.m, written_tile.rows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t column = 0; column < problem.n; column += written_tile.columns)
        writer(FinishedTile<Sum>{.row = begin,
                                 .column = column,
                                 .rows = static_cast<int>(end - begin),
                                 .columns = static_cast<int>(std::min<std::int64_t>(
                                     written_tile.columns, problem.n - column)),
                                 .sums = sums + begin * problem.n + column,
                                 .row_stride = static_cast<int>(problem.n),
                                 .plane_stride = 0});
    });
  }
}

template <class Sum>
void write_from_sums(const GemmArguments& arguments, const Sum* sums) {
  if (!has_program(arguments)) {
    return write_tiles(arguments, sums,
                       [&](std::int64_t batch) { return EpilogueWriter(arguments, batch); });
  }
  // int32 accumulators continue in double (epilogue_compute_type).
  using Compute = std::conditional_t<std::is_same_v<Sum, float>, float, double>;
  ProgramRun<Compute> run(arguments, written_tile);
  write_tiles(arguments, sums, [&](std::int64_t batch) {
    return ProgramWriter<Compute>{run, batch};
  });
  run.finish();
}

// Operands restricted to k from first to first + depth.
Presented slice_of_a(Presented a, std::int64_t first, std::int64_t depth) {
  a.data = static_cast<const std::int8_t*>(a.data) + first * a.shape.strides[2];
  a.shape.extents[2] = depth;
  return a;
}
Presented slice_of_b(Presented b, std::int64_t first, std::int64_t depth) {
  b.data = static_cast<const std::int8_t*>(b.data) + first * b.shape.strides[1];
  b.shape.extents[1] = depth;
  return b;
}

void multiply_in_pieces(const Presented& a, const Presented& b, const OperandShape& destination,
                        std::uint32_t* sums) {
  static thread_local Scratch scratch;
  const std::int64_t count = destination.extents[0] * destination.strides[0];
  auto* piece = scratch.reserve<std::uint32_t>(count, "out", "accumulators");
  const std::int64_t k = a.shape.extents[2];
  for (std::int64_t first = 0; first < k; first += exact_int8_depth) {
    const std::int64_t depth = std::min(exact_int8_depth, k - first);
    const Presented a_slice = slice_of_a(a, first, depth);
    const Presented b_slice = slice_of_b(b, first, depth);
    onednn::multiply({a_slice.shape, b_slice.shape, destination}, a_slice.data, b_slice.data,
                     first == 0 ? sums : piece);
    if (first == 0) continue;
    platform::parallel_for(count, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) sums[i] += piece[i];
    });
  }
}

void multiply_into_sums(const GemmArguments& arguments, const Presented& a, const Presented& b,
                        const ComputeTypes& types) {
  static thread_local Scratch scratch;
  const Extents extents = extents_of_out(arguments.problem());
  auto* sums = scratch.reserve<std::int32_t>(extents.batches * extents.rows * extents.columns,
                                             "out", "accumulators");
  const OperandShape destination = packed_shape(types.sum, extents);
  if (is_summed_in_pieces(arguments, types))
    multiply_in_pieces(a, b, destination, reinterpret_cast<std::uint32_t*>(sums));
  else
    onednn::multiply({a.shape, b.shape, destination}, a.data, b.data, sums);
  if (types.sum == DataType::s32) return write_from_sums(arguments, sums);
  write_from_sums(arguments, reinterpret_cast<const float*>(sums));
}

bool has_no_products(const GemmArguments& arguments) {
  const GemmProblem& problem = arguments.problem();
  return arguments.alpha() == 0 || problem.m == 0 || problem.n == 0 || problem.k == 0 ||
         problem.l == 0;
}

}  // namespace

Status onednn_serves_types(DType a, DType b, DType accumulator, Math math) {
  if (Status available = onednn::availability(); !available) return available;
  if (math != Math::native)
    return Status::fail("math: expected native, got " + std::string(name(math)));
  if (accumulator != DType::float32 && accumulator != DType::int32)
    return Status::fail("accumulator: expected float32 or int32, got " +
                        std::string(name(accumulator)));
  if (b == DType::uint8)
    return Status::fail("B: expected int8 (the only integer B of oneDNN), got uint8");
  const ComputeTypes types = compute_types(a, b);
  if (onednn::multiplies(types.a, types.b, types.sum)) return Status::success();
  return Status::fail("unavailable: this oneDNN on this CPU does not multiply " +
                      std::string(name(a)) + " by " + std::string(name(b)) +
                      (is_integer(a) ? " with exact sums" : ""));
}

Status onednn_serves(const GemmProblem& problem) {
  if (Status types =
          onednn_serves_types(problem.a.dtype, problem.b.dtype, problem.accumulator, problem.math);
      !types)
    return types;
  const ComputeTypes types = compute_types(problem.a.dtype, problem.b.dtype);
  if (!fits(problem.a, extents_of_a(problem), types.a))
    return Status::fail(
        "A: expected a row or column major matrix without overlap, got other strides");
  if (!fits(problem.b, extents_of_b(problem), types.b))
    return Status::fail(
        "B: expected a row or column major matrix without overlap, got other strides");
  if (problem.l > 1 && problem.a.batch_stride == 0 && problem.b.batch_stride == 0)
    return Status::fail("A, B: expected at most one that is broadcast over the batch, got both");
  return Status::success();
}

void run_onednn(const GemmArguments& arguments) {
  // Nothing to multiply: only the epilogue is left, which the plain path runs.
  if (has_no_products(arguments)) return run_plain(arguments);
  static thread_local Scratch a_scratch;
  static thread_local Scratch b_scratch;
  const GemmProblem& problem = arguments.problem();
  const ComputeTypes types = compute_types_of(arguments);
  // bfloat16 is multiplied in pairs along k. For an odd k, oneDNN 2.6.3 reads the element after the
  // row in place of the missing one and multiplies it by zero, which gives NaN if that element is
  // not finite.
  const std::int64_t extra_depth = types.a == DataType::bf16 ? problem.k % 2 : 0;
  const Presented a =
      present(arguments.a(), problem.a, types.a, {.columns = extra_depth}, {a_scratch, "A"});
  const Presented b =
      present(arguments.b(), problem.b, types.b, {.rows = extra_depth}, {b_scratch, "B"});
  if (const auto destination = direct_destination(arguments, types)) {
    MatmulShape shape{a.shape, b.shape, *destination};
    if (problem.out.dtype == DType::bfloat16) shape.destination.type = DataType::bf16;
    return multiply_oriented(shape, a.data, b.data, arguments.out().data());
  }
  multiply_into_sums(arguments, a, b, types);
}

}  // namespace gemmery::host
