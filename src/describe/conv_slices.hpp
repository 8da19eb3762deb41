// SPDX-License-Identifier: Apache-2.0
// Split k of a convolution in two passes: convolutions of slices, each stored as its accumulators.
#pragma once

#include <gemmery/buffer.hpp>
#include <gemmery/describe_conv.hpp>

#include <vector>

#include "describe/conv_problem.hpp"
#include "describe/described_kernel.hpp"
#include "describe/partial_sums.hpp"

namespace gemmery::describe {

// A request for the kernel of a description, with its arguments.
struct ConvStepRequest {
  const Conv2dDescription& description;
  const OperandRules& rules;
  gemmery::GemmArguments arguments;
  KSlices slices = {};
  EpilogueId epilogue = default_epilogue;
};
// Throws Error (unsupported) if the kernel does not support the arguments.
Step make_conv_step(const ConvStepRequest& request);

// Makes at most `slices` slices: of channels in fprop and of filters in dgrad, in whole blocks of
// k; of images, or of rows of them, in wgrad. `scratch` receives packed copies of slices of
// filters, which fprop kernels require.
PartialSums split_convolution(const Conv2dDescription& description, const Conv2dProblemSize& size,
                              const ConvProblem& problem, int slices, std::vector<Buffer>& scratch);

}  // namespace gemmery::describe
