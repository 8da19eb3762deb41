// SPDX-License-Identifier: Apache-2.0
// The explicit description of a two-dimensional convolution, with PyCUTLASS's names. See
// describe.hpp; docs/describe.md lists the limits of each iterator algorithm.
//
//   const Conv2dOperation operation({.conv_kind = ConvKind::fprop,
//                                    .iterator_algorithm = IteratorAlgorithm::optimized,
//                                    .compute_capability = 80, .tile_description = tile,
//                                    .A = A, .B = B, .C = C,
//                                    .epilogue_functor = LinearCombination(C.element, 4)});
//   const Conv2dProblemSize size{.N = 1, .H = 56, .W = 56, .C = 64, .K = 64, .R = 3, .S = 3,
//                                .padding = {1, 1, 1, 1}};
//   const Conv2dArguments arguments(operation, size, {x, w, nullptr, y}, device);
//   operation.run(arguments, stream);
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gemmery/convolution.hpp>
#include <gemmery/describe.hpp>

namespace gemmery::describe {

using gemmery::name;  // for ConvKind and ConvMode

// PyCUTLASS's ways of addressing images. Gemmery has one kernel for all four; each name keeps its
// limits, and a problem beyond them is refused.
enum class IteratorAlgorithm : std::uint8_t {
  analytic,        // every problem
  optimized,       // filters of up to 32 x 32 taps; dgrad with StrideSupport::Unity: strides of 1
  fixed_channels,  // fprop by tensor cores with as many channels as A's alignment
  few_channels     // fprop by tensor cores with channels in multiples of A's alignment
};
GEMMERY_API std::string_view name(IteratorAlgorithm algorithm) noexcept;

// Whether a dgrad supports strides; fprop and wgrad do with either.
enum class StrideSupport : std::uint8_t { Strided, Unity };
GEMMERY_API std::string_view name(StrideSupport support) noexcept;

// Serial: slices are accumulated one after the other. Parallel: slices store their accumulators,
// which are then added in order. None_: one slice.
enum class SplitKMode : std::uint8_t { None_, Serial, Parallel };
GEMMERY_API std::string_view name(SplitKMode mode) noexcept;

// Layouts are TensorNHWC (filters: KRSC). Operands of int8 fprop may all be interleaved: A and C
// TensorNC32HW32, B TensorC32RSK32.
//
//   kind      A                  B                  C and D
//   fprop     x  (N, H, W, C)    w  (K, R, S, C/g)  y  (N, P, Q, K)
//   dgrad     dy (N, P, Q, K)    w  (K, R, S, C/g)  dx (N, H, W, C)
//   wgrad     dy (N, P, Q, K)    x  (N, H, W, C)    dw (K, R, S, C/g)
struct Conv2dDescription {
  ConvKind conv_kind = ConvKind::fprop;
  IteratorAlgorithm iterator_algorithm = IteratorAlgorithm::optimized;
  int compute_capability = 80;
  TileDescription tile_description = {};
  TensorDescription A = {};
  TensorDescription B = {};
  TensorDescription C = {};  // also describes D
  StrideSupport stride_support = StrideSupport::Strided;
  EpilogueFunctor epilogue_functor = {};  // not a visitor
  SwizzlingFunctor swizzling_functor = SwizzlingFunctor::IdentitySwizzle1;

  friend bool operator==(const Conv2dDescription&, const Conv2dDescription&) = default;
};
GEMMERY_API std::string to_string(const Conv2dDescription& description);

class Conv2dArguments;

// The described kernel. A problem that is a plain GEMM, or needs split k, is run by a kernel with
// the same tile; `Conv2dArguments::kernels` lists the kernels that run.
class GEMMERY_API Conv2dOperation : public Kernel {
 public:
  // Throws Error (invalid_argument, unsupported) naming the field.
  explicit Conv2dOperation(Conv2dDescription description);

  const Conv2dDescription& description() const noexcept { return *description_; }
  Target target() const noexcept;  // the target of its compute capability

  // The CUDA C++ source. Equal descriptions give equal text.
  std::string emit() const;

  // Checks the scalars against the functor. Throws Error (invalid_argument) for a wrong count.
  OutputOp epilogue_type(double alpha, double beta = 0,
                         std::vector<double> activation_args = {}) const;

  // Enqueues the work on a stream and returns; compiles first if necessary. Throws like
  // Kernel::run.
  void run(const Conv2dArguments& arguments, Stream stream) const;

  friend bool operator==(const Conv2dOperation& x, const Conv2dOperation& y) {
    return x.description() == y.description();
  }

 private:
  std::shared_ptr<const Conv2dDescription> description_;
};

// Extents in elements. P and Q follow from the others as in torch,
//   P = (H + padding[0] + padding[1] - dilation_h * (R - 1) - 1) / stride_h + 1,
// unless `output` is set, as by PyCUTLASS's constructor with eighteen numbers: then the upper
// padding has no effect, since images count as zero beyond their last pixel.
struct Conv2dProblemSize {
  std::int64_t N = 1, H = 1, W = 1, C = 1, K = 1, R = 1, S = 1;
  std::array<std::int64_t, 4> padding{0, 0, 0, 0};  // before and after H, before and after W
  std::array<std::int64_t, 2> stride{1, 1};         // along H, along W
  std::array<std::int64_t, 2> dilation{1, 1};
  ConvMode mode = ConvMode::cross_correlation;
  std::int64_t groups = 1;
  std::optional<std::array<std::int64_t, 2>> output = std::nullopt;  // P, Q

  GEMMERY_API std::int64_t P() const noexcept;
  GEMMERY_API std::int64_t Q() const noexcept;
  friend bool operator==(const Conv2dProblemSize&, const Conv2dProblemSize&) = default;
};

// The product of all groups: (NPQ, K, RSC/g), (NHW, C, RSK) or (K, RSC/g, NPQ).
GEMMERY_API GemmCoord implicit_gemm_problem_size(ConvKind kind,
                                                 const Conv2dProblemSize& size) noexcept;

// The operands in memory, packed in their layouts. C may be null with beta = 0. The caller owns the
// memory.
struct Conv2dPointers {
  const void* A = nullptr;
  const void* B = nullptr;
  const void* C = nullptr;
  void* D = nullptr;
};

struct Conv2dOptions {
  SplitKMode split_k_mode = SplitKMode::Serial;
  OutputOp output_op = {};
  int split_k_slices = 1;
  bool bias = false;  // C has one number per channel of D; not for wgrad
};

// Operands of one operation, checked against its description. Copies share the workspace.
class GEMMERY_API Conv2dArguments {
 public:
  // Throws Error: invalid_argument or unsupported naming the field of the problem size or the
  // operand, out_of_memory for partial sums and copies of interleaved operands.
  Conv2dArguments(const Conv2dOperation& operation, const Conv2dProblemSize& problem_size,
                  const Conv2dPointers& pointers, Device device, const Conv2dOptions& options = {});

  const Conv2dProblemSize& problem_size() const noexcept;
  Device device() const noexcept;

  // The kernels that `run` launches, in order; usually one.
  std::vector<Kernel> kernels() const;

  // The accumulators of SplitKMode::Parallel: row-major matrices with the rows and columns of
  // implicit_gemm_problem_size, one for each slice of channels (fprop), filters (dgrad), images or
  // rows of them (wgrad). After this call `run` no longer computes D; a ReductionOperation does.
  // Throws Error (invalid_argument) in other modes.
  Partials partials() const;

  struct State;
  const std::shared_ptr<State>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace gemmery::describe
