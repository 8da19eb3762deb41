// SPDX-License-Identifier: Apache-2.0
// The implementation of GlobalMemory: allocations in chunks, each with a lock and a shadow. Only
// its source files include this.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emulator/check/fault_handler.hpp"
#include "emulator/check/publication.hpp"
#include "emulator/check/shadow.hpp"
#include "emulator/check/update_order.hpp"
#include "emulator/memory/address.hpp"
#include "emulator/memory/global_memory.hpp"
#include "emulator/memory/lane_bytes.hpp"

namespace gemmery::emulator {

// Large enough to amortise a lock, small enough that threads rarely contend for one.
inline constexpr std::uint64_t chunk_bytes = 16 * 1024;
// CUDA C++ Programming Guide, "Heap Memory Allocation".
inline constexpr std::uint64_t default_heap_bytes = 8 * 1024 * 1024;

// For locks that few threads hold for tens of nanoseconds.
class SpinLock {
 public:
  void lock() noexcept {
    while (flag_.test_and_set(std::memory_order_acquire)) {
      if (++spins_ % 64 == 0) std::this_thread::yield();
    }
  }
  void unlock() noexcept { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_;
  static constinit inline thread_local std::uint32_t spins_ = 0;
};

struct Chunk {
  explicit Chunk(std::uint64_t size) : bytes(size), shadow(size) {}
  void mark_all_written() {
    shadow.mark_written(0, bytes);
    is_all_written = true;
  }
  void mark_unwritten(std::uint64_t offset, std::uint64_t count) {
    is_all_written = false;
    shadow.mark_unwritten(offset, count);
  }

  const std::uint64_t bytes;
  SpinLock lock;
  bool has_accesses = false;    // since forget_accesses
  bool is_all_written = false;  // true for operands that the host has copied in
  Shadow shadow;
};

// A part of a copy between allocations, and which of its bytes were written.
struct Carried {
  std::vector<std::byte> values = std::vector<std::byte>(chunk_bytes);
  std::vector<bool> is_written = std::vector<bool>(chunk_bytes);
};

// How the bytes of an allocation are given back.
enum class Origin : std::uint8_t { heap, mapping, borrowed };

struct FreeData {
  Origin origin = Origin::heap;
  std::uint64_t mapped_bytes = 0;
  void operator()(std::byte* data) const noexcept;
};
using AllocationData = std::unique_ptr<std::byte[], FreeData>;

struct GlobalMemory::Allocation {
  Allocation(Insides& of, std::uint64_t at, std::uint64_t size, AllocationData zeros)
      : owner(of),
        address(at),
        bytes(size),
        data(std::move(zeros)),
        chunks(static_cast<std::size_t>((size + chunk_bytes - 1) / chunk_bytes)) {}
  ~Allocation() {
    for (std::atomic<Chunk*>& chunk : chunks) delete chunk.load();
  }

  // True if the host accesses the bytes as well; what it writes is not seen.
  bool is_hosts() const noexcept { return data.get_deleter().origin != Origin::heap; }
  std::uint64_t chunk_size(std::uint64_t index) const noexcept {
    return std::min(chunk_bytes, bytes - index * chunk_bytes);
  }
  // Made at the first access; nullptr once the memory is freed.
  Chunk* chunk(std::uint64_t index) {
    Chunk* const made = chunks[index].load(std::memory_order_acquire);
    return made != nullptr ? made : make_chunk(index);
  }
  Chunk* make_chunk(std::uint64_t index) {
    const std::lock_guard lock(making);
    if (is_freed.load(std::memory_order_relaxed)) return nullptr;
    Chunk* made = chunks[index].load(std::memory_order_relaxed);
    if (made == nullptr) {
      made = new Chunk(chunk_size(index));
      if (is_hosts()) made->mark_all_written();
      chunks[index].store(made, std::memory_order_release);
    }
    return made;
  }
  // Frees the bytes; threads that still hold the allocation find `is_freed` under a chunk's lock.
  void retire() {
    {
      const std::lock_guard lock(making);
      is_freed.store(true, std::memory_order_relaxed);
    }
    for (std::atomic<Chunk*>& each : chunks) {
      if (Chunk* const chunk = each.load(std::memory_order_acquire)) {
        const std::lock_guard wait_for_accesses(chunk->lock);
      }
    }
    data.reset();
  }

  Insides& owner;
  const std::uint64_t address;
  const std::uint64_t bytes;
  std::atomic<bool> is_freed{false};
  AllocationData data;
  std::vector<std::atomic<Chunk*>> chunks;
  std::mutex making;
};

struct GlobalMemory::Insides {
  using AllocationPointer = std::shared_ptr<Allocation>;

  // A locked chunk with the bytes that it covers.
  struct View {
    std::unique_lock<SpinLock> lock;
    Chunk* chunk = nullptr;
    std::byte* data = nullptr;
    std::uint64_t begin = 0;  // the address of its first byte
    std::uint64_t bytes = 0;
  };

  // The allocation that contains the address, here or in a peer.
  AllocationPointer find(std::uint64_t address) const {
    return range.contains(address) ? find_own(address) : find_in_peers(address);
  }
  AllocationPointer find_in_peers(std::uint64_t address) const;
  AllocationPointer find_own(std::uint64_t address) const {
    const std::shared_lock lock(mutex);
    auto above = live.upper_bound(address);
    if (above == live.begin()) return nullptr;
    const AllocationPointer& candidate = std::prev(above)->second;
    return address - candidate->address < candidate->bytes ? candidate : nullptr;
  }

  // Searches this thread's recent allocations; nullptr if none contains the address.
  Allocation* find_cached(std::uint64_t address);

  // Locks the chunk at `address`. The view covers the bytes from `address` to the end of the chunk
  // or allocation.
  bool lock_chunk(std::uint64_t address, View& view);
  // Lists the chunk among those whose accesses are forgotten when the next kernel begins.
  void note_accesses(Allocation& allocation, std::uint64_t index, Chunk& chunk);
  View chunk_of_access(std::uint64_t address, std::uint32_t bytes, int lane);
  // The same for an access of a kernel; without a chunk if a handler took the fault.
  View find_chunk_of_access(std::uint64_t address, std::uint32_t bytes, int lane);

  Fault out_of_bounds_fault(std::uint64_t address, std::uint32_t bytes, int lane) const;
  std::string describe_neighbourhood(std::uint64_t address, std::uint32_t bytes) const;

  // Records accesses that conflict, cell by cell, because they may be ordered after the atomics of
  // a cell through a later atomic. False, with `found`, if the conflict remains.
  bool note_behind_updates(const View& view, std::uint64_t offset, std::uint32_t bytes,
                           const Accessor& who, bool is_write, Conflict& found);
  bool note_cell_behind_updates(const View& view, std::uint64_t offset, std::uint32_t bytes,
                                const Accessor& who, bool is_write, Conflict& found);
  // Records strong reads in the order of updates.
  void observe_updates(const LaneBytes& lanes, Accessor who);
  // `changes_nothing`: a write of the present contents.
  void require_followed(const View& view, const LaneBytes& lanes, Accessor who, bool is_write,
                        bool changes_nothing, const Conflict& found, int lane);

  template <class Visit>
  void for_each_accessed(std::uint64_t address, std::uint32_t bytes, int lane, Visit visit);
  template <class Visit>
  bool for_each_piece(std::uint64_t address, std::uint64_t bytes, Visit visit);

  bool take(std::uint64_t from, std::uint64_t bytes, Carried& carried);
  bool put(std::uint64_t to, std::uint64_t bytes, const Carried& carried);

  std::uint64_t place_for(std::uint64_t bytes, std::uint64_t alignment);
  std::uint64_t insert(std::uint64_t place, std::uint64_t bytes, AllocationData data);
  void forget_own_accesses();

  std::uint64_t id = 0;
  AddressRange range;
  std::uint64_t limit = 0;
  mutable std::shared_mutex mutex;
  std::map<std::uint64_t, AllocationPointer> live;
  std::map<std::uint64_t, std::uint64_t> freed;  // address to bytes
  std::uint64_t next_address = global_window;
  std::vector<Insides*> peers;
  std::atomic<std::uint64_t> used{0};
  std::mutex heap_mutex;                        // before `mutex`
  std::map<std::uint64_t, std::uint64_t> heap;  // address to bytes
  std::uint64_t heap_used = 0;
  std::atomic<std::uint64_t> heap_limit{default_heap_bytes};
  std::mutex touched_mutex;
  std::vector<std::pair<AllocationPointer, std::uint64_t>> touched;  // chunks with accesses
  PublicationTable publications;
  UpdateOrder updates;
};

}  // namespace gemmery::emulator
