// SPDX-License-Identifier: Apache-2.0
// Prepared launches: packed when something changes, only launched otherwise.
#include "runtime/prepared_launch.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include "kernel/rules.hpp"
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
  const std::size_t bytes = std::max(workspace_bytes, plan_.workspace_bytes);
  if (bytes == 0) return;
  workspace_.emplace(arguments.device(), bytes);
  place_workspace(loaded_, plan_, workspace_->lend().data);
  has_zeros_ = plan_.leaves_zeros;
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
  kernel::check_stream(stream, arguments_.device());
  if (is_empty_) return;
  if (plan_.workspace_bytes == 0) [[likely]] {
    put_launch(artifact_->kernel(), loaded_, plan_, stream);
    return;
  }
  workspace_->use(stream, [&] {
    // A failed launch may leave any values there; then the next launch clears.
    const bool had_zeros = std::exchange(has_zeros_, false);
    if (had_zeros)
      put_launch(artifact_->kernel(), loaded_, plan_, stream);
    else
      clear_and_launch(artifact_->kernel(), loaded_, plan_, workspace_->lend().data, stream);
    // A captured memset runs when the graph is launched, if ever.
    has_zeros_ = plan_.leaves_zeros && (had_zeros || !is_capturing(stream));
  });
}

// A problem always needs the same size, unless a user's function computes another.
void DevicePreparedLaunch::check_workspace(const LaunchPlan& plan) const {
  const std::size_t reserved = workspace_ ? workspace_->lend().bytes : 0;
  if (plan.workspace_bytes <= reserved) return;
  throw Error({.kind = ErrorKind::unsupported,
               .operand = artifact_->kernel().name(),
               .expected = "the workspace of " + std::to_string(reserved) +
                           " bytes that was reserved for this problem",
               .got = std::to_string(plan.workspace_bytes)});
}

// If it throws, the launch is unchanged.
void DevicePreparedLaunch::adopt(const GemmArguments& arguments) {
  if (!is_empty_) {
    LaunchPlan plan;
    artifact_->pack(arguments, *loaded_.device, 0, plan);
    check_workspace(plan);
    if (workspace_) place_workspace(loaded_, plan, workspace_->lend().data);
    // The zeroed part of another plan may overlap data that earlier launches have left.
    has_zeros_ = has_zeros_ && plan.leaves_zeros &&
                 plan.zeroed_workspace_bytes == plan_.zeroed_workspace_bytes;
    plan_ = plan;
  }
  arguments_ = arguments;
}

}  // namespace gemmery::runtime
