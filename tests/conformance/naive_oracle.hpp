// SPDX-License-Identifier: Apache-2.0
// A second oracle for small problems: the definition, in long double. It shares no arithmetic with
// the library's oracle and checks it.
#pragma once

#include <cstdint>
#include <string>

#include <gemmery/arguments.hpp>
#include <gemmery/kernel.hpp>

namespace gemmery::conformance {

struct NaiveVerdict {
  std::int64_t mismatches = 0;
  std::string first_failure;
};

// Operands on the CPU; math native only. Tensor cores truncate float32 sums, FMAs round them.
NaiveVerdict judge_naively(const GemmArguments& arguments, const OperandRules& rules,
                           bool uses_tensor_cores);

}  // namespace gemmery::conformance
