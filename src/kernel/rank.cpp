// SPDX-License-Identifier: Apache-2.0
// Collects kernels from families and sorts them.
#include "kernel/rank.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <new>
#include <utility>

#include <gemmery/error.hpp>

#include "kernel/forms.hpp"
#include "kernel/plain_gemm.hpp"
#include "kernel/rules.hpp"

namespace gemmery::kernel {
namespace {

void apply_history(const Query& query, const History* history, std::vector<RankedKernel>& kernels) {
  if (history == nullptr || history->is_empty()) return;
  for (RankedKernel& kernel : kernels) {
    const auto measured = history->measured_us(query, kernel);
    if (!measured) continue;
    kernel.predicted_us = *measured;
    kernel.is_measured = true;
  }
}

// The values that are moved while sorting: a fifth of a kernel's size.
struct Rank {
  bool is_last;
  double predicted_us;
  std::size_t index;

  bool operator<(const Rank& other) const noexcept {
    return is_last == other.is_last ? predicted_us < other.predicted_us : other.is_last;
  }
};

// Equal kernels stay in the order of the providers and of each family.
std::vector<RankedKernel> sort_stably(const std::vector<RankedKernel>& kernels) {
  std::vector<Rank> ranks;
  ranks.reserve(kernels.size());
  for (const RankedKernel& kernel : kernels)
    ranks.push_back({ranks_last(kernel), kernel.predicted_us, ranks.size()});
  std::stable_sort(ranks.begin(), ranks.end());
  std::vector<RankedKernel> sorted;
  sorted.reserve(kernels.size());
  for (const Rank& rank : ranks) sorted.push_back(kernels[rank.index]);
  return sorted;
}

// A family counts what fits, but does not know whether determinism is required.
void explain_determinism(const Family& family, const Query& query, std::vector<Reason>& reasons) {
  std::vector<RankedKernel> kernels;
  family.match(query, kernels);
  const auto varying = std::ranges::find_if_not(kernels, keeps_determinism);
  if (varying == kernels.end()) return;
  reasons.push_back(
      {.provider = std::string(family.provider()),
       .family = std::string(family.name()),
       .design_class = {},
       .failed = "of those that fit, some are left out: " + check_determinism(*varying).error(),
       .fitting = 0,
       .nearest = {*varying}});
}

// An exception of one family does not affect the others; `explain` reports it. Exceptions that end
// the call pass through.
void match_family(const Family& family, const Query& query, std::vector<RankedKernel>& kernels) {
  const auto before = static_cast<std::ptrdiff_t>(kernels.size());
  try {
    if (family.availability() && check_form(family, query.problem)) family.match(query, kernels);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const Interruption&) {
    throw;
  } catch (...) {
    kernels.erase(kernels.begin() + before, kernels.end());
  }
}

Reason refusal_of(const Family& family, std::string failed) {
  return {.provider = std::string(family.provider()),
          .family = std::string(family.name()),
          .design_class = {},
          .failed = std::move(failed),
          .fitting = 0,
          .nearest = {}};
}

void explain_family(const Family& family, const Query& query, std::vector<Reason>& reasons) {
  const auto before = static_cast<std::ptrdiff_t>(reasons.size());
  const auto refuse = [&](std::string failed) {
    reasons.erase(reasons.begin() + before, reasons.end());
    reasons.push_back(refusal_of(family, std::move(failed)));
  };
  try {
    const Status available = family.availability();
    const Status status = available ? check_form(family, query.problem) : available;
    if (!status) return refuse(status.error());
    family.explain(query, reasons);
    if (is_determinism_required()) explain_determinism(family, query, reasons);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const Interruption&) {
    throw;
  } catch (const std::exception& error) {
    refuse(std::string("this family threw: ") + error.what());
  } catch (...) {
    refuse("this family threw something that is no std::exception");
  }
}

}  // namespace

bool ranks_last(const RankedKernel& kernel) noexcept {
  return !kernel.is_measured && kernel.family().ranks_last_until_measured();
}

std::vector<RankedKernel> rank_kernels(const Query& query, std::span<const Family* const> families,
                                       const History* history) {
  std::vector<RankedKernel> kernels;
  const QueryAsFamiliesSee seen(query);
  for (const Family* const family : families) {
    match_family(*family, *seen, kernels);
  }
  if (is_determinism_required()) {
    std::erase_if(kernels, [](const Kernel& kernel) { return !keeps_determinism(kernel); });
  }
  apply_history(query, history, kernels);
  return sort_stably(kernels);
}

std::vector<Reason> collect_reasons(const Query& query, std::span<const Family* const> families) {
  std::vector<Reason> reasons;
  const QueryAsFamiliesSee seen(query);
  for (const Family* const family : families) explain_family(*family, *seen, reasons);
  return reasons;
}

}  // namespace gemmery::kernel
