// SPDX-License-Identifier: Apache-2.0
// Asks families about a query and ranks the kernels: measured times take precedence over
// predictions; equal kernels stay in the order of the list.
#pragma once

#include <gemmery/family.hpp>
#include <gemmery/history.hpp>

#include <span>
#include <string>
#include <vector>

namespace gemmery::kernel {

// Kernels that serve the query, best first. Families that are unavailable, or on another type of
// device, add none. `history` may be nullptr.
std::vector<RankedKernel> rank_kernels(const Query& query, std::span<const Family* const> families,
                                       const History* history);

// True for a kernel that comes after all others, unless it was measured
// (Family::ranks_last_until_measured).
bool ranks_last(const RankedKernel& kernel) noexcept;

// For every family: the reason why none of its kernels fits, or how many fit.
std::vector<Reason> collect_reasons(const Query& query, std::span<const Family* const> families);

}  // namespace gemmery::kernel
