// SPDX-License-Identifier: Apache-2.0
// A launch that is packed once and put on streams many times.
#pragma once

#include <gemmery/buffer.hpp>
#include <gemmery/kernel.hpp>

#include <memory>
#include <optional>

#include "driver/stream.hpp"
#include "runtime/device_artifact.hpp"

namespace gemmery::runtime {

class DevicePreparedLaunch final : public PreparedLaunchState {
 public:
  // Loads the kernel and reserves the workspace.
  DevicePreparedLaunch(std::shared_ptr<const DeviceArtifact> artifact,
                       const GemmArguments& arguments, std::size_t workspace_bytes);
  ~DevicePreparedLaunch() override;

  void set_data(std::string_view operand, const void* data) override;
  void set_scalars(double alpha, double beta) override;
  void set_scalar(std::string_view name, double value) override;
  void launch(Stream stream) override;

 private:
  void reserve_workspace(std::size_t bytes);
  void adopt(const GemmArguments& arguments);
  void order_workspace_use(Stream stream);
  void note_workspace_use(Stream stream);

  std::shared_ptr<const DeviceArtifact> artifact_;
  const LoadedKernel& loaded_;
  GemmArguments arguments_;
  LaunchPlan plan_;
  bool is_empty_ = false;

  // Only where the kernel needs scratch memory: launches on different streams share it, so each
  // waits for the one before.
  Buffer workspace_;
  std::optional<driver::Event> last_use_;
  std::optional<Stream> last_stream_;
};

}  // namespace gemmery::runtime
