// SPDX-License-Identifier: Apache-2.0
// Prepared launches: pack when something changes, launch otherwise.
#include "runtime/prepared_launch.hpp"

#include <algorithm>
#include <utility>

#include "core/invariant.hpp"
#include "driver/stream.hpp"
#include "runtime/launch_steps.hpp"

namespace gemmery::runtime {

DevicePreparedLaunch::DevicePreparedLaunch(std::shared_ptr<const DeviceArtifact> artifact,
                                           const GemmArguments& arguments,
                                           std::size_t workspace_bytes)
    : artifact_(std::move(artifact)),
      loaded_(artifact_->loaded_on(arguments.device())),
      arguments_(arguments),
      is_empty_(is_empty_output(arguments.problem())) {
  if (is_empty_) return;
  artifact_->pack(arguments_, *loaded_.device, 0, plan_);
  reserve_workspace(std::max(workspace_bytes, plan_.workspace_bytes));
  plan_.place_workspace(workspace_.data());
}

// The memory goes back to the pool when the last launch that uses it is done.
DevicePreparedLaunch::~DevicePreparedLaunch() {
  if (!last_stream_ || driver::is_forked_after_use()) return;
  try {
    last_use_->make_wait(loaded_.device->housekeeping_stream());
  } catch (...) {
    // The process is ending or the device is lost: nothing uses the memory any more.
  }
}

void DevicePreparedLaunch::set_data(std::string_view operand, const void* data) {
  GemmArguments changed = arguments_;
  changed.set_data(operand, data);
  adopt(changed);
}

void DevicePreparedLaunch::set_scalars(double alpha, double beta) {
  GemmArguments changed = arguments_;
  changed.set_scalars(alpha, beta);
  adopt(changed);
}

void DevicePreparedLaunch::set_scalar(std::string_view name, double value) {
  GemmArguments changed = arguments_;
  changed.set_scalar(name, value);
  adopt(changed);
}

void DevicePreparedLaunch::launch(Stream stream) {
  driver::refuse_after_fork();
  check_stream(stream, arguments_.device());
  if (is_empty_) return;
  if (plan_.workspace_bytes == 0) [[likely]] {
    put_launch(artifact_->kernel(), loaded_, plan_, stream);
    return;
  }
  const bool is_captured = driver::is_capturing(*loaded_.device, stream);
  if (!is_captured) order_workspace_use(stream);
  clear_and_launch(artifact_->kernel(), loaded_, plan_, workspace_.data(), stream);
  if (!is_captured) note_workspace_use(stream);
}

void DevicePreparedLaunch::reserve_workspace(std::size_t bytes) {
  if (bytes == 0) return;
  const Stream stream = loaded_.device->housekeeping_stream();
  workspace_ = Buffer(bytes, stream);
  last_use_.emplace(arguments_.device(), driver::Event::Kind::ordering);
  // Any stream may launch from now on, without waiting for the one that the memory was taken on.
  const driver::ScopedRelaxedCapture relaxed(loaded_.device->api());
  synchronize(stream);
}

// All or nothing: what throws leaves the launch as it was.
void DevicePreparedLaunch::adopt(const GemmArguments& arguments) {
  if (!is_empty_) {
    LaunchPlan plan;
    artifact_->pack(arguments, *loaded_.device, 0, plan);
    require(plan.workspace_bytes <= workspace_.bytes(),
            "one problem asks for two sizes of workspace");
    plan.place_workspace(workspace_.data());
    plan_ = plan;
  }
  arguments_ = arguments;
}

void DevicePreparedLaunch::order_workspace_use(Stream stream) {
  if (last_stream_ && *last_stream_ != stream) last_use_->make_wait(stream);
}

void DevicePreparedLaunch::note_workspace_use(Stream stream) {
  last_use_->record(stream);
  last_stream_ = stream;
}

}  // namespace gemmery::runtime
