// SPDX-License-Identifier: Apache-2.0
// Assigns addresses to allocations, and finds allocations and their chunks.
#include "emulator/memory/global_memory.hpp"

#include <sys/mman.h>

#include <array>

#include "core/arithmetic.hpp"
#include "core/thread_value.hpp"
#include "emulator/memory/global_memory_insides.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint64_t allocation_alignment = 256;
// The least distance between allocations, so that an index beyond the end does not reach the next
// one.
constexpr std::uint64_t gap_bytes = 64 * 1024;
constexpr std::uint64_t page_bytes = 64 * 1024;  // the largest page of any host
constexpr std::size_t remembered_freed_ranges = 4096;

std::atomic<std::uint64_t> next_memory_id{1};

}  // namespace

void FreeData::operator()(std::byte* data) const noexcept {
  if (origin == Origin::heap) std::free(data);
  if (origin == Origin::mapping) munmap(data, mapped_bytes);
}

GlobalMemory::GlobalMemory(std::uint64_t limit_bytes, AddressRange range)
    : insides_(std::make_unique<Insides>()) {
  insides_->id = next_memory_id.fetch_add(1, std::memory_order_relaxed);
  insides_->limit = limit_bytes;
  insides_->range = range;
  insides_->next_address = range.begin;
}

GlobalMemory::~GlobalMemory() {
  // Threads may have cached allocations, so their bytes are freed explicitly.
  for (auto& [address, allocation] : insides_->live) allocation->retire();
}

// --- allocation ---------------------------------------------------------------------------------

std::uint64_t GlobalMemory::Insides::place_for(std::uint64_t bytes, std::uint64_t alignment) {
  const std::uint64_t span = round_up(bytes, alignment) + gap_bytes;
  // Addresses are not reused before the whole window has been used, so that a use after free is
  // detected.
  for (int round = 0; round < 2; ++round) {
    std::uint64_t place = round_up(next_address, alignment);
    auto above = live.lower_bound(place);
    while (above != live.end() && above->first < place + span) {
      place = round_up(above->first + above->second->bytes + gap_bytes, alignment);
      ++above;
    }
    if (place + span <= range.end) {
      next_address = place + span;
      auto stale = freed.lower_bound(place);
      while (stale != freed.end() && stale->first < place + span) stale = freed.erase(stale);
      return place;
    }
    next_address = range.begin;
  }
  return 0;
}

// Adds an allocation; the caller holds `mutex`.
std::uint64_t GlobalMemory::Insides::insert(std::uint64_t place, std::uint64_t bytes,
                                            AllocationData data) {
  live.emplace(place, std::make_shared<Allocation>(*this, place, bytes, std::move(data)));
  used.fetch_add(bytes);
  return place;
}

std::uint64_t GlobalMemory::allocate(std::uint64_t bytes) {
  if (bytes == 0 || bytes > insides_->limit) return 0;
  const std::unique_lock lock(insides_->mutex);
  if (insides_->used.load() > insides_->limit - bytes) return 0;
  // The host's zero pages cost nothing until they are accessed.
  AllocationData data(static_cast<std::byte*>(std::calloc(static_cast<std::size_t>(bytes), 1)));
  if (data == nullptr) return 0;
  const std::uint64_t place = insides_->place_for(bytes, allocation_alignment);
  return place == 0 ? 0 : insides_->insert(place, bytes, std::move(data));
}

std::uint64_t GlobalMemory::allocate_mapped(std::uint64_t bytes) {
  if (bytes == 0 || bytes > insides_->limit) return 0;
  const std::unique_lock lock(insides_->mutex);
  if (insides_->used.load() > insides_->limit - bytes) return 0;
  const std::uint64_t place = insides_->place_for(bytes, page_bytes);
  if (place == 0) return 0;
  const std::uint64_t whole = round_up(bytes, page_bytes);
  void* const pages = mmap(reinterpret_cast<void*>(place), whole, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (pages == MAP_FAILED) return 0;
  AllocationData data(static_cast<std::byte*>(pages), {Origin::mapping, whole});
  // Kernels before Linux 4.17 take the address as a wish.
  const bool is_there = reinterpret_cast<std::uint64_t>(pages) == place;
  return is_there ? insides_->insert(place, bytes, std::move(data)) : 0;
}

std::uint64_t GlobalMemory::adopt(void* data, std::uint64_t bytes) {
  if (bytes == 0) return 0;
  const std::unique_lock lock(insides_->mutex);
  const std::uint64_t place = insides_->place_for(bytes, allocation_alignment);
  AllocationData borrowed(static_cast<std::byte*>(data), {Origin::borrowed, 0});
  return place == 0 ? 0 : insides_->insert(place, bytes, std::move(borrowed));
}

bool GlobalMemory::free(std::uint64_t address) {
  Insides::AllocationPointer gone;
  {
    const std::unique_lock lock(insides_->mutex);
    const auto found = insides_->live.find(address);
    if (found == insides_->live.end()) return false;
    gone = std::move(found->second);
    insides_->live.erase(found);
    if (insides_->freed.size() >= remembered_freed_ranges) {
      insides_->freed.erase(insides_->freed.begin());
    }
    insides_->freed.emplace(address, gone->bytes);
    insides_->used.fetch_sub(gone->bytes);
  }
  gone->retire();
  return true;
}

std::uint64_t GlobalMemory::used_bytes() const noexcept { return insides_->used.load(); }

std::optional<GlobalMemory::Extent> GlobalMemory::find(std::uint64_t address) const noexcept {
  const Insides::AllocationPointer found = insides_->find(address);
  if (found == nullptr) return std::nullopt;
  return Extent{found->address, found->bytes};
}

// --- peers --------------------------------------------------------------------------------------

void GlobalMemory::add_peer(GlobalMemory& other) {
  const std::unique_lock lock(insides_->mutex);
  Insides* const added = other.insides_.get();
  if (std::ranges::find(insides_->peers, added) == insides_->peers.end())
    insides_->peers.push_back(added);
}

void GlobalMemory::remove_peer(GlobalMemory& other) {
  const std::unique_lock lock(insides_->mutex);
  std::erase(insides_->peers, other.insides_.get());
}

GlobalMemory::Insides::AllocationPointer GlobalMemory::Insides::find_in_peers(
    std::uint64_t address) const {
  const std::shared_lock lock(mutex);
  const auto owner = std::ranges::find_if(
      peers, [address](const Insides* peer) { return peer->range.contains(address); });
  return owner == peers.end() ? nullptr : (*owner)->find_own(address);
}

// --- chunks -------------------------------------------------------------------------------------

GlobalMemory::Allocation* GlobalMemory::Insides::find_cached(std::uint64_t address) {
  struct Entry {
    std::uint64_t memory = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    AllocationPointer allocation;
  };
  // A kernel accesses few operands; more entries would cost more than a search.
  struct Recent {
    std::array<Entry, 4> entries;
    std::size_t next_victim = 0;
  };
  auto& [recent, next_victim] = thread_value<Recent>();
  for (const Entry& each : recent) {
    if (each.memory == id && address - each.address < each.bytes &&
        !each.allocation->is_freed.load(std::memory_order_relaxed)) {
      return each.allocation.get();
    }
  }
  AllocationPointer found = find(address);
  if (found == nullptr) return nullptr;
  Entry& victim = recent[next_victim++ % recent.size()];
  victim = Entry{id, found->address, found->bytes, std::move(found)};
  return victim.allocation.get();
}

bool GlobalMemory::Insides::lock_chunk(std::uint64_t address, View& view) {
  Allocation* const allocation = find_cached(address);
  if (allocation == nullptr) return false;
  const std::uint64_t index = (address - allocation->address) / chunk_bytes;
  Chunk* const chunk = allocation->chunk(index);
  if (chunk == nullptr) return false;
  view.lock = std::unique_lock(chunk->lock);
  if (allocation->is_freed.load(std::memory_order_relaxed)) return false;
  view.chunk = chunk;
  view.begin = allocation->address + index * chunk_bytes;
  view.bytes = allocation->chunk_size(index);
  view.data = allocation->data.get() + index * chunk_bytes;
  if (!chunk->has_accesses) note_accesses(*allocation, index, *chunk);
  return true;
}

void GlobalMemory::Insides::note_accesses(Allocation& allocation, std::uint64_t index,
                                          Chunk& chunk) {
  AllocationPointer shared = find(allocation.address);
  if (shared == nullptr) return;
  Insides& owner = allocation.owner;
  const std::lock_guard lock(owner.touched_mutex);
  owner.touched.emplace_back(std::move(shared), index);
  chunk.has_accesses = true;
}

GlobalMemory::Insides::View GlobalMemory::Insides::chunk_of_access(std::uint64_t address,
                                                                   std::uint32_t bytes, int lane) {
  View view;
  if (!lock_chunk(address, view) || address - view.begin + bytes > view.bytes) {
    if (view.lock.owns_lock()) view.lock.unlock();
    throw out_of_bounds_fault(address, bytes, lane);
  }
  return view;
}

GlobalMemory::Insides::View GlobalMemory::Insides::find_chunk_of_access(std::uint64_t address,
                                                                        std::uint32_t bytes,
                                                                        int lane) {
  View view;
  if (lock_chunk(address, view) && address - view.begin + bytes <= view.bytes) return view;
  if (view.lock.owns_lock()) view.lock.unlock();
  take_or_throw(out_of_bounds_fault(address, bytes, lane));
  return {};
}

void GlobalMemory::Insides::forget_own_accesses() {
  decltype(touched) gone;
  {
    const std::lock_guard lock(touched_mutex);
    gone.swap(touched);
  }
  for (const auto& [allocation, index] : gone) {
    Chunk* const chunk = allocation->chunks[index].load();
    const std::lock_guard lock(chunk->lock);
    chunk->shadow.forget_accesses();
    chunk->has_accesses = false;
  }
}

void GlobalMemory::forget_accesses() {
  insides_->forget_own_accesses();
  {
    const std::shared_lock lock(insides_->mutex);
    for (Insides* const peer : insides_->peers) peer->forget_own_accesses();
  }
  insides_->publications.clear();
  insides_->updates.clear();
}

PublicationTable& GlobalMemory::publications() noexcept { return insides_->publications; }

}  // namespace gemmery::emulator
