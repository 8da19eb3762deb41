// SPDX-License-Identifier: Apache-2.0
// Numbers of every dtype (core/number.hpp), under the names that this room uses them by.
#pragma once

#include <limits>

#include "core/number.hpp"

namespace gemmery::host {

using namespace number;  // NOLINT(google-build-using-namespace): one room's whole vocabulary

inline constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace gemmery::host
