// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/fault_collector.hpp"

#include <algorithm>
#include <utility>

namespace gemmery::emulator {
namespace {

auto time_of(const CollectedFault& found) noexcept { return std::pair(found.cluster, found.step); }

std::string line_key(const FaultPlace& place) {
  if (place.source_line == 0) return std::to_string(place.ptx_line);
  std::string key = place.source_file + ':' + std::to_string(place.source_line);
  if (place.call_line != 0) key += '|' + place.call_file + ':' + std::to_string(place.call_line);
  return key;
}

}  // namespace

std::string place_key(const Fault& fault) {
  std::string first = line_key(fault.place);
  std::string second = line_key(fault.other);
  // A race is found at the access that comes second, so the two sides are ordered here.
  if (fault.kind == FaultKind::race && second < first) std::swap(first, second);
  return std::string(name(fault.kind)) + '|' + first + '|' + second;
}

void FaultCollector::note(CollectedFault found) {
  const std::lock_guard hold(lock_);
  const auto [known, is_new] = faults_.try_emplace(place_key(found.fault), found);
  if (is_new) return;
  CollectedFault& kept = known->second;
  found.count += kept.count;
  found.ended_cluster = found.ended_cluster || kept.ended_cluster;
  // By the letter only if no instance may give a wrong result.
  found.fault.is_by_the_letter = found.fault.is_by_the_letter && kept.fault.is_by_the_letter;
  if (time_of(found) < time_of(kept)) {
    kept = std::move(found);
    return;
  }
  kept.count = found.count;
  kept.ended_cluster = found.ended_cluster;
  kept.fault.is_by_the_letter = found.fault.is_by_the_letter;
}

std::vector<CollectedFault> FaultCollector::take_all() {
  const std::lock_guard hold(lock_);
  std::vector<CollectedFault> all;
  for (auto& [place, found] : faults_) all.push_back(std::move(found));
  faults_.clear();
  std::ranges::sort(all, {}, time_of);
  return all;
}

}  // namespace gemmery::emulator
