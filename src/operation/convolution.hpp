// SPDX-License-Identifier: Apache-2.0
// The convolution of a problem: extents and strides of its tensors, its GEMM, and convolutions that
// are plain GEMMs.
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

// The tensors of a convolution: images (N, D, H, W, C), filters (K, T, R, S, C/g) and outputs
// (N, O, P, Q, K).
enum class ConvTensor : std::uint8_t { image, filter, output };

// The roles of A, B and out.
struct ConvTensors {
  ConvTensor a, b, out;
};
ConvTensors tensors_of(ConvKind kind) noexcept;
// "x", "w", "dy", …
std::string_view symbol(ConvKind kind, ConvTensor tensor) noexcept;

// Images or filters, then depth, height, width, then channels.
using ConvExtents = std::array<std::int64_t, 5>;
ConvExtents extents_of(const Convolution& convolution, ConvTensor tensor) noexcept;

// The number of outputs along a dimension. It is 0 or less if the filter is larger than the padded
// image.
std::int64_t output_extent(const Convolution& convolution, std::size_t dimension) noexcept;

// Throws Error (invalid_argument, unsupported), which names the field, for invalid numbers: strides
// below 1, filters beyond the padded image, channels that are not a multiple of the groups, outputs
// with another extent than the formula's.
void check_convolution(const Convolution& convolution);

// Sets m, n, k and l, and the strides of A and B. Their dtypes and alignments are not changed.
void describe_product(GemmProblem& problem) noexcept;
// The same, also dtypes and alignments, from the memory of A and B.
void describe_convolution(const Tensor& a, const Tensor& b, GemmProblem& problem) noexcept;

// The strides of a tensor whose innermost spatial stride is `pixel_stride` and that is packed
// otherwise; 0 for extents of 0 and 1.
std::array<std::int64_t, 4> packed_strides(const ConvExtents& extents,
                                           std::int64_t pixel_stride) noexcept;
// The strides, with those of extents 0 and 1 set to 0.
std::array<std::int64_t, 4> normalize_strides(const std::array<std::int64_t, 4>& strides,
                                              const ConvExtents& extents) noexcept;

// The alignment of A or B at an address, by its strides and its step from group to group.
std::uint8_t conv_alignment(std::uintptr_t address, const GemmProblem& problem, bool is_a) noexcept;
std::uint8_t conv_alignment(const Tensor& view, const GemmProblem& problem, bool is_a) noexcept;

// A or B of a convolution, at `data`.
Tensor conv_view(const void* data, const GemmProblem& problem, bool is_a, Device device);

// The memory of A or B as one matrix: a row for each pixel (or tap of a filter) if these are
// equally spaced, else one row with everything from the first element to the last.
struct ConvMemory {
  MatrixType type;
  MatrixExtents extents;
  bool has_gaps = false;   // between elements of the one row
  std::int64_t first = 0;  // the index of the tensor's first element in it
};
ConvMemory memory_of(const GemmProblem& problem, bool is_a) noexcept;

// Bytes of all elements of A or B.
double conv_bytes(const GemmProblem& problem, bool is_a) noexcept;

// A dimension of a tensor, and the dimension of the domain to which it broadcasts.
struct BroadcastDimension {
  std::int64_t domain;
  std::int64_t extent;
  std::int64_t stride;
};

// A tensor with the rank of out, in which extents of 1 repeat, as the (L, M, N) view of its GEMM.
// nullopt if no strides express it.
std::optional<Tensor> view_as_matrices(const Tensor& tensor, const Convolution& convolution);

// The plain GEMM of a convolution, if it is one: A and B are matrices in memory, without padding
// and with equally spaced rows and columns.
std::optional<GemmProblem> as_plain_gemm(const GemmProblem& problem);

// Makes the arguments of convolutions.
class ConvolutionBinder {
 public:
  // `a` and `b` are rank 5; `out` and the tensors of `options` are (L, M, N) views. Validates types
  // and memory.
  static GemmArguments bind(const Convolution& convolution, const Tensor& a, const Tensor& b,
                            const Tensor& out, DType accumulator, const GemmOptions& options);
  // The arguments of the plain GEMM, if the problem is one.
  static std::optional<GemmArguments> as_plain_gemm(const GemmArguments& arguments);
};

}  // namespace gemmery::operation
