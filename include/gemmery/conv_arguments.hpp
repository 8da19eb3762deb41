// SPDX-License-Identifier: Apache-2.0
// Convolution: fprop, dgrad and wgrad, in one to three spatial dimensions. It uses the same calls
// and checks as a GEMM.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include <gemmery/arguments.hpp>
#include <gemmery/convolution.hpp>
#include <gemmery/device.hpp>
#include <gemmery/export.hpp>
#include <gemmery/tensor.hpp>

namespace gemmery {

// One number for all spatial dimensions, or one for each, in the order depth, height, width.
class PerDimension {
 public:
  PerDimension(std::int64_t value)  // NOLINT: a number for all
      : values_{value}, count_(1) {}
  PerDimension(std::initializer_list<std::int64_t> values)
      : PerDimension(std::span<const std::int64_t>(values.begin(), values.size())) {}
  explicit PerDimension(std::span<const std::int64_t> values) : count_(values.size()) {
    for (std::size_t i = 0; i < values.size() && i < values_.size(); ++i) values_[i] = values[i];
  }

  std::size_t count() const noexcept { return count_; }
  std::int64_t operator[](std::size_t index) const noexcept {
    return values_[count_ == 1 ? 0 : index];
  }

 private:
  std::array<std::int64_t, 3> values_{};
  std::size_t count_;
};

// How filters are applied to images.
struct ConvSettings {
  PerDimension stride = 1;
  PerDimension padding = 0;                        // on both sides
  std::optional<PerDimension> upper_padding = {};  // after the last pixel, if it differs
  PerDimension dilation = 1;                       // 1: taps read adjacent pixels
  std::int64_t groups = 1;                         // of channels: group j of K sees group j of C
  ConvMode mode = ConvMode::cross_correlation;
};

//   kind      A                     B                     out
//   fprop     x  (N, H, W, C)       w  (K, R, S, C/g)     y  (N, P, Q, K)
//   dgrad     dy (N, P, Q, K)       w  (K, R, S, C/g)     dx (N, H, W, C)
//   wgrad     dy (N, P, Q, K)       x  (N, H, W, C)       dw (K, R, S, C/g)
//
// and likewise with one spatial dimension (N, W, C) or three (N, D, H, W, C). Tensors are channels
// last: their channels are adjacent. A and B may have any other strides; the pixels of out (the
// taps of dw) must be equally spaced. Strides of extents 0 and 1 do not matter.
//
//   P = floor((H + lower + upper - dilation * (R - 1) - 1) / stride) + 1
//
// dx and dw have the extents of their tensors. For dgrad, P may also be smaller: a transposed
// convolution whose output padding is at least its stride but less than its dilation.
//
// An epilogue's operands, and C, broadcast to out by NumPy's rule: bias (K), residual (N, P, Q, K),
// (N, 1, 1, K), (1, P, Q, 1). A reduction's result has extents of 1 along reduced dimensions, or
// omits leading ones: (K) for one sum per channel. If one matrix of all pixels cannot express an
// operand, the problem has one matrix per image; with groups such operands are refused, as are
// operands that vary along height but not along width.
//
// It converts to GemmArguments, which `get_kernels`, `explain`, `supports`, `compile`, `run`,
// `bind` and artifacts take; views of A and B there have rank 5: (N, D, H, W, C), (K, T, R, S,
// C/g).
class GEMMERY_API ConvArguments {
 public:
  // Throws Error (invalid_argument, unsupported) naming operand, expected and got.
  ConvArguments(ConvKind kind, const Tensor& A, const Tensor& B, const Tensor& out,
                DType accumulator_type, const ConvSettings& settings = {},
                const GemmOptions& options = {});
  // With the accumulator of `default_accumulator`.
  ConvArguments(ConvKind kind, const Tensor& A, const Tensor& B, const Tensor& out,
                const ConvSettings& settings = {}, const GemmOptions& options = {});

  const GemmArguments& as_gemm() const noexcept { return gemm_; }
  operator const GemmArguments&() const noexcept { return gemm_; }  // NOLINT: is one
  const GemmProblem& problem() const noexcept { return gemm_.problem(); }
  Device device() const noexcept { return gemm_.device(); }

  // Replaces memory or scalars of the same problem, as GemmArguments does.
  void set_data(std::string_view operand, const void* data) { gemm_.set_data(operand, data); }
  void set_scalar(std::string_view name, double value) { gemm_.set_scalar(name, value); }
  void set_scalars(double alpha, double beta) { gemm_.set_scalars(alpha, beta); }

 private:
  GemmArguments gemm_;
};

}  // namespace gemmery
