// SPDX-License-Identifier: Apache-2.0
// The process-wide store of compiled kernels. Lookups take no lock, so they are safe in a launch
// and in a forked child.
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/target.hpp>

#include <array>
#include <atomic>
#include <memory>

namespace gemmery::runtime {

class DeviceArtifact;

// Nothing is ever removed. Thread-safe.
class KernelStore {
 public:
  using Shared = std::shared_ptr<const DeviceArtifact>;

  // nullptr if there is none.
  const Shared* find(const Kernel& kernel, Target target) const noexcept;

  // Returns the stored artifact: the given one, or one that another thread stored first.
  const Shared& insert(Shared artifact);

  static KernelStore& of_process();

 private:
  struct Node;
  static constexpr std::size_t bucket_count = 4096;

  std::array<std::atomic<const Node*>, bucket_count> buckets_{};
};

}  // namespace gemmery::runtime
