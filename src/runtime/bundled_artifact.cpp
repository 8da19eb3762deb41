// SPDX-License-Identifier: Apache-2.0
// Chooses the part for a device.
#include "runtime/bundled_artifact.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <utility>

namespace gemmery::runtime {

BundledArtifact::BundledArtifact(std::vector<std::shared_ptr<const DeviceArtifact>> parts)
    : parts_(std::move(parts)) {
  for (const auto& part : parts_) targets_.push_back(part->target());
}

const DeviceArtifact& BundledArtifact::part_for(Device device) const {
  const driver::GpuDevice& gpu = driver::open_device(device);
  const Target* const best = find_closest(targets_, gpu.info().target);
  if (best != nullptr) return *parts_[static_cast<std::size_t>(best - targets_.data())];
  std::string list;
  for (const Target target : targets_) list += (list.empty() ? "" : " ") + to_string(target);
  throw Error({.kind = ErrorKind::unsupported,
               .operand = kernel().name(),
               .expected = "a device that code for " + list + " runs on",
               .got = to_string(gpu.info().target) + " (" + to_string(device) + ")",
               .hint = "compile it for that device, too"});
}

void BundledArtifact::run(const GemmArguments& arguments, const RunOptions& options) const {
  part_for(arguments.device()).run(arguments, options);
}

PreparedLaunch BundledArtifact::bind(const GemmArguments& arguments,
                                     std::size_t workspace_bytes) const {
  return part_for(arguments.device()).bind(arguments, workspace_bytes);
}

}  // namespace gemmery::runtime
