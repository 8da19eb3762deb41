// SPDX-License-Identifier: Apache-2.0
// The table of measured times.
#include "tune/measured_history.hpp"

#include <functional>
#include <mutex>

#include <xxhash.h>

namespace gemmery::tuning {

std::size_t MeasuredHistory::KeyHash::operator()(const Key& key) const noexcept {
  const auto& design = key.kernel.design().bytes();
  return hash_value(key.problem) ^ (std::hash<std::string>{}(key.device) << 1) ^
         XXH3_64bits(design.data(), design.size());
}

std::optional<double> MeasuredHistory::measured_us(const Query& query, const Kernel& kernel) const {
  if (is_empty()) return std::nullopt;
  const std::shared_lock lock(mutex_);
  const auto found = times_.find({query.problem, query.device.name, kernel});
  if (found == times_.end()) return std::nullopt;
  return found->second;
}

void MeasuredHistory::record(const Query& query, const Kernel& kernel, double microseconds) {
  const std::scoped_lock lock(mutex_);
  Key key{query.problem, query.device.name, kernel};
  if (times_.size() >= largest_size && !times_.contains(key)) return;
  times_.insert_or_assign(std::move(key), microseconds);
  is_empty_ = false;
}

}  // namespace gemmery::tuning
