// SPDX-License-Identifier: Apache-2.0
// Failure texts for devices, types and math that no kernel of a family supports.
#include "providers/templates/constraints.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "providers/templates/name_words.hpp"
#include "runtime/device_family.hpp"
#include "runtime/portable_targets.hpp"

namespace gemmery::templates {

bool contains(std::span<const DType> dtypes, DType dtype) noexcept {
  return std::ranges::find(dtypes, dtype) != dtypes.end();
}

std::string find_device_failure(std::span<const Target> targets, const DeviceInfo& device) {
  if (device.target.is_cpu()) return "device: expected a GPU, got the CPU";
  if (runtime::find_closest(targets, device.target) != nullptr) return {};
  const std::string first = to_string(targets.front());
  const std::string range =
      targets.size() == 1 ? first : first + " to " + to_string(targets.back());
  return fmt::format("target: expected {}, got {}", range, to_string(device.target));
}

std::string find_output_failure(std::span<const DType> outputs, const GemmProblem& problem) {
  return find_output_failure(outputs, outputs, problem);
}

std::string find_output_failure(std::span<const DType> outputs, std::span<const DType> addends,
                                const GemmProblem& problem) {
  if (!contains(outputs, problem.out.dtype)) {
    return fmt::format("out: expected one of {}, got {}", list_names(outputs),
                       name(problem.out.dtype));
  }
  if (problem.c && !contains(addends, problem.c->dtype)) {
    return fmt::format("C: expected one of {}, got {}", list_names(addends),
                       name(problem.c->dtype));
  }
  return {};
}

std::string find_math_failure(const GemmProblem& problem) {
  if (problem.math == Math::native) return {};
  return fmt::format("math: expected native, got {}", name(problem.math));
}

std::string find_cuda_core_failure(std::span<const DType> outputs, const GemmProblem& problem,
                                   const DeviceInfo& device) {
  std::string failure = find_device_failure(runtime::portable_targets, device);
  if (!failure.empty()) return failure;
  if (outputs.empty()) {
    for (const MatrixType* const operand : {&problem.a, &problem.b})
      if (bit_width(operand->dtype) < 8)
        return fmt::format("{}: expected elements of 8 bits or more, got {}",
                           operand == &problem.a ? "A" : "B", name(operand->dtype));
    return fmt::format(
        "accumulator: expected float32 for floats of up to 32 bits, float64 for float64 times "
        "float64, int32 for 8-bit integers, got {} for {} times {}",
        name(problem.accumulator), name(problem.a.dtype), name(problem.b.dtype));
  }
  failure = find_output_failure(outputs, problem);
  return failure.empty() ? find_math_failure(problem) : failure;
}

std::string too_many(std::string_view what, const GemmProblem& problem) {
  return fmt::format("out: expected at most 2147483647 {}, got {} x {}x{} elements", what,
                     problem.l, problem.m, problem.n);
}

}  // namespace gemmery::templates
