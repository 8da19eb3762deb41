// SPDX-License-Identifier: Apache-2.0
// Measured times, kept until the process ends.
#pragma once

#include <gemmery/history.hpp>

#include <atomic>
#include <cstddef>
#include <shared_mutex>
#include <string>
#include <unordered_map>

namespace gemmery::tuning {

// Keyed by problem, device name and kernel; the latest time wins. Bounded: a full history takes no
// new problems.
class MeasuredHistory final : public History {
 public:
  static constexpr std::size_t largest_size = 100'000;

  bool is_empty() const noexcept override { return is_empty_.load(std::memory_order_relaxed); }
  std::optional<double> measured_us(const Query& query, const Kernel& kernel) const override;
  void record(const Query& query, const Kernel& kernel, double microseconds);

 private:
  struct Key {
    GemmProblem problem;
    std::string device;
    Kernel kernel;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };

  mutable std::shared_mutex mutex_;
  std::unordered_map<Key, double, KeyHash> times_;
  std::atomic<bool> is_empty_{true};  // avoids the lock while nothing has been measured
};

}  // namespace gemmery::tuning
