// SPDX-License-Identifier: Apache-2.0
// A list that only grows: each addition publishes a new array and leaves the old ones to their
// readers.
#include "kernel/registry.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

namespace gemmery::kernel {
namespace {

using FamilyList = std::vector<const Family*>;

std::atomic<const FamilyList*> current{nullptr};

void refuse_duplicate(const Family& family, const FamilyList& list) {
  const auto is_same = [&](const Family* other) {
    return other->provider() == family.provider() && other->name() == family.name();
  };
  if (std::ranges::none_of(list, is_same)) return;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "register_family",
               .expected = "a family that is not registered yet",
               .got = std::string(family.provider()) + "/" + std::string(family.name()),
               .hint = "give it another name"});
}

}  // namespace

void add_family(std::unique_ptr<Family> family) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  const FamilyList* const old = current.load(std::memory_order_acquire);
  auto next = std::make_unique<FamilyList>(old == nullptr ? FamilyList{} : *old);
  refuse_duplicate(*family, *next);
  next->push_back(family.release());
  // Older lists stay for those who read them, in reach so that no leak checker complains.
  static auto* const published = new std::vector<const FamilyList*>;
  published->push_back(next.get());
  current.store(next.release(), std::memory_order_release);
}

std::span<const Family* const> families() noexcept {
  const FamilyList* const list = current.load(std::memory_order_acquire);
  if (list == nullptr) return {};
  return *list;
}

}  // namespace gemmery::kernel
