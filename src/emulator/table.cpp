// SPDX-License-Identifier: Apache-2.0
// The emulator as a driver.
#include "emulator/table.hpp"

#include "driver/emulated_driver.hpp"
#include "emulator/device.hpp"

namespace gemmery::driver {

std::unique_ptr<Driver> open_emulated_driver() {
  (void)emulator::schedule_seed();  // a variable in disorder is told here, not by every launch
  DriverApi api;
#define GEMMERY_FILL_IN(name, parameters) api.name = emulator::calls::name;
  GEMMERY_CUDA_FUNCTIONS(GEMMERY_FILL_IN)
#undef GEMMERY_FILL_IN
  return std::make_unique<Driver>(DeviceType::emulated, api, "the emulator", CodeForm::ptx);
}

}  // namespace gemmery::driver
