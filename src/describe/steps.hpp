// SPDX-License-Identifier: Apache-2.0
// What a call of `run` launches, in order.
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

inline void run_steps(const std::vector<Step>& steps, Stream stream) {
  for (const Step& step : steps) {
    RunOptions options{.stream = stream};
    step.kernel.run(step.arguments, options);
  }
}

}  // namespace gemmery::describe
