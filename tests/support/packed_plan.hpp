// SPDX-License-Identifier: Apache-2.0
// The launch plan of a kernel (grid, workspace) without launching it.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/kernel.hpp>

#include "driver/driver.hpp"
#include "runtime/device_family.hpp"

namespace gemmery::tests {

// The kernel's family must be a DeviceFamily. `max_multiprocessors` as in RunOptions; 0: all.
inline runtime::LaunchPlan packed_plan(const Kernel& kernel, const GemmArguments& arguments,
                                       int max_multiprocessors = 0) {
  const driver::GpuDevice& gpu = driver::open_device(arguments.device());
  const driver::ScopedContext current(gpu);
  runtime::LaunchPlan plan;
  dynamic_cast<const runtime::DeviceFamily&>(kernel.family())
      .pack({.kernel = kernel,
             .arguments = arguments,
             .device = gpu.info(),
             .max_multiprocessors = max_multiprocessors,
             .driver = gpu.api()},
            plan);
  return plan;
}

}  // namespace gemmery::tests
