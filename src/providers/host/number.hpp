// SPDX-License-Identifier: Apache-2.0
// Numbers of every dtype (core/number.hpp), under the names that this room uses them by.
#pragma once

#include "core/number.hpp"

namespace gemmery::host {

using namespace number;  // NOLINT(google-build-using-namespace): one room's whole vocabulary

}  // namespace gemmery::host
