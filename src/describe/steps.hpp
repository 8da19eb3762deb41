// SPDX-License-Identifier: Apache-2.0
// The launches of one call of `run`, in order.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/stream.hpp>

#include <vector>

namespace gemmery::describe {

struct Step {
  Kernel kernel;
  gemmery::GemmArguments arguments;
};

// An elementwise kernel that writes `out`.
Step elementwise_step(const Tensor& out, EpilogueArguments epilogue);

void run_steps(const std::vector<Step>& steps, Stream stream);

}  // namespace gemmery::describe
