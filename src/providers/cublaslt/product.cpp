// SPDX-License-Identifier: Apache-2.0
// The tables of types and layouts of cublasLtMatmul's manual, and what is not taken from them:
// results of 8 bits, which saturate there and do not here.
#include "providers/cublaslt/product.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "core/number.hpp"

namespace gemmery::cublaslt {
namespace {

std::optional<DataType> data_type(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return DataType::f64;
    case DType::float32:
      return DataType::f32;
    case DType::float16:
      return DataType::f16;
    case DType::bfloat16:
      return DataType::bf16;
    case DType::float8_e4m3fn:
      return DataType::e4m3;
    case DType::float8_e5m2:
      return DataType::e5m2;
    case DType::int8:
      return DataType::i8;
    case DType::int32:
      return DataType::i32;
    default:
      return std::nullopt;
  }
}

// --- types --------------------------------------------------------------------------------------

constexpr DType f64 = DType::float64, f32 = DType::float32, f16 = DType::float16,
                bf16 = DType::bfloat16, e4m3 = DType::float8_e4m3fn, e5m2 = DType::float8_e5m2,
                i8 = DType::int8, i32 = DType::int32;

struct TypeRow {
  DType a, b, accumulator, out;
  Math math;
  ComputeType compute;
  DataType scale;
};

// float8 has more rows, below.
constexpr std::array type_rows{
    TypeRow{f64, f64, f64, f64, Math::native, ComputeType::f64, DataType::f64},
    TypeRow{f32, f32, f32, f32, Math::native, ComputeType::f32, DataType::f32},
    TypeRow{f32, f32, f32, f32, Math::tf32, ComputeType::f32_fast_tf32, DataType::f32},
    TypeRow{f32, f32, f32, f32, Math::f16, ComputeType::f32_fast_f16, DataType::f32},
    TypeRow{f32, f32, f32, f32, Math::bf16, ComputeType::f32_fast_bf16, DataType::f32},
    TypeRow{f32, f32, f32, f32, Math::bf16x9, ComputeType::f32_emulated_bf16x9, DataType::f32},
    TypeRow{f16, f16, f32, f16, Math::native, ComputeType::f32, DataType::f32},
    TypeRow{f16, f16, f32, f32, Math::native, ComputeType::f32, DataType::f32},
    TypeRow{f16, f16, f16, f16, Math::native, ComputeType::f16, DataType::f16},
    TypeRow{bf16, bf16, f32, bf16, Math::native, ComputeType::f32, DataType::f32},
    TypeRow{bf16, bf16, f32, f32, Math::native, ComputeType::f32, DataType::f32},
    TypeRow{i8, i8, i32, i32, Math::native, ComputeType::i32, DataType::i32},
};

bool is_float8(DType dtype) { return dtype == e4m3 || dtype == e5m2; }

// Two operands of e5m2 have no row.
std::optional<TypeRow> float8_row(const GemmProblem& p) {
  const bool is_pair =
      is_float8(p.a.dtype) && is_float8(p.b.dtype) && (p.a.dtype == e4m3 || p.b.dtype == e4m3);
  const bool is_out = p.out.dtype == f32 || p.out.dtype == f16 || p.out.dtype == bf16;
  const bool is_math =
      p.math == Math::native || p.math == Math::fp8_promoted || p.math == Math::fp8_fast;
  if (!is_pair || !is_out || !is_math || p.accumulator != f32) return std::nullopt;
  return TypeRow{p.a.dtype, p.b.dtype, f32, p.out.dtype, p.math, ComputeType::f32, DataType::f32};
}

std::optional<TypeRow> find_types(const GemmProblem& p) {
  if (is_float8(p.a.dtype)) return float8_row(p);
  const auto* const row = std::ranges::find_if(type_rows, [&](const TypeRow& one) {
    return one.a == p.a.dtype && one.b == p.b.dtype && one.accumulator == p.accumulator &&
           one.out == p.out.dtype && one.math == p.math;
  });
  if (row == type_rows.end()) return std::nullopt;
  return *row;
}

Status read_types(const GemmProblem& p, Product& product) {
  const auto row = find_types(p);
  if (!row) {
    return Status::fail(fmt::format(
        "types: expected a combination of cublasLtMatmul's tables, got {} and {}, accumulated in "
        "{}, to {}, math {}",
        name(p.a.dtype), name(p.b.dtype), name(p.accumulator), name(p.out.dtype), name(p.math)));
  }
  product.compute = row->compute;
  product.scale = row->scale;
  product.has_fast_accumulation = row->math == Math::fp8_fast;
  return Status::success();
}

// --- layouts ------------------------------------------------------------------------------------

struct Named {
  std::string_view name;
  const MatrixType& matrix;
  std::int64_t rows;
  std::int64_t columns;
  bool wants_transpose = false;
};

Status refuse_layout(std::string_view name, std::string_view expected, std::string_view got) {
  return Status::fail(fmt::format("{}: expected {}, got {}", name, expected, got));
}

Status read_matrix(const Named& named, Matrix& read) {
  const Layout layout = layout_of(named.matrix, named.rows, named.columns);
  if (layout == Layout::strided)
    return refuse_layout(named.name, "a matrix with a unit stride", "none");
  const auto type = data_type(named.matrix.dtype);
  if (!type) return refuse_layout(named.name, "a type of cuBLASLt's", name(named.matrix.dtype));
  const bool is_row = layout == Layout::row;
  const std::int64_t length = is_row ? named.columns : named.rows;
  const std::int64_t count = is_row ? named.rows : named.columns;
  const std::int64_t stride = is_row ? named.matrix.row_stride : named.matrix.column_stride;
  const std::int64_t leading = count == 1 ? length : stride;
  if (leading < length)
    return refuse_layout(named.name,
                         fmt::format("rows or columns at least {} elements apart", length),
                         std::to_string(leading));
  if (named.matrix.batch_stride < 0)
    return refuse_layout(named.name, "a batch stride of at least 0",
                         std::to_string(named.matrix.batch_stride));
  // Row-major memory read by columns is the transpose.
  read = {*type,
          length,
          count,
          leading,
          named.matrix.batch_stride,
          named.matrix.alignment,
          is_row != named.wants_transpose};
  return Status::success();
}

Status check_extents(const GemmProblem& p) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  for (const auto& [name, extent] :
       {std::pair{"M", p.m}, std::pair{"N", p.n}, std::pair{"K", p.k}, std::pair{"L", p.l}}) {
    if (extent >= 1 && extent <= most) continue;
    return refuse_layout(name, fmt::format("1 to {}", most), std::to_string(extent));
  }
  return Status::success();
}

// C or a result beside out: stored as out is.
Status read_like_out(const GemmProblem& p, std::string_view name, const MatrixType& matrix,
                     const Product& product, Matrix& read) {
  if (matrix.dtype != p.out.dtype)
    return refuse_layout(name, "the type of out", gemmery::name(matrix.dtype));
  if (Status status = read_matrix({name, matrix, p.m, p.n, product.swaps}, read); !status)
    return status;
  if (!read.is_transposed) return Status::success();
  return refuse_layout(name, "the layout of out", "the other");
}

Status read_operands(const GemmProblem& p, Product& product) {
  const Layout layout = layout_of(p.out, p.m, p.n);
  product.swaps = layout == Layout::row;
  product.batches = p.l;
  Matrix& a = product.swaps ? product.second : product.first;
  Matrix& b = product.swaps ? product.first : product.second;
  for (const auto& [named, read] :
       {std::pair{Named{"A", p.a, p.m, p.k, product.swaps}, &a},
        std::pair{Named{"B", p.b, p.k, p.n, product.swaps}, &b},
        std::pair{Named{"out", p.out, p.m, p.n, product.swaps}, &product.out}})
    if (Status status = read_matrix(named, *read); !status) return status;
  product.c = product.out;
  product.has_c = p.c.has_value();
  return p.c ? read_like_out(p, "C", *p.c, product, product.c) : Status::success();
}

// --- epilogues ----------------------------------------------------------------------------------

std::string operand_name(const GemmProblem& p, int operand) {
  return "epilogue operand " +
         rules_of(p.epilogue).operands[static_cast<std::size_t>(operand)].name;
}
const MatrixType& operand_of(const GemmProblem& p, int operand) {
  return p.epilogue_operands[static_cast<std::size_t>(operand)];
}

// float8 with results of float32 has a bias of bfloat16, everything else one of out's type.
Status read_bias(const GemmProblem& p, Product& product) {
  const int operand = product.epilogue.bias;
  const std::string name = operand_name(p, operand);
  const EpilogueOperandRule& rule =
      rules_of(p.epilogue).operands[static_cast<std::size_t>(operand)];
  const MatrixType& vector = operand_of(p, operand);
  const bool runs_along_out = product.swaps ? rule.varies_n : rule.varies_m;
  if (!runs_along_out)
    return refuse_layout(name, "a vector along the contiguous dimension of out", "along the other");
  const std::int64_t length = product.swaps ? p.n : p.m;
  const std::int64_t stride = product.swaps ? vector.column_stride : vector.row_stride;
  if (length > 1 && stride != 1)
    return refuse_layout(name, "adjacent elements", fmt::format("a stride of {}", stride));
  if (vector.batch_stride < 0)
    return refuse_layout(name, "a batch stride of at least 0", std::to_string(vector.batch_stride));
  const DType dtype = is_float8(p.a.dtype) && p.out.dtype == f32 ? bf16 : p.out.dtype;
  if (vector.dtype != dtype)
    return refuse_layout(name, gemmery::name(dtype), gemmery::name(vector.dtype));
  product.bias = {operand, *data_type(dtype), vector.batch_stride, vector.alignment};
  return Status::success();
}

Attachment scale_of(const GemmProblem& p, int operand) {
  if (operand == no_operand) return {};
  return {operand, DataType::f32, 0, operand_of(p, operand).alignment};
}

// One factor or two of all elements are scales of tensors, one for each row and one for each column
// are vectors. Which of the operands a scale of a tensor belongs to does not matter.
Status read_scales(const GemmProblem& p, Product& product) {
  const Scales& scales = product.epilogue.scales;
  const bool has_tensors = scales.first_of_all != no_operand;
  const bool has_rows = scales.of_rows != no_operand;
  const bool has_columns = scales.of_columns != no_operand;
  if (!has_tensors && !has_rows && !has_columns) return Status::success();
  if (!is_float8(p.a.dtype))
    return refuse_layout("scales", "operands of float8", gemmery::name(p.a.dtype));
  if (has_rows != has_columns || (has_tensors && has_rows))
    return refuse_layout("scales",
                         "one value for each tensor, or one for each row of A and column of B",
                         "another combination");
  if (!has_rows) {
    product.first_scale = scale_of(p, scales.first_of_all);
    product.second_scale = scale_of(p, scales.second_of_all);
    return Status::success();
  }
  const bool are_adjacent = (p.m == 1 || operand_of(p, scales.of_rows).row_stride == 1) &&
                            (p.n == 1 || operand_of(p, scales.of_columns).column_stride == 1);
  if (!are_adjacent || p.l != 1)
    return refuse_layout("scales", "adjacent values of one product", "strides, or a batch");
  product.scale_mode = ScaleMode::outer_vector;
  product.first_scale = scale_of(p, product.swaps ? scales.of_columns : scales.of_rows);
  product.second_scale = scale_of(p, product.swaps ? scales.of_rows : scales.of_columns);
  return Status::success();
}

Status read_epilogue(const GemmProblem& p, Product& product) {
  if (Status status = match_epilogue(p, product.epilogue); !status) return status;
  const EpilogueForm& form = product.epilogue;
  if (form.is_default) return Status::success();
  if (p.accumulator == i32)
    return Status::fail("epilogue: expected the default program beside integers, got another");
  if (Status status = read_scales(p, product); !status) return status;
  if (form.c != no_operand) {
    product.has_c = true;
    if (Status status =
            read_like_out(p, operand_name(p, form.c), operand_of(p, form.c), product, product.c);
        !status)
      return status;
  }
  return form.bias == no_operand ? Status::success() : read_bias(p, product);
}

// --- numbers ------------------------------------------------------------------------------------

bool is_exact_in_f16(double value) {
  const auto format = number::float_format(DType::float16);
  return number::decode(format, number::encode(format, value)) == value;
}

Status refuse_scalar(std::string_view name, std::string_view expected, double got) {
  return Status::fail(fmt::format("{}: expected {}, got {}", name, expected, got));
}

}  // namespace

std::int64_t Matrix::span(std::int64_t batches) const noexcept {
  return (columns - 1) * leading + rows + (batches - 1) * batch_stride;
}

std::int64_t Product::largest_span() const noexcept {
  return std::max({first.span(batches), second.span(batches), c.span(batches), out.span(batches)});
}

Status describe(const GemmProblem& problem, Product& product) {
  product = {};
  if (Status status = read_types(problem, product); !status) return status;
  if (Status status = check_extents(problem); !status) return status;
  if (Status status = read_operands(problem, product); !status) return status;
  return read_epilogue(problem, product);
}

// With alpha 0, A and B are not to be read, and in a program a C is read whatever beta is, unless
// the program says otherwise.
Status check_scalars(const Product& product, double alpha, double beta) {
  if (alpha == 0) return refuse_scalar("alpha", "another number than 0", alpha);
  const EpilogueForm& form = product.epilogue;
  if (!form.is_default && product.has_c && beta == 0 && !form.beta.is_guarded)
    return refuse_scalar("the factor of C", "another number than 0", beta);
  if (product.compute == ComputeType::i32) {
    if (alpha != 1) return refuse_scalar("alpha", "1 beside integers", alpha);
    if (beta != 0 && beta != 1) return refuse_scalar("beta", "0 or 1 beside integers", beta);
  }
  if (product.scale == DataType::f16) {
    if (!is_exact_in_f16(alpha)) return refuse_scalar("alpha", "a number of float16", alpha);
    if (!is_exact_in_f16(beta)) return refuse_scalar("beta", "a number of float16", beta);
  }
  return Status::success();
}

}  // namespace gemmery::cublaslt
