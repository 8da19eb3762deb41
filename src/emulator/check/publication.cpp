// SPDX-License-Identifier: Apache-2.0
#include "emulator/check/publication.hpp"

#include <algorithm>

namespace gemmery::emulator {
namespace {

// True if the scope of `from` includes `to`.
bool reaches(const Participant& from, const Participant& to) noexcept {
  switch (from.scope) {
    case Scope::cta:
      return from.cluster == to.cluster && from.cta_rank == to.cta_rank;
    case Scope::cluster:
      return from.cluster == to.cluster;
    case Scope::gpu:
    case Scope::system:
      return true;
  }
  return true;
}

// A release of this kind and an acquire of this kind synchronise wherever the two are.
bool is_wide(const Participant& one) noexcept {
  return one.scope == Scope::gpu || one.scope == Scope::system;
}

bool is_same(const Participant& a, const Participant& b) noexcept {
  return a.cluster == b.cluster && a.cta_rank == b.cta_rank && a.scope == b.scope;
}

void join_as_seen_by(Knowledge& into, std::uint32_t own_cluster, const Knowledge& other,
                     std::uint32_t other_cluster) {
  if (own_cluster == other_cluster) {
    into.join(other);
    return;
  }
  into.happened.join_foreign(other.happened, other_cluster, own_cluster);
  into.fenced.join_foreign(other.fenced, other_cluster, own_cluster);
  into.map_released.join_foreign(other.map_released, other_cluster, own_cluster);
  into.map_acquired.join_foreign(other.map_acquired, other_cluster, own_cluster);
}

}  // namespace

void PublicationTable::publish(std::uint64_t address, const Participant& by,
                               const Knowledge& knowledge, bool continues) {
  const std::lock_guard lock(mutex_);
  Place& here = at_[address];
  if (!continues) here = {};
  if (is_wide(by)) {
    here.is_wide = true;
    join_as_seen_by(here.wide, no_cluster, knowledge, by.cluster);
  }
  std::vector<Publication>& all = here.publications;
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Publication& each) { return is_same(each.by, by); });
  if (found == all.end()) {
    all.push_back({by, knowledge});
  } else {
    found->knowledge.join(knowledge);
  }
  has_any_.store(true, std::memory_order_release);
}

void PublicationTable::withdraw(std::uint64_t address) {
  if (!has_any_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  at_.erase(address);
}

bool PublicationTable::collect(std::uint64_t address, const Participant& reader,
                               Knowledge& into) const {
  if (!has_any_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  const auto found = at_.find(address);
  if (found == at_.end()) return false;
  const Place& here = found->second;
  const bool takes_wide = here.is_wide && is_wide(reader);
  if (takes_wide) join_as_seen_by(into, reader.cluster, here.wide, no_cluster);
  bool is_any = takes_wide;
  for (const Publication& each : here.publications) {
    if (takes_wide && is_wide(each.by)) continue;
    if (!reaches(each.by, reader) || !reaches(reader, each.by)) continue;
    join_as_seen_by(into, reader.cluster, each.knowledge, each.by.cluster);
    is_any = true;
  }
  return is_any;
}

void PublicationTable::clear() {
  const std::lock_guard lock(mutex_);
  at_.clear();
  has_any_.store(false, std::memory_order_release);
}

}  // namespace gemmery::emulator
