// SPDX-License-Identifier: Apache-2.0
// Versions of cuBLASLt with known wrong kernels. They are not used for what is known to be wrong.
#pragma once

#include <gemmery/status.hpp>
#include <gemmery/target.hpp>

#include <cstdint>

#include "providers/cublaslt/library.hpp"

namespace gemmery::cublaslt {

// What a fault may depend on.
struct FaultQuestion {
  Version version;
  Target device;
  int algorithm = 0;              // its id
  std::int64_t largest_span = 0;  // of A, B, C or out: elements from the first to the last
};

// The reason why an algorithm must not be used; success if no fault is known.
Status check_known_faults(const FaultQuestion& question);

}  // namespace gemmery::cublaslt
