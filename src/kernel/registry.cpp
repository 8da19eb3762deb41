// SPDX-License-Identifier: Apache-2.0
// A list that only grows: each addition publishes a new array; readers keep the old ones.
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

std::mutex& changing() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

FamilyList list_now() {
  const FamilyList* const list = current.load(std::memory_order_acquire);
  return list == nullptr ? FamilyList{} : *list;
}

// Older lists stay for their readers, reachable so that no leak checker reports them.
void publish(FamilyList list) {
  static auto* const published = new std::vector<const FamilyList*>;
  auto next = std::make_unique<const FamilyList>(std::move(list));
  published->push_back(next.get());
  current.store(next.release(), std::memory_order_release);
}

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
  const std::scoped_lock lock(changing());
  FamilyList list = list_now();
  refuse_duplicate(*family, list);
  list.push_back(family.release());
  publish(std::move(list));
}

bool remove_family(const Family& family) {
  static auto* const removed = new FamilyList;  // reachable, as above
  const std::scoped_lock lock(changing());
  FamilyList list = list_now();
  if (std::erase(list, &family) == 0) return false;
  removed->push_back(&family);
  publish(std::move(list));
  return true;
}

std::span<const Family* const> families() noexcept {
  const FamilyList* const list = current.load(std::memory_order_acquire);
  if (list == nullptr) return {};
  return *list;
}

}  // namespace gemmery::kernel
