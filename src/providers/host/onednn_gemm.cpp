// SPDX-License-Identifier: Apache-2.0
// Plans a call of oneDNN: conversions, orientation, epilogue.
#include "providers/host/onednn_gemm.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "platform/parallel.hpp"
#include "providers/host/epilogue_writer.hpp"
#include "providers/host/onednn.hpp"
#include "providers/host/onednn_operands.hpp"
#include "providers/host/onednn_sums.hpp"
#include "providers/host/plain.hpp"
#include "providers/host/program_writer.hpp"
#include "providers/host/scratch.hpp"

namespace gemmery::host {
namespace {

using onednn::MatmulShape;

// --- operands ---

Extents extents_of_a(const GemmProblem& problem) { return {problem.l, problem.m, problem.k}; }
Extents extents_of_b(const GemmProblem& problem) { return {problem.l, problem.k, problem.n}; }
Extents extents_of_out(const GemmProblem& problem) { return {problem.l, problem.m, problem.n}; }

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
  const SumsLayout layout{extents.rows * extents.columns, extents.columns};
  if (types.sum == DataType::s32) return write_from_sums(arguments, sums, layout);
  write_from_sums(arguments, reinterpret_cast<const float*>(sums), layout);
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
  if (is_packed(a) || is_packed(b))
    return Status::fail("types: expected elements of whole bytes, got " + std::string(name(a)) +
                        " and " + std::string(name(b)));
  if (is_integer(a) != is_integer(b))
    return Status::fail(
        "B: expected integers together with integer A, floats together with floats");
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
  const ComputeTypes types = compute_types_of(arguments.a(), arguments.b());
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
