// SPDX-License-Identifier: Apache-2.0
// Values that are made once per key, however many threads ask at the same time.
#pragma once

#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace gemmery::jit {

// The first thread to ask makes the value, the others wait for it. A failure is thrown to all that
// wait and then forgotten, so that a later call tries again. `make` runs without a lock held.
template <class Key, class Value>
class OnceMap {
 public:
  using Shared = std::shared_ptr<const Value>;

  template <class Make>
  Shared get(const Key& key, Make&& make) {
    std::promise<Shared> promise;
    {
      std::unique_lock lock(mutex_);
      const auto [entry, is_new] = entries_.try_emplace(key);
      if (!is_new) {
        const std::shared_future<Shared> pending = entry->second;
        lock.unlock();
        return pending.get();
      }
      entry->second = promise.get_future().share();
    }
    try {
      Shared value = std::make_shared<const Value>(make());
      promise.set_value(value);
      return value;
    } catch (...) {
      forget(key);
      promise.set_exception(std::current_exception());
      throw;
    }
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }

 private:
  void forget(const Key& key) {
    const std::lock_guard lock(mutex_);
    entries_.erase(key);
  }

  mutable std::mutex mutex_;
  std::unordered_map<Key, std::shared_future<Shared>> entries_;
};

}  // namespace gemmery::jit
