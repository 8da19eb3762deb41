// SPDX-License-Identifier: Apache-2.0
// Collects and sorts.
#include "kernel/rank.hpp"

#include <algorithm>

namespace gemmery::kernel {
namespace {

void apply_history(const Query& query, const History* history, std::vector<RankedKernel>& kernels) {
  if (history == nullptr) return;
  for (RankedKernel& kernel : kernels) {
    const auto measured = history->measured_us(query, kernel);
    if (!measured) continue;
    kernel.predicted_us = *measured;
    kernel.is_measured = true;
  }
}

}  // namespace

std::vector<RankedKernel> rank_kernels(const Query& query, std::span<const Family* const> families,
                                       const History* history) {
  std::vector<RankedKernel> kernels;
  for (const Family* const family : families) {
    if (family->availability() && family->carries(query.problem)) family->match(query, kernels);
  }
  apply_history(query, history, kernels);
  // Stable: equals stay in the order of the providers' list and of each family's own.
  std::ranges::stable_sort(kernels, {}, &RankedKernel::predicted_us);
  return kernels;
}

std::vector<Reason> collect_reasons(const Query& query, std::span<const Family* const> families) {
  std::vector<Reason> reasons;
  for (const Family* const family : families) {
    const Status available = family->availability();
    if (const Status status = available ? family->carries(query.problem) : available; !status) {
      reasons.push_back({.provider = std::string(family->provider()),
                         .family = std::string(family->name()),
                         .design_class = {},
                         .failed = status.error(),
                         .fitting = 0,
                         .nearest = {}});
      continue;
    }
    family->explain(query, reasons);
  }
  return reasons;
}

}  // namespace gemmery::kernel
