// SPDX-License-Identifier: Apache-2.0
// The state of arguments: the steps of a run, and the buffers that they own.
#pragma once

#include <gemmery/buffer.hpp>
#include <gemmery/describe.hpp>

#include <mutex>
#include <vector>

#include "describe/partial_sums.hpp"
#include "describe/steps.hpp"

namespace gemmery::describe {

// Checks sizes, device, scalars and pointers against a description. Throws Error naming the field.
void check_arguments(const GemmDescription& description, const GemmCoord& size,
                     const GemmPointers& pointers, Device device, const GemmOptions& options);

struct GemmArguments::State {
  GemmOperationUniversal operation;
  GemmCoord size;
  Device device;
  GemmOptions options;
  std::vector<Step> whole = {};      // D complete
  std::vector<Buffer> staging = {};  // copies of interleaved operands, sums

  // Only for GemmSplitKParallel, once the caller has asked for the partial sums.
  std::mutex mutex = {};
  OperandViews views = {};
  std::optional<PartialSums> partial_sums = std::nullopt;

  const std::vector<Step>& steps() {
    const std::lock_guard lock(mutex);
    return partial_sums ? partial_sums->steps : whole;
  }
};

}  // namespace gemmery::describe
