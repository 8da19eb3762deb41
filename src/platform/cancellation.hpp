// SPDX-License-Identifier: Apache-2.0
// Cancellation: a thread's compilations and launches on emulated devices within a scope end early
// once the scope's token requests it.
#pragma once

#include <stop_token>
#include <utility>

namespace gemmery::platform {

// The token of the innermost scope of this thread; without a scope, one that never requests a stop.
inline std::stop_token& current_cancellation() noexcept {
  thread_local std::stop_token token;
  return token;
}

class ScopedCancellation {
 public:
  explicit ScopedCancellation(std::stop_token token)
      : outer_(std::exchange(current_cancellation(), std::move(token))) {}
  ~ScopedCancellation() { current_cancellation() = std::move(outer_); }
  ScopedCancellation(const ScopedCancellation&) = delete;
  ScopedCancellation& operator=(const ScopedCancellation&) = delete;

 private:
  std::stop_token outer_;
};

}  // namespace gemmery::platform
