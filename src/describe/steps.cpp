// SPDX-License-Identifier: Apache-2.0
// Elementwise steps, and the function that runs steps.
#include "describe/steps.hpp"

#include <gemmery/discovery.hpp>
#include <gemmery/elementwise.hpp>

#include <utility>

#include "describe/refusal.hpp"

namespace gemmery::describe {

Step elementwise_step(const Tensor& out, EpilogueArguments epilogue) {
  const ElementwiseArguments arguments(out, std::move(epilogue));
  const auto kernels = get_kernels(arguments.as_gemm());
  if (kernels.empty()) refuse_unsupported("operation", "an elementwise kernel for a step", "none");
  return {kernels.front(), arguments.as_gemm()};
}

void run_steps(const std::vector<Step>& steps, Stream stream) {
  for (const Step& step : steps) step.kernel.run(step.arguments, {.stream = stream});
}

}  // namespace gemmery::describe
