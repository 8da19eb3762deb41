// SPDX-License-Identifier: Apache-2.0
// Verification: checks a kernel's result against reference results in float64 (or exact integers)
// with proven bounds.
#pragma once

#include <cstdint>
#include <string>

#include <gemmery/export.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>

namespace gemmery {

// The random numbers with which operands are filled.
enum class Fill : std::uint8_t {
  normal,    // standard normal, rounded to the operand's type
  uniform,   // [-1, 1]
  integers,  // small enough that every partial sum and the result are exact: the comparison is of
             // bits
};

struct VerifyOptions {
  Fill fill = Fill::normal;
  std::uint64_t seed = 0;  // 0 = fresh; the report has it
  bool guard_bands =
      true;  // NaN around inputs, canaries around outputs, poison in outputs and workspace
  Device device = Device::cpu();
};

// The result of a check. `passed`: every element is within its bound, and nothing else was written.
struct VerifyReport {
  bool passed = false;
  std::uint64_t seed = 0;
  std::int64_t elements = 0;
  std::int64_t mismatches = 0;  // elements outside their bound
  // Elements without a bound, or with a sign as their only bound, because the epilogue may amplify
  // errors without limit (a division by a value that may be 0). They do not count in worst_ratio
  // and worst_error.
  std::int64_t without_bound = 0;
  std::int64_t open = 0;              // its former name, until the next version
  double worst_ratio = 0;             // largest |result - exact| / bound; at most 1 passes
  double worst_error = 0;             // largest |result - exact|
  std::int64_t guard_violations = 0;  // bytes outside out that changed
  // "componentwise bound", "exact integers", "Freivalds (3 vectors)", "intervals"
  std::string method;
  std::string first_failure;  // indices, got, exact, bound; empty when passed
};

// Fills operands with random numbers, runs the kernel on the device and checks every element
// against its bound. Problems too large for the oracle use Freivalds' check instead. Throws
// what `run` throws.
GEMMERY_API VerifyReport verify(const ProblemLine& line, const Kernel& kernel,
                                const VerifyOptions& options = {});

// Checks a result that this kernel has stored to out; operands must be on the CPU. The bounds
// depend on the kernel: tensor cores round differently from fused multiply-adds, and may add a
// bias. A user's kernel gets the bounds of fused multiply-adds, unless its design field
// `instruction` is `wgmma` or `mma`.
GEMMERY_API VerifyReport check_result(const GemmArguments& arguments, const Kernel& kernel);
// Checks a result that the caller computed by fused multiply-adds.
GEMMERY_API VerifyReport check_result(const GemmArguments& arguments, const OperandRules& declared);

}  // namespace gemmery
