// SPDX-License-Identifier: Apache-2.0
// Tensors of convolutions as matrices: those of an epilogue, and A and B of convolutions that are
// plain GEMMs.
#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <vector>

#include "operation/convolution.hpp"

namespace gemmery::operation {
namespace {

// Several dimensions as one extent and stride.
struct Line {
  std::int64_t extent;
  std::int64_t stride;
};

// nullopt if the elements are not equally spaced, or if only some dimensions repeat.
std::optional<Line> collapse(std::span<const BroadcastDimension> dimensions) {
  Line line{1, 0};
  bool is_first = true;
  bool repeats = false;
  const bool is_empty = std::ranges::count(dimensions, 0, &BroadcastDimension::domain) > 0;
  for (std::size_t i = dimensions.size(); i-- > 0;) {
    const BroadcastDimension& dimension = dimensions[i];
    if (dimension.domain == 1) continue;
    const bool is_repeated = dimension.extent == 1;
    if (!is_first && is_repeated != repeats) return std::nullopt;
    if (is_first && !is_repeated) line.stride = dimension.stride;
    if (!is_first && !is_repeated && !is_empty && dimension.stride != line.stride * line.extent)
      return std::nullopt;
    if (!is_repeated) line.extent *= dimension.extent;
    repeats = is_repeated;
    is_first = false;
  }
  return line;
}

// The five dimensions of a tensor that broadcasts to out, which has `spatial` of the three spatial
// ones.
std::vector<BroadcastDimension> dimensions_of(const Tensor& tensor, const ConvExtents& domain,
                                              int spatial) {
  const int absent = static_cast<int>(spatial_count) - spatial;
  const int missing = spatial + 2 - tensor.rank();
  std::vector<BroadcastDimension> dimensions;
  for (int d = 0; d < static_cast<int>(domain.size()); ++d) {
    const bool is_absent = d > 0 && d <= absent;
    const int own = (d == 0 ? 0 : d - absent) - missing;
    const bool has_own = !is_absent && own >= 0;
    dimensions.push_back({domain[static_cast<std::size_t>(d)], has_own ? tensor.extent(own) : 1,
                          has_own ? tensor.stride(own) : 0});
  }
  return dimensions;
}

struct Halves {
  BroadcastDimension outer, inner;
};
// Splits the channels into groups and the channels of one group.
Halves split(const BroadcastDimension& dimension, std::int64_t groups) {
  const std::int64_t each = dimension.domain / groups;
  if (dimension.extent != dimension.domain) return {{groups, 1, 0}, {each, 1, 0}};
  return {{groups, groups, dimension.stride * each}, {each, each, dimension.stride}};
}

std::optional<Tensor> join(const Tensor& tensor, const std::optional<Line>& batch,
                           const std::optional<Line>& rows, const std::optional<Line>& columns) {
  if (!batch || !rows || !columns) return std::nullopt;
  const std::array shape{batch->extent, rows->extent, columns->extent};
  const std::array strides{batch->stride, rows->stride, columns->stride};
  return Tensor(tensor.data(), tensor.dtype(), shape, strides, tensor.device());
}

using Dimensions = std::vector<BroadcastDimension>;

std::optional<Line> collapse_some(const Dimensions& all, std::size_t first, std::size_t count) {
  return collapse(std::span(all).subspan(first, count));
}

}  // namespace

std::optional<Tensor> view_as_matrices(const Tensor& tensor, const Convolution& convolution) {
  const ConvTensor out = tensors_of(convolution.kind).out;
  const Dimensions all =
      dimensions_of(tensor, extents_of(convolution, out), convolution.dimensions);
  if (out == ConvTensor::filter) {
    const Halves filters = split(all[0], convolution.groups);
    const std::array batch{filters.outer};
    const std::array rows{filters.inner};
    return join(tensor, collapse(batch), collapse(rows), collapse_some(all, 1, 4));
  }
  const Halves channels = split(all[4], convolution.groups);
  const std::array columns{channels.inner};
  if (convolution.batch == ConvBatch::images)
    return join(tensor, collapse_some(all, 0, 1), collapse_some(all, 1, 3), collapse(columns));
  const std::array batch{channels.outer};
  return join(tensor, collapse(batch), collapse_some(all, 0, 4), collapse(columns));
}

// --- plain GEMMs --------------------------------------------------------------------------------

namespace {

BroadcastDimension full(std::int64_t extent, std::int64_t stride) {
  return {extent, extent, stride};
}

// True if no tap of any output lies in padding.
bool meets_no_padding(const Convolution& convolution) {
  for (std::size_t d = 0; d < spatial_count; ++d) {
    const std::int64_t last = (std::int64_t{convolution.output[d]} - 1) * convolution.stride[d] +
                              (std::int64_t{convolution.filter[d]} - 1) * convolution.dilation[d];
    if (convolution.lower[d] != 0 || last >= convolution.image[d]) return false;
  }
  return true;
}

bool has_one_tap(const Convolution& convolution) { return convolution.filter == Spatial{1, 1, 1}; }

// True if every pixel of dx is one pixel of dy.
bool is_pointwise_dgrad(const Convolution& convolution) {
  for (std::size_t d = 0; d < spatial_count; ++d) {
    const bool is_step = convolution.stride[d] == 1 || convolution.image[d] == 1;
    if (!is_step || convolution.lower[d] != 0 || convolution.output[d] < convolution.image[d])
      return false;
  }
  return has_one_tap(convolution);
}

// Images and their pixels, `step` pixels apart; only the pixels if each image is a matrix.
Dimensions pixels_of(const Convolution& convolution, const Spatial& extents, const Spatial& step,
                     const std::array<std::int64_t, 4>& strides) {
  Dimensions dimensions;
  if (convolution.batch == ConvBatch::groups)
    dimensions.push_back(full(convolution.images, strides[0]));
  for (std::size_t d = 0; d < spatial_count; ++d)
    dimensions.push_back(full(extents[d], strides[d + 1] * step[d]));
  return dimensions;
}

// Taps, then adjacent channels.
Dimensions taps_of(const Convolution& convolution, const Spatial& step,
                   const std::array<std::int64_t, 4>& strides) {
  Dimensions dimensions;
  for (std::size_t d = 0; d < spatial_count; ++d)
    dimensions.push_back(full(convolution.filter[d], strides[d + 1] * step[d]));
  dimensions.push_back(full(convolution.channels / convolution.groups, 1));
  return dimensions;
}

struct OperandLines {
  std::optional<Line> a_rows, a_columns, b_rows, b_columns;
};

Line adjacent(std::int64_t extent) { return {extent, 1}; }

std::optional<OperandLines> lines_of(const Convolution& convolution) {
  constexpr Spatial one{1, 1, 1};
  const auto& [a, b] = std::tie(convolution.a_strides, convolution.b_strides);
  const std::int64_t filters = convolution.filters / convolution.groups;
  const std::int64_t channels = convolution.channels / convolution.groups;
  const bool is_reversed = convolution.mode == ConvMode::convolution && !has_one_tap(convolution);
  if (is_reversed) return std::nullopt;
  if (convolution.kind == ConvKind::dgrad) {
    if (!is_pointwise_dgrad(convolution)) return std::nullopt;
    return OperandLines{collapse(pixels_of(convolution, convolution.image, one, a)),
                        adjacent(filters), Line{filters, b[0]}, adjacent(channels)};
  }
  if (!meets_no_padding(convolution)) return std::nullopt;
  if (convolution.kind == ConvKind::fprop)
    return OperandLines{collapse(pixels_of(convolution, convolution.output, convolution.stride, a)),
                        collapse(taps_of(convolution, convolution.dilation, a)),
                        collapse(taps_of(convolution, one, b)), Line{filters, b[0]}};
  return OperandLines{adjacent(filters),
                      collapse(pixels_of(convolution, convolution.output, one, a)),
                      collapse(pixels_of(convolution, convolution.output, convolution.stride, b)),
                      collapse(taps_of(convolution, convolution.dilation, b))};
}

MatrixType matrix_of(MatrixType matrix, const Line& rows, const Line& columns,
                     const MatrixExtents& extents) {
  matrix.row_stride = rows.stride;
  matrix.column_stride = columns.stride;
  return normalize(matrix, extents);
}

}  // namespace

std::optional<GemmProblem> as_plain_gemm(const GemmProblem& problem) {
  if (!problem.convolution) return std::nullopt;
  const std::optional<OperandLines> lines = lines_of(*problem.convolution);
  if (!lines || !lines->a_rows || !lines->a_columns || !lines->b_rows || !lines->b_columns)
    return std::nullopt;
  GemmProblem plain = problem;
  plain.convolution.reset();
  plain.a =
      matrix_of(problem.a, *lines->a_rows, *lines->a_columns, {problem.l, problem.m, problem.k});
  plain.b =
      matrix_of(problem.b, *lines->b_rows, *lines->b_columns, {problem.l, problem.k, problem.n});
  return plain;
}

std::optional<GemmArguments> ConvolutionBinder::as_plain_gemm(const GemmArguments& arguments) {
  std::optional<GemmProblem> plain = operation::as_plain_gemm(arguments.problem());
  if (!plain) return std::nullopt;
  GemmArguments gemm = arguments;
  gemm.a_ =
      make_view(arguments.a_.data(), plain->a, {plain->l, plain->m, plain->k}, arguments.device());
  gemm.b_ =
      make_view(arguments.b_.data(), plain->b, {plain->l, plain->k, plain->n}, arguments.device());
  gemm.problem_ = *std::move(plain);
  return gemm;
}

GemmArguments ConvolutionBinder::bind(const Convolution& convolution, const Tensor& a,
                                      const Tensor& b, const Tensor& out, DType accumulator,
                                      const GemmOptions& options) {
  GemmArguments arguments;
  arguments.problem_.convolution = convolution;
  arguments.a_ = a;
  arguments.b_ = b;
  arguments.out_ = out;
  arguments.bind(accumulator, options, arguments.out_);
  return arguments;
}

}  // namespace gemmery::operation
