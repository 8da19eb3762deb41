// SPDX-License-Identifier: Apache-2.0
// The mode in which a thread computes with floats.
#pragma once

#include <cfenv>

namespace gemmery::platform {

// While it lives, its thread rounds to nearest and keeps subnormal numbers, whatever mode the
// caller had set (flush to zero, denormals are zero, another rounding): bounds are proven for that
// mode. The caller's mode comes back with its end. Threads that are started meanwhile inherit it.
class DefaultFloatMode {
 public:
  DefaultFloatMode() noexcept {
    std::fegetenv(&callers_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatMode() { std::fesetenv(&callers_); }
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

 private:
  std::fenv_t callers_{};
};

}  // namespace gemmery::platform
