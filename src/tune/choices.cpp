// SPDX-License-Identifier: Apache-2.0
#include "tune/choices.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include <gemmery/error.hpp>

namespace gemmery::tuning {
namespace {

std::optional<GemmProblem> problem_of(const TuningEntry& entry) {
  try {
    return parse_problem(entry.problem).problem;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<Kernel> Choice::kernel() const {
  const std::shared_lock lock(mutex_);
  return kernel_;
}

void Choice::set_kernel(const Kernel& kernel) const {
  const std::scoped_lock lock(mutex_);
  kernel_ = kernel;
}

Choices::Choices(FileContent content) {
  for (ReadEntry& read : content.entries) {
    const auto problem = problem_of(read.entry);
    if (!problem) continue;
    List& list = by_problem_[*problem];
    std::erase_if(list, [&](const std::shared_ptr<const Choice>& older) {
      return older->entry().conditions == read.entry.conditions;
    });
    list.push_back(std::make_shared<const Choice>(std::move(read.entry)));
  }
}

const Choices::List& Choices::of(const GemmProblem& problem) const {
  static const auto* const none = new List;
  const auto found = by_problem_.find(problem);
  return found == by_problem_.end() ? *none : found->second;
}

}  // namespace gemmery::tuning
