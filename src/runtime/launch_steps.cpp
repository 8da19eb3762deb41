// SPDX-License-Identifier: Apache-2.0
// Clears a workspace; launches a plan.
#include "runtime/launch_steps.hpp"

#include <gemmery/error.hpp>

#include <cstddef>
#include <cstring>

#include "driver/driver.hpp"
#include "driver/launch.hpp"
#include "driver/tensor_map.hpp"

namespace gemmery::runtime {
namespace {

driver::cuda::Result launch_plan(const driver::DriverApi& api, driver::cuda::Function function,
                                 LaunchPlan& plan, Stream stream) noexcept {
  if (plan.parameter_count == 0) [[likely]]
    return driver::launch(api, function, plan.shape, stream, plan.parameters());
  std::array<void*, LaunchPlan::most_parameters> parameters{};
  for (std::size_t index = 0; index < plan.parameter_count; ++index)
    parameters[index] = plan.parameter_bytes + plan.parameter_offsets[index];
  return driver::launch_with_parameters(api, function, plan.shape, stream, parameters.data());
}

void write_address(std::byte* parameter, void* address) noexcept {
  std::memcpy(parameter, &address, sizeof address);
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

void place_workspace(const LoadedKernel& loaded, LaunchPlan& plan, void* workspace) {
  if (plan.workspace_slot != LaunchPlan::no_slot)
    write_address(plan.parameter_bytes + plan.workspace_slot, workspace);
  if (plan.later_workspace_slot != LaunchPlan::no_slot)
    write_address(plan.parameter_bytes + plan.later_workspace_slot,
                  static_cast<std::byte*>(workspace) + plan.later_workspace_offset);
  if (plan.has_preparation)
    write_address(plan.preparation.parameter_bytes + plan.preparation.workspace_slot, workspace);
  if (plan.workspace_map_count == 0) return;
  const driver::ScopedContext current(*loaded.device);  // profilers change no map without one
  for (std::size_t index = 0; index < plan.workspace_map_count; ++index) {
    const WorkspaceMap& place = plan.workspace_maps[index];
    auto& map =
        *reinterpret_cast<driver::cuda::TensorMap*>(plan.parameter_bytes + place.parameter_offset);
    driver::move_map(loaded.device->api(), map,
                     static_cast<std::byte*>(workspace) + place.workspace_offset);
  }
}

void put_launch(const Kernel& kernel, const LoadedKernel& loaded, LaunchPlan& plan, Stream stream) {
  loaded.code->note_launch();
  const driver::ScopedContext current(*loaded.device);
  const driver::DriverApi& api = loaded.device->api();
  if (plan.has_preparation) {
    Preparation& first = plan.preparation;
    const driver::cuda::Result prepared =
        driver::launch(api, loaded.preparation, first.shape, stream, first.parameter_bytes);
    if (prepared != driver::cuda::Result::success) [[unlikely]]
      throw_launch_error(kernel, api, prepared, first.shape, stream);
  }
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
