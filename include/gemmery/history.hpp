// SPDX-License-Identifier: Apache-2.0
// Measured times of kernels on problems; they take precedence over predictions.
#pragma once

#include <optional>

#include <gemmery/export.hpp>
#include <gemmery/family.hpp>

namespace gemmery {

// Implementations are safe to call concurrently.
class GEMMERY_API History {
 public:
  virtual ~History();

  // True if nothing was measured yet; then single kernels are not looked up.
  virtual bool is_empty() const noexcept { return false; }

  // Microseconds of this kernel for this problem and device, if it was measured.
  virtual std::optional<double> measured_us(const Query& query, const Kernel& kernel) const = 0;
};

}  // namespace gemmery
