// SPDX-License-Identifier: Apache-2.0
// Checks a stream, clears a workspace, launches.
#include "runtime/launch_steps.hpp"

#include <gemmery/error.hpp>

#include "driver/driver.hpp"
#include "driver/launch.hpp"

namespace gemmery::runtime {
namespace {

[[noreturn]] void throw_stream_error(Stream stream, Device operands) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "stream",
               .expected = "a stream of the operands' device, " + to_string(operands),
               .got = "one of " + to_string(stream.device())});
}

[[noreturn]] void throw_launch_error(const Kernel& kernel, const driver::DriverApi& api,
                                     driver::cuda::Result result,
                                     const driver::LaunchShape& shape) {
  throw Error({.kind = result == driver::cuda::Result::out_of_memory ? ErrorKind::out_of_memory
                                                                     : ErrorKind::launch,
               .operand = "cuLaunchKernelEx of " + kernel.name(),
               .expected = {},
               .got = driver::describe(api, result),
               .hint = {},
               .cause = driver::to_string(shape)});
}

}  // namespace

void check_stream(Stream stream, Device operands) {
  if (stream.device() != operands) [[unlikely]]
    throw_stream_error(stream, operands);
}

void put_launch(const Kernel& kernel, const LoadedKernel& loaded, LaunchPlan& plan, Stream stream) {
  loaded.code->note_launch();
  const driver::ScopedContext current(*loaded.device);
  const driver::DriverApi& api = loaded.device->api();
  const driver::cuda::Result result =
      driver::launch(api, loaded.function, plan.shape, stream, plan.parameter_bytes);
  if (result != driver::cuda::Result::success) [[unlikely]]
    throw_launch_error(kernel, api, result, plan.shape);
}

void clear_and_launch(const Kernel& kernel, const LoadedKernel& loaded, LaunchPlan& plan,
                      void* workspace, Stream stream) {
  if (plan.zeroed_workspace_bytes != 0) {
    const driver::ScopedContext current(*loaded.device);
    const driver::DriverApi& api = loaded.device->api();
    driver::check(api,
                  api.cuMemsetD8Async(driver::device_pointer(workspace), 0,
                                      plan.zeroed_workspace_bytes, driver::stream_handle(stream)),
                  "cuMemsetD8Async");
  }
  put_launch(kernel, loaded, plan, stream);
}

}  // namespace gemmery::runtime
