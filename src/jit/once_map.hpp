// SPDX-License-Identifier: Apache-2.0
// Values that are made once per key, however many threads ask at the same time.
#pragma once

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace gemmery::jit {

// The first thread that asks makes the value; the others wait for it. A failure is thrown to all
// waiting threads and then forgotten, so that a later call tries again. `make` runs without a lock.
template <class Key, class Value>
class OnceMap {
 public:
  using Shared = std::shared_ptr<const Value>;

  template <class Make>
  Shared get(const Key& key, Make&& make) {
    return get_other(key, nullptr, std::forward<Make>(make));
  }

  // Replaces `old`: makes a new value if `old` is the key's value or the key has none; returns the
  // key's value.
  template <class Make>
  Shared get_other(const Key& key, const Shared& old, Make&& make) {
    std::promise<Shared> promise;
    {
      std::unique_lock lock(mutex_);
      const auto [entry, is_new] = entries_.try_emplace(key);
      if (!is_new && !is_value(entry->second, old)) {
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
  static bool is_value(const std::shared_future<Shared>& entry, const Shared& value) {
    const bool is_made = entry.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    return is_made && entry.get() == value;
  }

  void forget(const Key& key) {
    const std::lock_guard lock(mutex_);
    entries_.erase(key);
  }

  mutable std::mutex mutex_;
  std::unordered_map<Key, std::shared_future<Shared>> entries_;
};

}  // namespace gemmery::jit
