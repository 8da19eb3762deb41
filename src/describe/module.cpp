// SPDX-License-Identifier: Apache-2.0
// Compiles many operations in parallel.
#include <gemmery/describe.hpp>

namespace gemmery::describe {

std::vector<CompileResult> add_module(std::span<const GemmOperationUniversal> operations,
                                      std::optional<Target> target) {
  std::vector<CompileJob> jobs;
  for (const GemmOperationUniversal& operation : operations)
    jobs.push_back({operation, target.value_or(operation.target())});
  return compile_all(jobs);
}

}  // namespace gemmery::describe
