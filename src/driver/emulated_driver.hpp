// SPDX-License-Identifier: Apache-2.0
// What this room needs of the emulator. The function is defined there, in a higher room, so that no
// include points upwards and an emulated device is found by whoever names it.
#pragma once

#include <memory>

#include "driver/driver.hpp"

namespace gemmery::driver {

// The emulator's table with one device for each name of `known_device_names()`, in that order.
std::unique_ptr<Driver> open_emulated_driver();

}  // namespace gemmery::driver
