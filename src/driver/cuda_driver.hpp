// SPDX-License-Identifier: Apache-2.0
// Opens NVIDIA's driver.
#pragma once

#include <memory>

#include "driver/driver.hpp"

namespace gemmery::driver {

// Opens libcuda.so.1 by the system's loader and resolves its functions for the declared API
// version, with the legacy default stream. Throws Error (unavailable) with the searched names.
std::unique_ptr<Driver> open_cuda_driver();

}  // namespace gemmery::driver
