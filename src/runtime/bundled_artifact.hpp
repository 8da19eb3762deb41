// SPDX-License-Identifier: Apache-2.0
// One kernel compiled for several targets: each device gets the code that is closest to it.
#pragma once

#include <gemmery/kernel.hpp>

#include <memory>
#include <vector>

#include "runtime/device_artifact.hpp"

namespace gemmery::runtime {

class BundledArtifact final : public ArtifactState {
 public:
  // At least one part, all of one kernel, each for another target.
  explicit BundledArtifact(std::vector<std::shared_ptr<const DeviceArtifact>> parts);

  const Kernel& kernel() const noexcept override { return parts_.front()->kernel(); }
  std::vector<Target> targets() const override { return targets_; }
  // The source for the first target.
  std::string_view source() const noexcept override { return parts_.front()->source(); }
  std::string_view log() const noexcept override { return parts_.front()->log(); }
  double compile_ms() const noexcept override { return parts_.front()->compile_ms(); }
  std::optional<CodeResources> resources() const override { return parts_.front()->resources(); }

  void load(Device device) const override { part_for(device).load(device); }
  void run(const GemmArguments& arguments, const RunOptions& options) const override;
  PreparedLaunch bind(const GemmArguments& arguments, std::size_t workspace_bytes) const override;

  const std::vector<std::shared_ptr<const DeviceArtifact>>& parts() const noexcept {
    return parts_;
  }

 private:
  // Throws Error (unsupported) if no part runs there.
  const DeviceArtifact& part_for(Device device) const;

  std::vector<std::shared_ptr<const DeviceArtifact>> parts_;
  std::vector<Target> targets_;  // in the order of the parts
};

}  // namespace gemmery::runtime
