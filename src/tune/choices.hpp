// SPDX-License-Identifier: Apache-2.0
// Stored results by problem, for discovery.
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/tuning_entry.hpp>

#include <memory>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "tune/entry_text.hpp"

namespace gemmery::tuning {

// One result. Its kernel is looked up by name when it is first needed, since kernels may be
// registered after the file was read.
class Choice {
 public:
  explicit Choice(TuningEntry entry) : entry_(std::move(entry)) {}

  const TuningEntry& entry() const noexcept { return entry_; }

  // The kernel as it was found last; nothing before `set_kernel`.
  std::optional<Kernel> kernel() const;
  void set_kernel(const Kernel& kernel) const;

 private:
  TuningEntry entry_;
  mutable std::shared_mutex mutex_;
  mutable std::optional<Kernel> kernel_;
};

// Immutable but for the kernels of its choices.
class Choices {
 public:
  // The last entry of equal problems and conditions counts. Entries whose problem this version
  // cannot read are left out.
  explicit Choices(FileContent content);

  bool is_empty() const noexcept { return by_problem_.empty(); }

  using List = std::vector<std::shared_ptr<const Choice>>;
  // Those of a problem under any conditions, in the order of the file; empty if there are none.
  const List& of(const GemmProblem& problem) const;

 private:
  std::unordered_map<GemmProblem, List> by_problem_;
};

}  // namespace gemmery::tuning
