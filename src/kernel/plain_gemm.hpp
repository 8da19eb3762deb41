// SPDX-License-Identifier: Apache-2.0
// Convolutions that are plain GEMMs: families are asked about the GEMM, and run it.
#pragma once

#include <optional>

#include <gemmery/arguments.hpp>
#include <gemmery/family.hpp>
#include <gemmery/problem.hpp>

#include "operation/convolution.hpp"

namespace gemmery::kernel {

// A problem or arguments as families see them: the plain GEMM of a convolution that is one,
// otherwise the given ones.
class AsFamiliesSee {
 public:
  explicit AsFamiliesSee(const GemmProblem& problem)
      : problem_(&problem), plain_(operation::as_plain_gemm(problem)) {}
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
    if (arguments != nullptr && arguments->problem().convolution)
      plain_ = operation::ConvolutionBinder::as_plain_gemm(*arguments);
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
