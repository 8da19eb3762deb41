// SPDX-License-Identifier: Apache-2.0
// A hash table that only grows: linked lists whose heads are replaced atomically.
#include "runtime/kernel_store.hpp"

#include <cstring>
#include <utility>

#include <xxhash.h>

#include "runtime/device_artifact.hpp"

namespace gemmery::runtime {
namespace {

// The fields in which kernels of one process differ: family, design, operand rules, epilogue.
std::size_t hash_of(const Kernel& kernel, Target target) noexcept {
  struct {
    const Family* family;
    std::array<std::byte, DesignBytes::capacity> design;
    std::uint32_t epilogue;
    std::uint16_t architecture;
    std::uint8_t a, b, out, suffix;
    std::uint8_t padding[6];
  } const identity{&kernel.family(),
                   kernel.design().bytes(),
                   static_cast<std::uint32_t>(kernel.epilogue()),
                   target.architecture,
                   static_cast<std::uint8_t>(kernel.operands().a.dtype),
                   static_cast<std::uint8_t>(kernel.operands().b.dtype),
                   static_cast<std::uint8_t>(kernel.operands().out.dtype),
                   static_cast<std::uint8_t>(target.suffix),
                   {}};
  return XXH3_64bits(&identity, sizeof identity);
}

}  // namespace

struct KernelStore::Node {
  Shared artifact;
  const Node* next;

  bool is_of(const Kernel& kernel, Target target) const noexcept {
    return artifact->target() == target && artifact->kernel() == kernel;
  }
};

const KernelStore::Shared* KernelStore::find(const Kernel& kernel, Target target) const noexcept {
  const Node* node =
      buckets_[hash_of(kernel, target) % bucket_count].load(std::memory_order_acquire);
  while (node != nullptr && !node->is_of(kernel, target)) node = node->next;
  return node == nullptr ? nullptr : &node->artifact;
}

const KernelStore::Shared& KernelStore::insert(Shared artifact) {
  const Kernel& kernel = artifact->kernel();
  const Target target = artifact->target();
  std::atomic<const Node*>& head = buckets_[hash_of(kernel, target) % bucket_count];
  auto node = std::make_unique<Node>(Node{std::move(artifact), nullptr});
  const Node* seen = head.load(std::memory_order_acquire);
  do {
    for (const Node* other = seen; other != nullptr; other = other->next) {
      if (other->is_of(node->artifact->kernel(), target)) return other->artifact;
    }
    node->next = seen;
  } while (!head.compare_exchange_weak(seen, node.get(), std::memory_order_acq_rel,
                                       std::memory_order_acquire));
  return node.release()->artifact;
}

KernelStore& KernelStore::of_process() {
  static KernelStore* const instance = new KernelStore;
  return *instance;
}

}  // namespace gemmery::runtime
