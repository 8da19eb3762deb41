// SPDX-License-Identifier: Apache-2.0
// Asynchronous operations start at once and complete later, each after a random delay.
#include "emulator/machine/async_operations.hpp"

#include <algorithm>
#include <utility>

#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

namespace {

// A delay of mostly a few turns of the other warps, sometimes 0, sometimes so long that only a wait
// observes the completion.
std::uint64_t random_delay(std::mt19937_64& random) {
  const std::uint64_t bits = random();
  switch (bits & 7) {
    case 0:
      return 0;
    case 1:
      return (bits >> 8) % 100'000;
    default:
      return (bits >> 8) % 2'000;
  }
}

void find_next_due(AsyncQueue& queue) noexcept {
  queue.next_due = ~std::uint64_t{0};
  for (const AsyncOperation& operation : queue.pending)
    queue.next_due = std::min(queue.next_due, operation.due);
}

void complete_at(Cluster& cluster, std::size_t position) {
  AsyncQueue& queue = cluster.async;
  std::swap(queue.pending[position], queue.pending.back());
  const AsyncOperation operation = std::move(queue.pending.back());
  queue.pending.pop_back();
  find_next_due(queue);
  ++cluster.progress;
  ++cluster.wakes;
  const AsyncOperation* const outer = std::exchange(queue.completing, &operation);
  try {
    operation.complete(cluster);
    queue.completing = outer;
  } catch (Fault& fault) {
    queue.completing = outer;
    add_place(fault, cluster, operation);
    throw;
  }
}

}  // namespace

void add_place(Fault& fault, const Cluster& cluster, const AsyncOperation& operation) {
  if (fault.place.ptx_line != 0) return;
  const int lane = fault.place.lane >= 0 ? fault.place.lane : operation.lane;
  fault.place = cluster.grid.image->place_of(operation.pc);
  fault.place.cta = cluster.ctas[operation.cta_rank]->position;
  fault.place.warp = static_cast<int>(operation.warp);
  fault.place.lane = lane;
}

void start_async(Warp& warp, std::uint8_t lane, std::uint32_t pc,
                 std::function<void(Cluster&)> complete) {
  Cluster& cluster = warp.cta.cluster;
  AsyncQueue& queue = cluster.async;
  const std::uint64_t due = cluster.steps + random_delay(cluster.random);
  queue.next_due = std::min(queue.next_due, due);
  queue.pending.push_back({std::move(complete), due, pc, warp.cta.rank, warp.index, lane});
}

bool complete_next(Cluster& cluster) {
  std::vector<AsyncOperation>& pending = cluster.async.pending;
  if (pending.empty()) return false;
  const auto first =
      std::min_element(pending.begin(), pending.end(),
                       [](const auto& left, const auto& right) { return left.due < right.due; });
  complete_at(cluster, static_cast<std::size_t>(first - pending.begin()));
  return true;
}

void complete_due(Cluster& cluster, bool is_everything) {
  while (!cluster.async.pending.empty() &&
         (is_everything || cluster.async.next_due <= cluster.steps))
    complete_next(cluster);
}

}  // namespace gemmery::emulator
