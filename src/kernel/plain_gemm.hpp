// SPDX-License-Identifier: Apache-2.0
// Problems as families see them: a convolution that is a plain GEMM as this GEMM, scales that do
// not vary along k as factors in the epilogue.
#pragma once

#include <optional>

#include <gemmery/arguments.hpp>
#include <gemmery/family.hpp>
#include <gemmery/problem.hpp>

#include "operation/convolution.hpp"
#include "operation/scaled_sums.hpp"

namespace gemmery::kernel {

// A problem or arguments as families see them, otherwise the given ones.
class AsFamiliesSee {
 public:
  explicit AsFamiliesSee(const GemmProblem& problem)
      : problem_(&problem),
        plain_(problem.convolution ? operation::as_plain_gemm(problem)
                                   : operation::with_scaled_sums(problem)) {}
  const GemmProblem& operator*() const noexcept { return plain_ ? *plain_ : *problem_; }

 private:
  const GemmProblem* problem_;
  std::optional<GemmProblem> plain_;
};

class ArgumentsAsFamiliesSee {
 public:
  explicit ArgumentsAsFamiliesSee(const GemmArguments& arguments)
      : ArgumentsAsFamiliesSee(&arguments) {}
  explicit ArgumentsAsFamiliesSee(const GemmArguments* arguments) : arguments_(arguments) {
    if (arguments == nullptr) return;
    if (arguments->problem().convolution)
      plain_ = operation::ConvolutionBinder::as_plain_gemm(*arguments);
    else if (const auto* const scaled = operation::ScaleBinder::scaled_sums(*arguments))
      arguments_ = scaled;
  }
  const GemmArguments& operator*() const noexcept { return *get(); }
  const GemmArguments* get() const noexcept { return plain_ ? &*plain_ : arguments_; }

 private:
  const GemmArguments* arguments_;
  std::optional<GemmArguments> plain_;
};

// The same for a query; its device does not change.
class QueryAsFamiliesSee {
 public:
  explicit QueryAsFamiliesSee(const Query& query)
      : problem_(query.problem), device_(query.device), arguments_(query.arguments) {}
  Query operator*() const noexcept { return {*problem_, device_, arguments_.get()}; }

 private:
  AsFamiliesSee problem_;
  const DeviceInfo& device_;
  ArgumentsAsFamiliesSee arguments_;
};

}  // namespace gemmery::kernel
