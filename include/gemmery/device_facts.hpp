// SPDX-License-Identifier: Apache-2.0
// Facts in the table of devices that no source confirms.
#pragma once

#include <string_view>

#include <gemmery/device.hpp>
#include <gemmery/export.hpp>

namespace gemmery {

// The names of the facts that are not confirmed, such as "L2, clock": no source was found for them,
// or sources disagree. Empty if all are confirmed. `facts` are those of `find_device_info`, of
// `typical_device_info` or of an emulated device. A driver's facts need no confirmation: the result
// is empty for them.
GEMMERY_API std::string_view unconfirmed_facts(const DeviceInfo& facts);

}  // namespace gemmery
