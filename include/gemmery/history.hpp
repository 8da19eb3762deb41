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

  // Whether nothing was measured yet: then kernels are not asked about one by one.
  virtual bool is_empty() const noexcept { return false; }

  // Microseconds of this kernel on this problem and device, where it was measured.
  virtual std::optional<double> measured_us(const Query& query, const Kernel& kernel) const = 0;
};

}  // namespace gemmery
