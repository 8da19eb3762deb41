// SPDX-License-Identifier: Apache-2.0
// The conditions of this process under which a result of tuning holds.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/tuning_entry.hpp>

namespace gemmery::api {

// Found once for each device.
const TuningConditions& conditions_of(const DeviceInfo& device);

}  // namespace gemmery::api
