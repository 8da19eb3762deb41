// SPDX-License-Identifier: Apache-2.0
// A problem size with its operands in memory, as the arguments of a convolution.
#pragma once

#include <gemmery/conv_arguments.hpp>
#include <gemmery/describe_conv.hpp>

#include <array>
#include <cstdint>

#include "describe/bound_problem.hpp"

namespace gemmery::describe {

// Tensors of rank 4 as A, B and out, and the settings of the convolution.
struct ConvProblem {
  ConvKind kind;
  OperandViews views;
  ConvSettings settings;
};

// Throws Error naming the field of the size.
void check_problem_size(const Conv2dProblemSize& size);

// Operands are NHWC. A bias is a tensor of rank 1.
ConvProblem conv_problem(ConvKind kind, const Conv2dProblemSize& size,
                         const Conv2dPointers& pointers, const Conv2dDescription& description,
                         Device device, bool is_bias);

// The arguments of a kernel of the description.
gemmery::GemmArguments bind_convolution(const Conv2dDescription& description,
                                        const ConvProblem& problem, const OutputOp& output_op);

// The extents of A, B and D of a size.
struct ConvShapes {
  std::array<std::int64_t, 4> a, b, out;
};
ConvShapes shapes_of(ConvKind kind, const Conv2dProblemSize& size) noexcept;

}  // namespace gemmery::describe
