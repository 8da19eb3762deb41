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

driver::cuda::Result launch_plan(const driver::DriverApi& api, driver::cuda::Function function,
                                 LaunchPlan& plan, Stream stream) noexcept {
  if (plan.parameter_count == 0) [[likely]]
    return driver::launch(api, function, plan.shape, stream, plan.parameter_bytes);
  std::array<void*, LaunchPlan::most_parameters> parameters{};
  for (std::size_t index = 0; index < plan.parameter_count; ++index)
    parameters[index] = plan.parameter_bytes + plan.parameter_offsets[index];
  return driver::launch_with_parameters(api, function, plan.shape, stream, parameters.data());
}

// The kernel's own handle is valid, so an invalid handle is the stream.
[[noreturn]] void throw_launch_error(const Kernel& kernel, const driver::DriverApi& api,
                                     driver::cuda::Result result, const driver::LaunchShape& shape,
                                     Stream stream) {
  const std::string call = "cuLaunchKernelEx of " + kernel.name();
  if (result == driver::cuda::Result::invalid_handle)
    driver::throw_stream_call_error(api, result, call, stream);
  throw Error({.kind = result == driver::cuda::Result::out_of_memory ? ErrorKind::out_of_memory
                                                                     : ErrorKind::launch,
               .operand = call,
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
  const driver::cuda::Result result = launch_plan(api, loaded.function, plan, stream);
  if (result != driver::cuda::Result::success) [[unlikely]]
    throw_launch_error(kernel, api, result, plan.shape, stream);
}

void clear_and_launch(const Kernel& kernel, const LoadedKernel& loaded, LaunchPlan& plan,
                      void* workspace, Stream stream) {
  if (plan.zeroed_workspace_bytes != 0) {
    const driver::ScopedContext current(*loaded.device);
    const driver::DriverApi& api = loaded.device->api();
    driver::check_on_stream(
        api,
        api.cuMemsetD8Async(driver::device_pointer(workspace), 0, plan.zeroed_workspace_bytes,
                            driver::stream_handle(stream)),
        "cuMemsetD8Async", stream);
  }
  put_launch(kernel, loaded, plan, stream);
}

}  // namespace gemmery::runtime
