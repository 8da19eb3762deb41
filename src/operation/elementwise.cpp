// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels without a matrix product, as GEMMs of K = 0: the epilogue does all the work.
#include <gemmery/elementwise.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "operation/refusal.hpp"
#include "operation/shapes.hpp"

namespace gemmery {
namespace {

// The types of the product, which determine the type in which the program computes.
struct SumTypes {
  DType factor;
  DType accumulator;
};

bool has_type(const EpilogueArguments& program, const Tensor& out, DType dtype) {
  const auto is_of_type = [&](const EpilogueOperand& operand) {
    const auto* const tensor = std::get_if<Tensor>(&operand.value);
    return tensor != nullptr && tensor->dtype() == dtype;
  };
  return out.dtype() == dtype || std::ranges::any_of(program.operands(), is_of_type);
}

SumTypes sum_types(const EpilogueArguments& program, const Tensor& out) {
  if (has_type(program, out, DType::float64)) return {DType::float64, DType::float64};
  if (has_type(program, out, DType::int32)) return {DType::int8, DType::int32};
  return {DType::float32, DType::float32};
}

// --- one vector ---------------------------------------------------------------------------------

bool is_packed(const Tensor& tensor) {
  std::int64_t packed = 1;
  for (int d = tensor.rank() - 1; d >= 0; --d) {
    if (tensor.extent(d) > 1 && tensor.stride(d) != packed) return false;
    packed *= tensor.extent(d);
  }
  return true;
}

bool is_like(const EpilogueOperand& operand, const Tensor& out) {
  const auto* const tensor = std::get_if<Tensor>(&operand.value);
  return tensor == nullptr ||
         (std::ranges::equal(tensor->shape(), out.shape()) && is_packed(*tensor));
}

// True if out can be treated as one vector. Kernels count an extent in 32 bits.
bool is_one_vector(const Tensor& out, const EpilogueArguments& program) {
  return is_packed(out) && out.element_count() <= operation::largest_extent &&
         std::ranges::all_of(program.operands(),
                             [&](const EpilogueOperand& one) { return is_like(one, out); });
}

Tensor as_vector(const Tensor& tensor) {
  return Tensor(tensor.data(), tensor.dtype(), {1, tensor.element_count()}, tensor.device());
}

EpilogueArguments as_vectors(const EpilogueArguments& program) {
  std::vector<EpilogueOperand> operands = program.operands();
  for (EpilogueOperand& operand : operands) {
    if (auto* const tensor = std::get_if<Tensor>(&operand.value)) *tensor = as_vector(*tensor);
  }
  return EpilogueArguments(program.program(), std::move(operands));
}

// --- the GEMM -----------------------------------------------------------------------------------

// A vector becomes a matrix of one row.
Tensor as_matrices(const Tensor& out) {
  if (out.rank() == 2 || out.rank() == 3) return out;
  if (out.rank() != 1) {
    operation::refuse("out", "a tensor of rank 1, 2 or 3, or packed tensors of one shape alone",
                      "rank " + std::to_string(out.rank()), "view its leading dimensions as one",
                      ErrorKind::unsupported);
  }
  const std::array shape{std::int64_t{1}, out.extent(0)};
  const std::array strides{std::int64_t{0}, out.stride(0)};
  return Tensor(out.data(), out.dtype(), shape, strides, out.device());
}

GemmArguments make_gemm(const Tensor& out, const EpilogueArguments& program) {
  const Tensor matrices = as_matrices(out);
  const SumTypes types = sum_types(program, out);
  const std::int64_t batches = matrices.rank() == 3 ? matrices.extent(0) : 1;
  const std::int64_t m = matrices.extent(matrices.rank() - 2);
  const std::int64_t n = matrices.extent(matrices.rank() - 1);
  const std::int64_t k = 0;
  GemmOptions options;
  options.epilogue = program;
  if (matrices.rank() == 2) {
    return GemmArguments(Tensor(nullptr, types.factor, {m, k}, out.device()),
                         Tensor(nullptr, types.factor, {k, n}, out.device()), matrices,
                         types.accumulator, options);
  }
  return GemmArguments(Tensor(nullptr, types.factor, {batches, m, k}, out.device()),
                       Tensor(nullptr, types.factor, {batches, k, n}, out.device()), matrices,
                       types.accumulator, options);
}

EpilogueArguments with_pair(const Tensor& A, const Tensor& B, std::string_view program,
                            std::vector<EpilogueOperand> others) {
  std::vector<EpilogueOperand> operands{{"A", A}, {"B", B}};
  std::ranges::move(others, std::back_inserter(operands));
  return EpilogueArguments(program, std::move(operands));
}

// The name of the epilogue's A, not the product's.
std::string in_program(std::string_view operand) {
  if (operand == "out" || operand.starts_with("epilogue.")) return std::string(operand);
  return "epilogue." + std::string(operand);
}

}  // namespace

ElementwiseArguments::ElementwiseArguments(const Tensor& A, const Tensor& B, const Tensor& out,
                                           std::string_view program,
                                           std::vector<EpilogueOperand> others)
    : ElementwiseArguments(out, with_pair(A, B, program, std::move(others))) {}

ElementwiseArguments::ElementwiseArguments(const Tensor& out, const EpilogueArguments& program)
    : gemm_(is_one_vector(out, program) ? make_gemm(as_vector(out), as_vectors(program))
                                        : make_gemm(out, program)) {}

void ElementwiseArguments::set_data(std::string_view operand, const void* data) {
  gemm_.set_data(in_program(operand), data);
}

void ElementwiseArguments::set_scalar(std::string_view name, double value) {
  gemm_.set_scalar(name, value);
}

}  // namespace gemmery
