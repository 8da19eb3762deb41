// SPDX-License-Identifier: Apache-2.0
// Which facts of the table of devices no source confirms.
#pragma once

#include <string_view>

#include <gemmery/device.hpp>
#include <gemmery/export.hpp>

namespace gemmery {

// The names of the facts that are not confirmed, such as "L2, clock": no source was found for them,
// or sources disagree. Empty where all are. `facts` are those of `find_device_info`, of
// `typical_device_info` or of an emulated device; a driver's need no confirmation.
GEMMERY_API std::string_view unconfirmed_facts(const DeviceInfo& facts);

}  // namespace gemmery
