// SPDX-License-Identifier: Apache-2.0
// The convolution of a problem: extents and strides of its tensors, its GEMM, and the GEMM that
// some convolutions are without any gathering.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include <gemmery/arguments.hpp>
#include <gemmery/convolution.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/tensor.hpp>

#include "operation/matrix.hpp"

namespace gemmery::operation {

inline constexpr std::size_t spatial_count = 3;

// What a tensor is in a convolution: images (N, D, H, W, C), filters (K, T, R, S, C/g) or outputs
// (N, O, P, Q, K).
enum class ConvTensor : std::uint8_t { image, filter, output };

// The tensors that A, B and out are.
struct ConvTensors {
  ConvTensor a, b, out;
};
ConvTensors tensors_of(ConvKind kind) noexcept;
// "x", "w", "dy", …
std::string_view symbol(ConvKind kind, ConvTensor tensor) noexcept;

// Images or filters, then depth, height, width, then channels.
using ConvExtents = std::array<std::int64_t, 5>;
ConvExtents extents_of(const Convolution& convolution, ConvTensor tensor) noexcept;

// How many outputs there are along a dimension; 0 or less where the filter is larger than the
// padded image.
std::int64_t output_extent(const Convolution& convolution, std::size_t dimension) noexcept;

// Throws Error (invalid_argument, unsupported) for numbers that no convolution has, with what they
// are called: strides below 1, filters beyond the padded image, channels that groups do not divide,
// outputs of another extent than the formula's.
void check_convolution(const Convolution& convolution);

// Sets m, n, k and l, and the strides of A and B. Their dtypes and alignments are not changed.
void describe_product(GemmProblem& problem) noexcept;
// All of these, from the memory of A and B.
void describe_convolution(const Tensor& a, const Tensor& b, GemmProblem& problem) noexcept;

// The strides of a tensor whose innermost spatial stride is `pixel_stride` and that is packed
// otherwise; 0 for extents of 0 and 1.
std::array<std::int64_t, 4> packed_strides(const ConvExtents& extents,
                                           std::int64_t pixel_stride) noexcept;
// Strides of extents 0 and 1 set to 0.
std::array<std::int64_t, 4> normalize_strides(const std::array<std::int64_t, 4>& strides,
                                              const ConvExtents& extents) noexcept;

// The alignment of A or B at an address, by its strides and its step from group to group.
std::uint8_t conv_alignment(std::uintptr_t address, const GemmProblem& problem, bool is_a) noexcept;
std::uint8_t conv_alignment(const Tensor& view, const GemmProblem& problem, bool is_a) noexcept;

// A or B of a convolution, at `data`.
Tensor conv_view(const void* data, const GemmProblem& problem, bool is_a, Device device);

// The memory of A or B as one matrix: a row for each pixel (or tap of a filter) where these are at
// one distance, else one row with everything from the first element to the last.
struct ConvMemory {
  MatrixType type;
  MatrixExtents extents;
  bool has_gaps = false;   // between elements of the one row
  std::int64_t first = 0;  // where in it the tensor's first element is
};
ConvMemory memory_of(const GemmProblem& problem, bool is_a) noexcept;

// Bytes of all elements of A or B.
double conv_bytes(const GemmProblem& problem, bool is_a) noexcept;

// One dimension of a tensor beside that of the domain that it broadcasts to.
struct BroadcastDimension {
  std::int64_t domain;
  std::int64_t extent;
  std::int64_t stride;
};

// A tensor with the rank of out, in which extents of 1 repeat, as the (L, M, N) view of its GEMM.
// Nothing if no strides express it.
std::optional<Tensor> view_as_matrices(const Tensor& tensor, const Convolution& convolution);

// The same problem without a convolution, if A and B are matrices as they are: no padding, and rows
// and columns at one distance each.
std::optional<GemmProblem> as_plain_gemm(const GemmProblem& problem);

// Makes the arguments of convolutions.
class ConvolutionBinder {
 public:
  // `a` and `b` are rank 5; `out` and the tensors of `options` are (L, M, N) views. Validates types
  // and memory.
  static GemmArguments bind(const Convolution& convolution, const Tensor& a, const Tensor& b,
                            const Tensor& out, DType accumulator, const GemmOptions& options);
  // As `as_plain_gemm` of their problem.
  static std::optional<GemmArguments> as_plain_gemm(const GemmArguments& arguments);
};

}  // namespace gemmery::operation
