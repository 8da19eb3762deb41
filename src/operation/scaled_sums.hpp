// SPDX-License-Identifier: Apache-2.0
// Scales that do not vary along k, as factors of the sums in the epilogue: every family that has
// epilogues runs them.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/problem.hpp>

#include <memory>
#include <optional>

namespace gemmery::operation {

// The problem with such scales as operands of its epilogue, called scale_a, scale_b, …. alpha and
// beta of the default program become numbers; a factor of 0 still hides NaN. nullopt if there are
// no such scales.
std::optional<GemmProblem> with_scaled_sums(const GemmProblem& problem);

// Throws Error (invalid_argument) if the problem's own program uses such a name.
void check_scale_words(const GemmProblem& problem);

class ScaleBinder {
 public:
  // The arguments of that problem; nullptr if there are no such scales.
  static std::shared_ptr<const GemmArguments> bind(const GemmArguments& arguments);
  // Those that were made when the arguments were bound.
  static const GemmArguments* scaled_sums(const GemmArguments& arguments) noexcept {
    return arguments.scaled_sums_.get();
  }
};

}  // namespace gemmery::operation
