// SPDX-License-Identifier: Apache-2.0
// A launch that is packed once and enqueued many times.
#pragma once

#include <gemmery/kernel.hpp>

#include <memory>
#include <optional>

#include "runtime/device_artifact.hpp"
#include "runtime/launch_workspace.hpp"

namespace gemmery::runtime {

class DevicePreparedLaunch final : public PreparedLaunchState {
 public:
  // Loads the kernel and reserves the workspace.
  DevicePreparedLaunch(std::shared_ptr<const DeviceArtifact> artifact,
                       const GemmArguments& arguments, std::size_t workspace_bytes);

  void set_data(std::string_view operand, const void* data) override;
  void set_scalars(double alpha, double beta) override;
  void set_scalar(std::string_view name, double value) override;
  void launch(Stream stream) override;

 private:
  void adopt(const GemmArguments& arguments);
  void check_workspace(const LaunchPlan& plan) const;

  std::shared_ptr<const DeviceArtifact> artifact_;
  const LoadedKernel& loaded_;
  GemmArguments arguments_;
  LaunchPlan plan_;
  bool is_empty_ = false;

  std::optional<LaunchWorkspace> workspace_;  // only if the kernel needs one
  bool has_zeros_ = false;  // true if the zeroed part is zero before the next launch
};

}  // namespace gemmery::runtime
