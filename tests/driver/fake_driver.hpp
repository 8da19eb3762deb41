// SPDX-License-Identifier: Apache-2.0
// A driver whose devices use host memory, for tests of driver and runtime without a GPU: it
// enforces a real driver's rules of contexts, captures and pools, counts calls, and runs a "kernel"
// by calling a function of the test.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "driver/driver.hpp"

namespace gemmery::tests {

// One launch. `parameters` points to the bytes of the kernel's struct.
struct FakeLaunch {
  std::string entry;
  int device = 0;
  driver::cuda::LaunchConfig config;
  const void* parameters = nullptr;
};

using FakeKernel = std::function<void(const FakeLaunch&)>;

// Registers the driver for DeviceType::emulated, with two devices of sm_90; once per process.
const driver::Driver& install_fake_driver();

// Defines the function that runs for an entry of a cubin, and the size of its parameters in bytes.
void define_fake_kernel(const std::string& entry, std::size_t parameter_bytes, FakeKernel kernel);

// Counters since the last `reset_fake_counts`.
struct FakeCounts {
  int launches = 0;
  int allocations = 0;
  int libraries_loaded = 0;
  int libraries_unloaded = 0;
  int functions_prepared = 0;
  int capture_queries = 0;
  int context_pushes = 0;
  int memsets = 0;
  int calls_refused_in_capture = 0;  // each would invalidate a real capture
};
FakeCounts fake_counts();
void reset_fake_counts();

// Makes the next call of a function fail; the name is the manual's.
void fail_next(const std::string& function, driver::cuda::Result result);

// This thread's current context.
driver::cuda::Context fake_current_context();
void set_fake_current_context(driver::cuda::Context context);

inline Device fake_device(int index = 0) { return {DeviceType::emulated, index}; }

}  // namespace gemmery::tests
