// SPDX-License-Identifier: Apache-2.0
// Chooses and runs primitives, with scratch memory of the calling thread.
#include "providers/host/onednn_matmul.hpp"

#include <cstdint>

#include <gemmery/error.hpp>

namespace gemmery::host::onednn {
namespace {

// Where weights are stored as (N, K), a reorder takes as long as it gains at 1536 to 2048 rows, for
// any K and N; at 100,000 rows the convolution is faster by 2 to 22 %
// (bench/results/epyc-convolution.md).
constexpr std::int64_t least_rows = 3072;
// Larger weights gain little, and their copy would be large.
constexpr std::int64_t most_weights = std::int64_t{1} << 24;

bool is_one_matrix(const MatmulShape& shape) {
  return shape.destination.extents[0] == 1 && shape.source.extents[0] == 1 &&
         shape.weights.extents[0] == 1;
}

bool is_packed_by_rows(const OperandShape& operand) {
  return operand.strides[2] == 1 && operand.strides[1] == operand.extents[2];
}

bool are_stored_by_columns(const OperandShape& weights) {
  return weights.strides[1] == 1 && weights.strides[2] == weights.extents[1];
}

// Pairs of bfloat16 must not read beyond a row (onednn_conv.cpp).
bool has_whole_pairs(const MatmulShape& shape) {
  const auto& [batches, k, n] = shape.weights.extents;
  return shape.weights.type != DataType::bf16 || (k % 2 == 0 && n % 2 == 0);
}

bool is_float(DataType type) { return type == DataType::f32 || type == DataType::bf16; }

// Leaves `place` empty if oneDNN has no blocked implementation.
void emplace_if_blocked(std::optional<ConvolutionPrimitive>& place, const Library& library,
                        const ConvolutionShape& shape) try {
  place.emplace(library, shape);
  if (!place->implementation_name().starts_with("brgconv")) place.reset();
} catch (const Error&) {
  place.reset();
}

}  // namespace

std::optional<ConvolutionShape> as_convolution(const MatmulShape& shape) {
  const auto& [batches, k, n] = shape.weights.extents;
  const std::int64_t rows = shape.destination.extents[1];
  const bool pays = rows >= least_rows && k * n <= most_weights;
  if (!pays || !is_one_matrix(shape) || !is_float(shape.weights.type) ||
      shape.source.type != shape.weights.type || !has_whole_pairs(shape) ||
      !is_packed_by_rows(shape.source) || !is_packed_by_rows(shape.destination) ||
      !are_stored_by_columns(shape.weights))
    return std::nullopt;
  constexpr ConvolutionShape::Numbers ones{1, 1, 1};
  return ConvolutionShape{.dimensions = 1,
                          .images = shape.source.type,
                          .filters = shape.weights.type,
                          .outputs = shape.destination.type,
                          .image_count = 1,
                          .channels = k,
                          .filter_count = n,
                          .image = {1, 1, rows},
                          .filter = ones,
                          .output = {1, 1, rows},
                          .stride = ones,
                          .dilation = ones};
}

Matmul::Matmul(const Library& library, const MatmulShape& shape)
    : primitive_(library, library.describe_matmul(shape)) {
  if (const auto convolution = as_convolution(shape))
    emplace_if_blocked(convolution_, library, *convolution);
  if (!convolution_) primitive_.create();
}

void Matmul::execute(const void* source, const void* weights, void* destination) const {
  if (convolution_) return convolution_->execute({source, weights, destination});
  static thread_local Scratch scratch;
  primitive_.execute({{argument_source, primitive_.query(query_source_md), source},
                      {argument_weights, primitive_.query(query_weights_md), weights},
                      {argument_destination, primitive_.query(query_destination_md), destination}},
                     scratch);
}

std::string Matmul::implementation_name() const {
  return convolution_ ? convolution_->implementation_name() : primitive_.implementation_name();
}

}  // namespace gemmery::host::onednn
