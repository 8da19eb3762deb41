// SPDX-License-Identifier: Apache-2.0
// Cancelled compilations end early, by the scopes of platform/cancellation.hpp.
#pragma once

#include <gemmery/error.hpp>

#include "platform/cancellation.hpp"

namespace gemmery::jit {

// Thrown by a compilation that was cancelled; of kind `compile`.
class Cancelled : public Error {
 public:
  using Error::Error;
};

using platform::current_cancellation;
using platform::ScopedCancellation;

}  // namespace gemmery::jit
