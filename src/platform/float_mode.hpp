// SPDX-License-Identifier: Apache-2.0
// The floating-point mode of a thread.
#pragma once

#include <cfenv>

namespace gemmery::platform {

// While it exists, its thread rounds to nearest and keeps subnormal numbers, whatever mode the
// caller had set (flush to zero, denormals are zero, another rounding): bounds are proven for this
// mode. Its end restores the caller's mode. Threads started meanwhile inherit the default mode.
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
