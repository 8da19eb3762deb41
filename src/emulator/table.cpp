// SPDX-License-Identifier: Apache-2.0
// The emulator as a driver.
#include "emulator/table.hpp"

#include "driver/emulated_driver.hpp"
#include "emulator/device.hpp"
#include "platform/parallel.hpp"

namespace gemmery::driver {

std::unique_ptr<Driver> open_emulated_driver() {
  // Reports an invalid GEMMERY_EMULATOR_SEED once, instead of at every launch.
  (void)emulator::schedule_seed();
  (void)platform::thread_count();
  DriverApi api;
#define GEMMERY_FILL_IN(name, parameters) api.name = emulator::calls::name;
  GEMMERY_CUDA_FUNCTIONS(GEMMERY_FILL_IN)
#undef GEMMERY_FILL_IN
  return std::make_unique<Driver>(DeviceType::emulated, api, "the emulator", CodeForm::ptx);
}

}  // namespace gemmery::driver
