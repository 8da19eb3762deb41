// SPDX-License-Identifier: Apache-2.0
// The state of a convolution's arguments: the steps of a run, and their buffers.
#pragma once

#include <gemmery/buffer.hpp>
#include <gemmery/describe_conv.hpp>

#include <mutex>
#include <optional>
#include <vector>

#include "describe/conv_problem.hpp"
#include "describe/partial_sums.hpp"
#include "describe/steps.hpp"

namespace gemmery::describe {

struct Conv2dArguments::State {
  Conv2dOperation operation;
  Conv2dProblemSize size;
  Device device;
  Conv2dOptions options;
  std::optional<ConvProblem> problem = std::nullopt;  // of NHWC operands
  std::vector<Step> whole = {};                       // the steps that compute D
  std::vector<Buffer> staging = {};  // copies of interleaved operands and of filters, sums

  // Only for SplitKMode::Parallel, once the caller has asked for the partial sums.
  std::mutex mutex = {};
  std::optional<PartialSums> partial_sums = std::nullopt;

  const std::vector<Step>& steps() {
    const std::lock_guard lock(mutex);
    return partial_sums ? partial_sums->steps : whole;
  }
};

}  // namespace gemmery::describe
