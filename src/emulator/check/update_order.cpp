// SPDX-License-Identifier: Apache-2.0
#include "emulator/check/update_order.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace gemmery::emulator {
namespace {

constexpr std::uint64_t bytes_per_place = 4;
constexpr std::size_t ways = 4;
constexpr std::size_t set_bits = 12;
constexpr std::size_t max_agents_per_place = 256;

std::size_t first_way(std::uint64_t cell) noexcept {
  return static_cast<std::size_t>(cell * 0x9e37'79b9'7f4a'7c15u >> (64 - set_bits)) * ways;
}

bool are_of_one_agent(Epoch a, Epoch b) noexcept {
  return a.bits() >> Epoch::clock_bits == b.bits() >> Epoch::clock_bits;
}

}  // namespace

const UpdateOrder::Place* UpdateOrder::find(std::uint64_t cell) const noexcept {
  if (places_.empty()) return nullptr;
  const auto set = std::span(places_).subspan(first_way(cell), ways);
  const auto found =
      std::ranges::find_if(set, [cell](const Place& place) { return place.cell == cell; });
  return found == set.end() || found->updates.empty() ? nullptr : &*found;
}

UpdateOrder::Place* UpdateOrder::find(std::uint64_t cell) noexcept {
  return const_cast<Place*>(std::as_const(*this).find(cell));
}

// Replaces the place that the fewest agents updated: a cell of a sum rather than a counter.
UpdateOrder::Place& UpdateOrder::find_or_replace(std::uint64_t cell) {
  if (places_.empty()) places_.resize(ways << set_bits);
  if (Place* const place = find(cell)) return *place;
  const auto set = std::span(places_).subspan(first_way(cell), ways);
  Place& victim =
      *std::ranges::min_element(set, {}, [](const Place& place) { return place.updates.size(); });
  victim.updates.clear();
  victim.observations.clear();
  victim.cell = cell;
  return victim;
}

void UpdateOrder::note_at(Place& place, Epoch epoch) {
  const Update update{epoch, ++time_};
  std::vector<Update>& updates = place.updates;
  // The lanes of a warp come one after another.
  if (place.newest < updates.size() && are_of_one_agent(updates[place.newest].epoch, epoch)) {
    updates[place.newest] = update;
    return;
  }
  auto at = std::ranges::find_if(
      updates, [epoch](const Update& each) { return are_of_one_agent(each.epoch, epoch); });
  if (at == updates.end() && updates.size() < max_agents_per_place)
    at = updates.insert(updates.end(), update);
  else if (at == updates.end())
    at = std::ranges::min_element(updates, {}, &Update::time);
  *at = update;
  place.newest = static_cast<std::size_t>(at - updates.begin());
}

void UpdateOrder::note(std::uint64_t address, std::uint32_t bytes, const Accessor& who) {
  if (bytes < bytes_per_place || who.proxy != Proxy::generic) return;
  const std::lock_guard lock(mutex_);
  has_any_.store(true, std::memory_order_release);
  for (std::uint32_t at = 0; at < bytes; at += bytes_per_place) {
    Place& place = find_or_replace((address + at) / bytes_per_place);
    // An update of another width begins a new chain.
    if (place.address != address || place.bytes != bytes) {
      place.updates.clear();
      place.observations.clear();
    }
    place.address = address;
    place.bytes = bytes;
    note_at(place, who.epoch);
  }
}

void UpdateOrder::observe_at(Place& place, const Accessor& who) const {
  const Observation seen{who.epoch, who.lane, time_};
  const auto of_lane = std::ranges::find_if(place.observations, [&](const Observation& each) {
    return are_of_one_agent(each.epoch, who.epoch) && each.lane == who.lane;
  });
  if (of_lane != place.observations.end()) {
    *of_lane = seen;
  } else if (place.observations.size() < max_agents_per_place) {
    place.observations.push_back(seen);
  } else {
    *std::ranges::min_element(place.observations, {}, &Observation::time) = seen;
  }
}

void UpdateOrder::observe(std::uint64_t address, std::uint32_t bytes, const Accessor& who) {
  if (!has_any_.load(std::memory_order_acquire) || who.proxy != Proxy::generic) return;
  const std::lock_guard lock(mutex_);
  for (std::uint32_t at = 0; at < bytes; at += bytes_per_place) {
    Place* const place = find((address + at) / bytes_per_place);
    if (place != nullptr && place->address == address && place->bytes == bytes)
      observe_at(*place, who);
  }
}

void UpdateOrder::forget(std::uint64_t address, std::uint32_t bytes) {
  if (!has_any_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  const std::uint64_t last = (address + bytes - 1) / bytes_per_place;
  for (std::uint64_t cell = address / bytes_per_place; cell <= last; ++cell) {
    Place* const place = find(cell);
    if (place == nullptr) continue;
    place->updates.clear();
    place->observations.clear();
  }
}

bool UpdateOrder::is_followed(std::uint64_t address, const Conflict& found,
                              const Accessor& who) const {
  if (!found.is_race || !found.other_was_write || !found.other_was_atomic) return false;
  if (who.proxy != Proxy::generic || found.other_proxy != Proxy::generic) return false;
  const std::lock_guard lock(mutex_);
  const Place* const place = find(address / bytes_per_place);
  if (place == nullptr) return false;
  const auto other = std::ranges::find(place->updates, found.other, &Update::epoch);
  if (other == place->updates.end()) return false;
  const bool is_observed = std::ranges::any_of(place->observations, [&](const Observation& seen) {
    if (seen.time < other->time) return false;
    if (seen.epoch == who.epoch) return seen.lane == who.lane;
    return who.known->happened.knows(seen.epoch, who.cluster);
  });
  if (is_observed) return true;
  // An update in the present epoch of `who` may be another lane's, or have no fence after it.
  return std::ranges::any_of(place->updates, [&](const Update& later) {
    return later.time >= other->time && later.epoch != who.epoch &&
           who.known->happened.knows(later.epoch, who.cluster);
  });
}

void UpdateOrder::clear() {
  if (!has_any_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  for (Place& place : places_) {
    place.updates.clear();
    place.observations.clear();
  }
  has_any_.store(false, std::memory_order_release);
}

}  // namespace gemmery::emulator
