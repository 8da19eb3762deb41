// SPDX-License-Identifier: Apache-2.0
// The function that the driver room needs from the emulator. It is declared here and defined in the
// emulator, a higher room, so that no include points upwards.
#pragma once

#include <memory>

#include "driver/driver.hpp"

namespace gemmery::driver {

// The emulator's table, with one device for each of `known_device_names()`, in that order.
std::unique_ptr<Driver> open_emulated_driver();

}  // namespace gemmery::driver
