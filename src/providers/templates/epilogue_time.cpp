// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/epilogue_time.hpp"

#include <algorithm>

#include "epilogue/cost.hpp"

namespace gemmery::templates {

double epilogue_us(const GemmProblem& problem, const DeviceInfo& device) {
  if (problem.epilogue == default_epilogue) return 0;
  const epilogue::Graph& graph = rules_of(problem.epilogue).program.graph();
  constexpr double instructions_a_clock = 128;
  constexpr double slow_a_clock = 16;
  const double clocks = epilogue::count_instructions(graph) / instructions_a_clock +
                        epilogue::count_slow_results(graph) / slow_a_clock;
  const double elements = static_cast<double>(problem.l) * static_cast<double>(problem.m) *
                          static_cast<double>(problem.n);
  return elements * clocks / (std::max(device.multiprocessors, 1) * device.clock_ghz * 1e3);
}

}  // namespace gemmery::templates
