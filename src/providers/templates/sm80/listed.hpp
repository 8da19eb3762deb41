// SPDX-License-Identifier: Apache-2.0
// The list of all sm80 kernels.
#pragma once

#include <gemmery/kernel.hpp>

#include <functional>

#include "providers/templates/sm80/design.hpp"

namespace gemmery::templates {

// Calls visit(rules, tile) for every listed kernel, always in the same order.
void for_each_listed_sm80(const std::function<void(const OperandRules&, const Sm80Tile&)>& visit);

}  // namespace gemmery::templates
