// SPDX-License-Identifier: Apache-2.0
// One run of a kernel on operands that we fill, guard and check: the basis of `verify` and the
// conformance suite.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gemmery/buffer.hpp>
#include <gemmery/verify.hpp>

#include "api/drawn_groups.hpp"
#include "api/epilogue_operands.hpp"
#include "api/guarded_operand.hpp"
#include "api/random_numbers.hpp"
#include "providers/host/error_model.hpp"

namespace gemmery::api {

// A trial's parameters. `verify` leaves the fields after `options` at their defaults.
struct Trial {
  ProblemLine line;
  VerifyOptions options;
  bool in_place = false;              // C is out
  bool nan_inputs = false;            // A and B are all NaN: with alpha = 0 they must not be read
  bool with_specials = false;         // NaN, infinities and the like in the tensors of an epilogue
  Pattern pattern = Pattern::random;  // of A and B
  double scale = 1;                   // of normal and uniform fills, for results that overflow
  int repeats = 1;  // runs on the same operands; a deterministic kernel must give the same bits
  // Limits persistent grids, so that blocks process several tiles; 0: no limit.
  int max_multiprocessors = 0;
  bool even_groups = false;                     // instead of random sizes
  std::optional<Stream> stream = std::nullopt;  // on options.device; by default one is made
  // Called after the run with the arguments as the oracle reads them, on the CPU.
  std::function<void(const GemmArguments&)> inspect = {};
};

// True if every partial sum and result of an integer fill is exact in the kernel's arithmetic, so
// that bits can be compared.
bool is_exact_with_integers(const ProblemLine& line, const OperandRules& rules);

// The operands of a trial in host memory, filled.
struct TrialOperands {
  GuardedOperand a, b, out;
  std::optional<GuardedOperand> c;         // nothing if C is out
  std::vector<GuardedOperand> epilogue;    // its tensors, in the order of `epilogue_tensors`
  std::vector<GuardedOperand> companions;  // in the order of `companion_tensors`
  std::optional<DrawnGroups> groups;       // elements in no group are poisoned

  TrialOperands(const Trial& trial, const OperandRules& rules);
};

// Throws what `run` throws, and Error (out_of_memory) if the host lacks memory for the operands.
VerifyReport run_trial(const Trial& trial, const Kernel& kernel);

// A kernel's arithmetic, by the fields of its design: tensor cores truncate where FMAs round.
host::DeclaredMath declared_math_of(const Kernel& kernel);

// Checks the result in `arguments.out()`, on the CPU, against the oracle; `exact` requires equal
// values instead of bounds.
VerifyReport judge(const GemmArguments& arguments, const host::DeclaredMath& declared, bool exact);

}  // namespace gemmery::api
