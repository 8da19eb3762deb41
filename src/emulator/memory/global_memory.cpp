// SPDX-License-Identifier: Apache-2.0
#include "emulator/memory/global_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <utility>
#include <vector>

#include "emulator/check/update_order.hpp"
#include "emulator/memory/address.hpp"
#include "emulator/memory/lane_bytes.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint64_t allocation_alignment = 256;
// At least this far from one allocation to the next, so that an index that runs over its end does
// not land in a neighbour.
constexpr std::uint64_t gap_bytes = 64 * 1024;
constexpr std::uint64_t global_window_end = global_window + (std::uint64_t{1} << 45);
// Large enough to amortise a lock, small enough that threads rarely meet in one.
constexpr std::uint64_t chunk_bytes = 16 * 1024;
constexpr std::size_t remembered_freed_ranges = 4096;
// Further off than this, an address was not meant for an allocation.
constexpr std::uint64_t nearest_bytes = std::uint64_t{1} << 30;

// Held for tens of nanoseconds, by few threads.
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
  static thread_local std::uint32_t spins_;
};
thread_local std::uint32_t SpinLock::spins_ = 0;

struct Chunk {
  explicit Chunk(std::uint64_t size) : bytes(size), shadow(size) {}
  void mark_unwritten(std::uint64_t offset, std::uint64_t count) {
    is_all_written = false;
    shadow.mark_unwritten(offset, count);
  }

  const std::uint64_t bytes;
  SpinLock lock;
  bool has_accesses = false;    // since they were forgotten last
  bool is_all_written = false;  // as operands are that a host has copied in
  Shadow shadow;
};

// A piece on its way from one allocation to another, with which bytes of it were written.
struct Carried {
  std::vector<std::byte> values = std::vector<std::byte>(chunk_bytes);
  std::vector<bool> is_written = std::vector<bool>(chunk_bytes);
};

struct FreeData {
  void operator()(std::byte* data) const noexcept { std::free(data); }
};

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) noexcept {
  return (value + to - 1) / to * to;
}

std::string describe_foreign_window(std::uint64_t address) {
  if (address < shared_reserved_bytes) return "a null pointer";
  if (address < (std::uint64_t{1} << 32)) {
    return "it looks like a shared or local address, which global accesses do not take";
  }
  if (address >= shared_window && address < local_window) return "a shared address used as global";
  if (address >= local_window && address < param_window) return "a local address used as global";
  if (address >= param_window && address < param_window_end) {
    return "an address of the kernel's parameters used as global";
  }
  return "no allocation is near; a host address is not one of the emulated device";
}

}  // namespace

struct GlobalMemory::Allocation {
  Allocation(std::uint64_t at, std::uint64_t size, std::unique_ptr<std::byte[], FreeData> zeros)
      : address(at),
        bytes(size),
        data(std::move(zeros)),
        chunks(static_cast<std::size_t>((size + chunk_bytes - 1) / chunk_bytes)) {}
  ~Allocation() {
    for (std::atomic<Chunk*>& chunk : chunks) delete chunk.load();
  }

  std::uint64_t chunk_size(std::uint64_t index) const noexcept {
    return std::min(chunk_bytes, bytes - index * chunk_bytes);
  }
  // Made when first touched; nullptr once the memory is freed.
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
      chunks[index].store(made, std::memory_order_release);
    }
    return made;
  }
  // Gives the bytes back; whoever still holds the allocation finds `is_freed` under a chunk's lock.
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

  const std::uint64_t address;
  const std::uint64_t bytes;
  std::atomic<bool> is_freed{false};
  std::unique_ptr<std::byte[], FreeData> data;
  std::vector<std::atomic<Chunk*>> chunks;
  std::mutex making;
};

struct GlobalMemory::Insides {
  using AllocationPointer = std::shared_ptr<Allocation>;

  // A chunk, locked, with the bytes that it covers.
  struct View {
    std::unique_lock<SpinLock> lock;
    Chunk* chunk = nullptr;
    std::byte* data = nullptr;
    std::uint64_t begin = 0;  // address of its first byte
    std::uint64_t bytes = 0;
  };

  AllocationPointer find(std::uint64_t address) const {
    const std::shared_lock lock(mutex);
    auto above = live.upper_bound(address);
    if (above == live.begin()) return nullptr;
    const AllocationPointer& candidate = std::prev(above)->second;
    return address - candidate->address < candidate->bytes ? candidate : nullptr;
  }

  // Through what this thread has used lately; nullptr where nothing is.
  Allocation* find_cached(std::uint64_t address);

  // Bytes from `address` on, at least one and at most to the end of the chunk.
  bool lock_chunk(std::uint64_t address, View& view);
  // `note`: an access of a kernel, to be forgotten when the next begins.
  void note_accesses(Allocation& allocation, std::uint64_t index, Chunk& chunk);
  View chunk_of_access(std::uint64_t address, std::uint32_t bytes, int lane);

  [[noreturn]] void throw_out_of_bounds(std::uint64_t address, std::uint32_t bytes, int lane) const;
  std::string describe_neighbourhood(std::uint64_t address, std::uint32_t bytes) const;

  // Notes accesses that a conflict stopped, cell by cell: they may follow the atomics of a cell
  // through a later one. False, with `found`, where there is a conflict nevertheless.
  bool note_behind_updates(const View& view, std::uint64_t offset, std::uint32_t bytes,
                           const Accessor& who, bool is_write, Conflict& found);
  bool note_cell_behind_updates(const View& view, std::uint64_t offset, std::uint32_t bytes,
                                const Accessor& who, bool is_write, Conflict& found);
  void require_followed(const View& view, const LaneBytes& lanes, Accessor who, bool is_write,
                        const Conflict& found, int lane);

  template <class Visit>
  void for_each_accessed(std::uint64_t address, std::uint32_t bytes, int lane, Visit visit);
  template <class Visit>
  bool for_each_piece(std::uint64_t address, std::uint64_t bytes, Visit visit);

  bool take(std::uint64_t from, std::uint64_t bytes, Carried& carried);
  bool put(std::uint64_t to, std::uint64_t bytes, const Carried& carried);

  std::uint64_t place_for(std::uint64_t bytes);

  std::uint64_t id = 0;
  std::uint64_t limit = 0;
  mutable std::shared_mutex mutex;
  std::map<std::uint64_t, AllocationPointer> live;
  std::map<std::uint64_t, std::uint64_t> freed;  // address to bytes
  std::uint64_t next_address = global_window;
  std::atomic<std::uint64_t> used{0};
  std::mutex touched_mutex;
  std::vector<std::pair<AllocationPointer, std::uint64_t>> touched;  // chunks with accesses
  PublicationTable publications;
  UpdateOrder updates;
};

namespace {
std::atomic<std::uint64_t> next_memory_id{1};
}  // namespace

GlobalMemory::GlobalMemory(std::uint64_t limit_bytes) : insides_(std::make_unique<Insides>()) {
  insides_->id = next_memory_id.fetch_add(1, std::memory_order_relaxed);
  insides_->limit = limit_bytes;
}

GlobalMemory::~GlobalMemory() {
  // Threads may remember allocations; their bytes go now.
  for (auto& [address, allocation] : insides_->live) allocation->retire();
}

// --- allocation -----------------------------------------------------------------------------

std::uint64_t GlobalMemory::Insides::place_for(std::uint64_t bytes) {
  const std::uint64_t span = round_up(bytes, allocation_alignment) + gap_bytes;
  // Addresses are not used again before the whole window was, so that a use after free shows.
  for (int round = 0; round < 2; ++round) {
    std::uint64_t place = next_address;
    auto above = live.lower_bound(place);
    while (above != live.end() && above->first < place + span) {
      place = round_up(above->first + above->second->bytes + gap_bytes, allocation_alignment);
      ++above;
    }
    if (place + span <= global_window_end) {
      next_address = place + span;
      auto stale = freed.lower_bound(place);
      while (stale != freed.end() && stale->first < place + span) stale = freed.erase(stale);
      return place;
    }
    next_address = global_window;
  }
  return 0;
}

std::uint64_t GlobalMemory::allocate(std::uint64_t bytes) {
  if (bytes == 0 || bytes > insides_->limit) return 0;
  const std::unique_lock lock(insides_->mutex);
  if (insides_->used.load() > insides_->limit - bytes) return 0;
  // Zero pages of the host's system cost nothing until they are touched.
  std::unique_ptr<std::byte[], FreeData> data(
      static_cast<std::byte*>(std::calloc(static_cast<std::size_t>(bytes), 1)));
  if (data == nullptr) return 0;
  const std::uint64_t place = insides_->place_for(bytes);
  if (place == 0) return 0;
  insides_->live.emplace(place, std::make_shared<Allocation>(place, bytes, std::move(data)));
  insides_->used.fetch_add(bytes);
  return place;
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

// --- chunks -----------------------------------------------------------------------------

GlobalMemory::Allocation* GlobalMemory::Insides::find_cached(std::uint64_t address) {
  struct Entry {
    std::uint64_t memory = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    AllocationPointer allocation;
  };
  // A kernel works on a handful of operands; more entries cost more than a search.
  thread_local std::array<Entry, 4> recent;
  thread_local std::size_t next_victim = 0;
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
  AllocationPointer owner = find(allocation.address);
  if (owner == nullptr) return;
  const std::lock_guard lock(touched_mutex);
  touched.emplace_back(std::move(owner), index);
  chunk.has_accesses = true;
}

GlobalMemory::Insides::View GlobalMemory::Insides::chunk_of_access(std::uint64_t address,
                                                                   std::uint32_t bytes, int lane) {
  View view;
  if (!lock_chunk(address, view) || address - view.begin + bytes > view.bytes) {
    if (view.lock.owns_lock()) view.lock.unlock();
    throw_out_of_bounds(address, bytes, lane);
  }
  return view;
}

void GlobalMemory::forget_accesses() {
  decltype(insides_->touched) touched;
  {
    const std::lock_guard lock(insides_->touched_mutex);
    touched.swap(insides_->touched);
  }
  for (const auto& [allocation, index] : touched) {
    Chunk* const chunk = allocation->chunks[index].load();
    const std::lock_guard lock(chunk->lock);
    chunk->shadow.forget_accesses();
    chunk->has_accesses = false;
  }
  insides_->publications.clear();
  insides_->updates.clear();
}

PublicationTable& GlobalMemory::publications() noexcept { return insides_->publications; }

// --- faults -----------------------------------------------------------------------------

std::string GlobalMemory::Insides::describe_neighbourhood(std::uint64_t address,
                                                          std::uint32_t bytes) const {
  const std::shared_lock lock(mutex);
  const auto dead = freed.upper_bound(address);
  if (dead != freed.begin()) {
    const auto& [start, size] = *std::prev(dead);
    if (address - start < size) {
      return fmt::format(
          "it lies in memory that was freed: {} bytes at {:#x}; keep the buffer until the kernel "
          "has run",
          size, start);
    }
  }
  const auto above = live.upper_bound(address);
  const auto below = above == live.begin() ? live.end() : std::prev(above);
  const std::uint64_t past = below == live.end()
                                 ? ~std::uint64_t{0}
                                 : address + bytes - (below->first + below->second->bytes);
  const std::uint64_t before = above == live.end() ? ~std::uint64_t{0} : above->first - address;
  if (std::min(past, before) > nearest_bytes) {
    if (address < global_window || address >= global_window_end)
      return describe_foreign_window(address);
    return live.empty() ? "nothing is allocated"
                        : "no allocation is within 1 GiB of it; check the index for an overflow, "
                          "and the pointer";
  }
  if (past <= before) {
    return fmt::format(
        "it ends {} bytes past the end of the {} bytes at {:#x}; check the index "
        "and the guard of the tail",
        past, below->second->bytes, below->first);
  }
  return fmt::format("it begins {} bytes before the {} bytes at {:#x}; check for a negative index",
                     before, above->second->bytes, above->first);
}

void GlobalMemory::Insides::throw_out_of_bounds(std::uint64_t address, std::uint32_t bytes,
                                                int lane) const {
  Fault fault(FaultKind::out_of_bounds,
              fmt::format("access of {} bytes at global address {:#x} is not inside an allocation: "
                          "{}",
                          bytes, address, describe_neighbourhood(address, bytes)));
  fault.place.lane = lane;
  throw fault;
}

namespace {

[[noreturn]] void throw_conflict(const Conflict& conflict, bool is_write, std::uint64_t begin,
                                 int lane) {
  ConflictFault fault(conflict, is_write, "global memory", begin + conflict.offset);
  fault.place.lane = lane;
  throw fault;
}

[[noreturn]] void throw_misaligned(std::uint64_t address, std::uint32_t bytes, int lane) {
  Fault fault(FaultKind::misaligned,
              fmt::format("access of {} bytes at global address {:#x}: expected a multiple of {}; "
                          "use a narrower access or align the data",
                          bytes, address, bytes));
  fault.place.lane = lane;
  throw fault;
}

void require_alignment(const LaneAccess& access) {
  const int lane = find_misaligned_lane(access);
  if (lane >= 0) throw_misaligned(access.addresses[lane], access.bytes, lane);
}

}  // namespace

// --- by kernels -----------------------------------------------------------------------------

namespace {

// Of the lanes in `rest` those whose bytes lie in the chunk.
LaneBytes lanes_of_chunk(const LaneAccess& access, std::uint32_t rest, std::uint64_t begin,
                         std::uint64_t bytes) {
  LaneBytes lanes{.active = rest,
                  .addresses = access.addresses,
                  .begin = begin,
                  .bytes = access.bytes,
                  .is_row = rest == access.active && forms_row(access)};
  lanes.is_row = lanes.is_row && lanes.offset(0) + std::uint64_t{32} * access.bytes <= bytes;
  if (!lanes.is_row) {
    lanes.active = lanes_within(rest, access.addresses, begin, bytes - access.bytes);
  }
  return lanes;
}

}  // namespace

bool GlobalMemory::Insides::note_cell_behind_updates(const View& view, std::uint64_t offset,
                                                     std::uint32_t bytes, const Accessor& who,
                                                     bool is_write, Conflict& found) {
  Shadow& shadow = view.chunk->shadow;
  // For these bytes, and this access, the atomics that it follows are known.
  Knowledge known = *who.known;
  Accessor informed = who;
  informed.known = &known;
  Epoch last;
  const auto has_conflict = [&] {
    found = {};
    return is_write ? shadow.write(offset, bytes, informed, found)
                    : shadow.read(offset, bytes, informed, found);
  };
  while (has_conflict()) {
    if (found.other == last || !updates.is_followed(view.begin + found.offset, found, who)) {
      return false;
    }
    last = found.other;
    VectorClock of_other;
    of_other.raise(last.agent(), last.clock());
    known.happened.join_foreign(of_other, last.cluster(), who.cluster);
  }
  if (is_write) updates.forget(view.begin + offset, bytes);
  return true;
}

bool GlobalMemory::Insides::note_behind_updates(const View& view, std::uint64_t offset,
                                                std::uint32_t bytes, const Accessor& who,
                                                bool is_write, Conflict& found) {
  const std::uint32_t step = std::min<std::uint32_t>(bytes, 4);  // naturally aligned
  for (std::uint32_t at = 0; at < bytes; at += step) {
    if (!note_cell_behind_updates(view, offset + at, step, who, is_write, found)) return false;
  }
  return true;
}

// Throws where the accesses of `lanes`, which `found` stopped, conflict after all. What was noted
// of them before is noted again, which changes nothing.
void GlobalMemory::Insides::require_followed(const View& view, const LaneBytes& lanes, Accessor who,
                                             bool is_write, const Conflict& found, int lane) {
  if (!updates.is_followed(view.begin + found.offset, found, who)) {
    throw_conflict(found, is_write, view.begin, lane);
  }
  visit_lanes(lanes.active, [&](int each) {
    Conflict conflict;
    who.lane = static_cast<std::uint8_t>(each);
    if (!note_behind_updates(view, lanes.offset(each), lanes.bytes, who, is_write, conflict)) {
      throw_conflict(conflict, is_write, view.begin, each);
    }
  });
}

std::uint32_t GlobalMemory::load(const LaneAccess& access, Accessor who, void* to,
                                 std::uint32_t stride, std::uint32_t* written) {
  require_alignment(access);
  std::array<std::uint32_t, 32> none;
  std::uint32_t* const masks = written != nullptr ? written : none.data();
  std::uint32_t complete = 0;
  for (std::uint32_t rest = access.active; rest != 0;) {
    const int first = std::countr_zero(rest);
    const auto view = insides_->chunk_of_access(access.addresses[first], access.bytes, first);
    const LaneBytes lanes = lanes_of_chunk(access, rest, view.begin, view.bytes);
    Conflict conflict;
    int lane = -1;
    if (note_reads(view.chunk->shadow, lanes, who, conflict, lane)) {
      insides_->require_followed(view, lanes, who, false, conflict, lane);
    }
    gather(lanes, view.data, static_cast<std::byte*>(to), stride);
    complete |=
        view.chunk->is_all_written ? lanes.active : find_written(view.chunk->shadow, lanes, masks);
    rest &= ~lanes.active;
  }
  return complete;
}

void GlobalMemory::store(const LaneAccess& access, Accessor who, const void* from,
                         std::uint32_t stride, std::uint32_t defined,
                         const std::uint32_t* written) {
  require_alignment(access);
  const auto* const values = static_cast<const std::byte*>(from);
  for (std::uint32_t rest = access.active; rest != 0;) {
    const int first = std::countr_zero(rest);
    const auto view = insides_->chunk_of_access(access.addresses[first], access.bytes, first);
    const LaneBytes lanes = lanes_of_chunk(access, rest, view.begin, view.bytes);
    Conflict conflict;
    int lane = -1;
    if (note_writes(view.chunk->shadow, lanes, values, stride, who, conflict, lane)) {
      LaneBytes noted = lanes;
      noted.active &= ~find_repeated_lanes(lanes, values, stride);
      insides_->require_followed(view, noted, who, true, conflict, lane);
    }
    if (who.is_atomic) {
      visit_lanes(lanes.active,
                  [&](int each) { insides_->updates.forget(lanes.addresses[each], lanes.bytes); });
    }
    scatter(lanes, view.data, values, stride);
    if ((lanes.active & ~defined) != 0) view.chunk->is_all_written = false;
    if (!view.chunk->is_all_written) mark_stored(view.chunk->shadow, lanes, defined, written);
    rest &= ~lanes.active;
  }
}

// Calls `visit(view, offset in the view, bytes, bytes before)` for each chunk of a range that a
// kernel accesses.
template <class Visit>
void GlobalMemory::Insides::for_each_accessed(std::uint64_t address, std::uint32_t bytes, int lane,
                                              Visit visit) {
  std::uint32_t done = 0;
  while (done < bytes) {
    const View view = chunk_of_access(address + done, 1, lane);
    const std::uint64_t offset = address + done - view.begin;
    const auto piece =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes - done, view.bytes - offset));
    visit(view, offset, piece, done);
    done += piece;
  }
}

void GlobalMemory::read_bytes(std::uint64_t address, std::uint32_t bytes, const Accessor& who,
                              void* to, std::uint64_t* written) {
  if (written != nullptr) *written = 0;
  insides_->for_each_accessed(
      address, bytes, who.lane,
      [&](const auto& view, std::uint64_t offset, std::uint32_t piece, std::uint32_t done) {
        Conflict conflict;
        if (view.chunk->shadow.read(offset, piece, who, conflict)) {
          throw_conflict(conflict, false, view.begin, who.lane);
        }
        std::memcpy(static_cast<std::byte*>(to) + done, view.data + offset, piece);
        if (written != nullptr && bytes <= 64) {
          *written |= view.chunk->shadow.written_mask(offset, piece) << done;
        }
      });
}

void GlobalMemory::write_bytes(std::uint64_t address, std::uint32_t bytes, const Accessor& who,
                               const void* from) {
  insides_->for_each_accessed(
      address, bytes, who.lane,
      [&](const auto& view, std::uint64_t offset, std::uint32_t piece, std::uint32_t done) {
        Conflict conflict;
        if (view.chunk->shadow.write(offset, piece, who, conflict)) {
          throw_conflict(conflict, true, view.begin, who.lane);
        }
        std::memcpy(view.data + offset, static_cast<const std::byte*>(from) + done, piece);
        view.chunk->shadow.mark_written(offset, piece);
      });
}

void GlobalMemory::discard(std::uint64_t address, std::uint32_t bytes, const Accessor& who) {
  if (address % bytes != 0) throw_misaligned(address, bytes, who.lane);
  insides_->for_each_accessed(
      address, bytes, who.lane,
      [&](const auto& view, std::uint64_t offset, std::uint32_t piece, std::uint32_t) {
        Conflict conflict;
        if (view.chunk->shadow.write(offset, piece, who, conflict)) {
          throw_conflict(conflict, true, view.begin, who.lane);
        }
        view.chunk->mark_unwritten(offset, piece);
      });
}

bool GlobalMemory::update(std::uint64_t address, std::uint32_t bytes, Accessor who,
                          LaneUpdate apply, const void* operand, void* old,
                          UpdateDefinedness defined) {
  if (address % bytes != 0) throw_misaligned(address, bytes, who.lane);
  const auto view = insides_->chunk_of_access(address, bytes, who.lane);
  const std::uint64_t offset = address - view.begin;
  Conflict conflict;
  who.is_atomic = true;
  if (view.chunk->shadow.write(offset, bytes, who, conflict)) {
    throw_conflict(conflict, true, view.begin, who.lane);
  }
  insides_->updates.note(address, bytes, who);
  const bool was_written = view.chunk->shadow.is_written(offset, bytes);
  alignas(16) std::array<std::byte, 32> value;
  std::memcpy(value.data(), view.data + offset, bytes);
  if (old != nullptr) std::memcpy(old, value.data(), bytes);
  apply(value.data(), operand);
  std::memcpy(view.data + offset, value.data(), bytes);
  if (defined.is_operand_defined && (was_written || defined.replaces)) {
    view.chunk->shadow.mark_written(offset, bytes);
  } else {
    view.chunk->mark_unwritten(offset, bytes);
  }
  return was_written;
}

// --- by the host -----------------------------------------------------------------------------

// Calls `visit(view, offset in the view, bytes, bytes before)` for each chunk; false where the
// range is not inside one allocation.
template <class Visit>
bool GlobalMemory::Insides::for_each_piece(std::uint64_t address, std::uint64_t bytes,
                                           Visit visit) {
  if (bytes == 0) return true;
  const AllocationPointer allocation = find(address);
  if (allocation == nullptr || bytes > allocation->bytes - (address - allocation->address)) {
    return false;
  }
  std::uint64_t done = 0;
  while (done < bytes) {
    const std::uint64_t from_start = address + done - allocation->address;
    const std::uint64_t index = from_start / chunk_bytes;
    const std::uint64_t offset = from_start % chunk_bytes;
    Chunk* const chunk = allocation->chunk(index);
    if (chunk == nullptr) return false;
    const std::lock_guard lock(chunk->lock);
    if (allocation->is_freed.load(std::memory_order_relaxed)) return false;
    const std::uint64_t piece = std::min(bytes - done, allocation->chunk_size(index) - offset);
    visit(*chunk, allocation->data.get() + index * chunk_bytes, offset, piece, done);
    done += piece;
  }
  return true;
}

namespace {

// The host wrote: what kernels did before is over.
void note_host_write(Chunk& chunk, std::uint64_t offset, std::uint64_t bytes) {
  chunk.shadow.mark_written(offset, bytes);
  if (offset == 0 && bytes == chunk.bytes) chunk.is_all_written = true;
  if (chunk.has_accesses) chunk.shadow.forget_accesses(offset, bytes);
}

}  // namespace

bool GlobalMemory::copy_in(std::uint64_t to, const void* from, std::uint64_t bytes) {
  const auto* const source = static_cast<const std::byte*>(from);
  return insides_->for_each_piece(to, bytes,
                                  [&](Chunk& chunk, std::byte* data, std::uint64_t offset,
                                      std::uint64_t piece, std::uint64_t done) {
                                    std::memcpy(data + offset, source + done, piece);
                                    note_host_write(chunk, offset, piece);
                                  });
}

bool GlobalMemory::copy_out(void* to, std::uint64_t from, std::uint64_t bytes) const {
  auto* const target = static_cast<std::byte*>(to);
  return insides_->for_each_piece(
      from, bytes,
      [&](Chunk&, std::byte* data, std::uint64_t offset, std::uint64_t piece, std::uint64_t done) {
        std::memcpy(target + done, data + offset, piece);
      });
}

std::uint64_t GlobalMemory::count_unwritten(std::uint64_t address, std::uint64_t bytes) const {
  std::uint64_t count = 0;
  insides_->for_each_piece(
      address, bytes,
      [&](Chunk& chunk, std::byte*, std::uint64_t offset, std::uint64_t piece, std::uint64_t) {
        if (chunk.is_all_written) return;
        for (std::uint64_t at = 0; at < piece; at += 64) {
          const auto width = static_cast<std::uint32_t>(std::min<std::uint64_t>(64, piece - at));
          const std::uint64_t written = chunk.shadow.written_mask(offset + at, width);
          count += width - static_cast<std::uint32_t>(std::popcount(written));
        }
      });
  return count;
}

bool GlobalMemory::fill(std::uint64_t to, std::uint8_t value, std::uint64_t bytes) {
  return insides_->for_each_piece(
      to, bytes,
      [&](Chunk& chunk, std::byte* data, std::uint64_t offset, std::uint64_t piece, std::uint64_t) {
        std::memset(data + offset, value, piece);
        note_host_write(chunk, offset, piece);
      });
}

bool GlobalMemory::Insides::take(std::uint64_t from, std::uint64_t bytes, Carried& carried) {
  return for_each_piece(from, bytes,
                        [&](Chunk& chunk, std::byte* data, std::uint64_t offset,
                            std::uint64_t piece, std::uint64_t done) {
                          std::memcpy(carried.values.data() + done, data + offset, piece);
                          for (std::uint64_t at = 0; at < piece; ++at) {
                            carried.is_written[done + at] =
                                chunk.is_all_written || chunk.shadow.is_written(offset + at, 1);
                          }
                        });
}

bool GlobalMemory::Insides::put(std::uint64_t to, std::uint64_t bytes, const Carried& carried) {
  return for_each_piece(to, bytes,
                        [&](Chunk& chunk, std::byte* data, std::uint64_t offset,
                            std::uint64_t piece, std::uint64_t done) {
                          std::memcpy(data + offset, carried.values.data() + done, piece);
                          note_host_write(chunk, offset, piece);
                          for (std::uint64_t at = 0; at < piece; ++at) {
                            if (!carried.is_written[done + at])
                              chunk.mark_unwritten(offset + at, 1);
                          }
                        });
}

bool GlobalMemory::copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  if (bytes == 0) return true;
  const auto fits = [&](std::uint64_t address) {
    const auto extent = find(address);
    return extent && bytes <= extent->bytes - (address - extent->address);
  };
  if (!fits(to) || !fits(from)) return false;
  Carried carried;
  for (std::uint64_t done = 0; done < bytes; done += chunk_bytes) {
    const std::uint64_t piece = std::min(chunk_bytes, bytes - done);
    if (!insides_->take(from + done, piece, carried) || !insides_->put(to + done, piece, carried)) {
      return false;
    }
  }
  return true;
}

}  // namespace gemmery::emulator
