// SPDX-License-Identifier: Apache-2.0
// Asks families about a query and orders the answers: measured times first in trust, then
// predictions; equals stay in the order of the list.
#pragma once

#include <gemmery/family.hpp>
#include <gemmery/history.hpp>

#include <span>
#include <string>
#include <vector>

namespace gemmery::kernel {

// Kernels that serve the query, best first. Families that are unavailable, or on another kind of
// device, add none. `history` may be nullptr.
std::vector<RankedKernel> rank_kernels(const Query& query, std::span<const Family* const> families,
                                       const History* history);

// For every family, why not, or how many.
std::vector<Reason> collect_reasons(const Query& query, std::span<const Family* const> families);

}  // namespace gemmery::kernel
