// SPDX-License-Identifier: Apache-2.0
// Compilations that somebody no longer wants: what a thread compiles within a scope ends when the
// scope's token asks for it.
#pragma once

#include <gemmery/error.hpp>

#include <stop_token>
#include <utility>

namespace gemmery::jit {

// Thrown by a compilation that was cancelled; of kind `compile`.
class Cancelled : public Error {
 public:
  using Error::Error;
};

// The token of the innermost scope of this thread; one that never asks where there is none.
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

}  // namespace gemmery::jit
