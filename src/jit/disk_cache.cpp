// SPDX-License-Identifier: Apache-2.0
// The caches of a process: its own and the shared ones.
#include "jit/disk_cache.hpp"

#include <algorithm>
#include <exception>
#include <vector>

#include <fmt/format.h>

#include "jit/cancellation.hpp"
#include "platform/file_system.hpp"
#include "platform/log.hpp"

namespace gemmery::jit {
namespace {

using platform::Attempt;
using platform::FileLock;
using platform::Folder;

// For the ledger, which is held at most for one scan of the cache.
constexpr std::chrono::milliseconds ledger_patience = std::chrono::seconds(5);
// Insertions between two scans if no ledger tells how full the cache is.
constexpr unsigned keeps_between_scans = 32;
constexpr std::chrono::hours leftover_age{1};

// Frees more than was asked for, so that a full cache is not scanned at every insertion.
std::int64_t comfortable_bytes(std::int64_t most) { return most - most / 8; }

std::uint64_t CacheCounters::*counter_of(EntryState state) {
  switch (state) {
    case EntryState::sound:
      return &CacheCounters::hits;
    case EntryState::absent:
      return &CacheCounters::absent;
    case EntryState::damaged:
      return &CacheCounters::damaged;
    case EntryState::foreign:
      return &CacheCounters::foreign;
    case EntryState::other_version:
      return &CacheCounters::other_version;
    case EntryState::unreadable:
      return &CacheCounters::unreadable;
  }
  return &CacheCounters::unreadable;
}

// The lock, and so the other processes' wait, lasts as long as the compilation.
class LockClaim final : public CodeCache::Claim {
 public:
  explicit LockClaim(FileLock lock) : lock_(std::move(lock)) {}

 private:
  FileLock lock_;
};

void tell_wait(const CacheKey& key, std::chrono::seconds waited, const std::string& holder) {
  platform::log(LogLevel::info,
                fmt::format("waiting for {} s for {}, which compiles {} for the cache",
                            waited.count(), holder, condition(key.conditions, "entry")));
}

std::int64_t count_bytes(const CacheRoot& root) {
  std::int64_t bytes = 0;
  for (const EntryFacts& entry : root.list()) bytes += entry.bytes;
  return bytes;
}

}  // namespace

// --- counting -----------------------------------------------------------------------------------

void DiskCache::count(Counter counter, std::uint64_t more) noexcept {
  for (std::size_t row = 0; row < counter_rows.size(); ++row) {
    if (counter_rows[row].value != counter) continue;
    counted_[row].fetch_add(more, std::memory_order_relaxed);
    pending_[row].fetch_add(more, std::memory_order_relaxed);
  }
}

CacheCounters DiskCache::counters() const noexcept {
  CacheCounters counters;
  for (std::size_t row = 0; row < counter_rows.size(); ++row)
    counters.*counter_rows[row].value = counted_[row].load(std::memory_order_relaxed);
  return counters;
}

CacheCounters DiskCache::take_pending() noexcept {
  CacheCounters taken;
  for (std::size_t row = 0; row < counter_rows.size(); ++row)
    taken.*counter_rows[row].value = pending_[row].exchange(0, std::memory_order_relaxed);
  return taken;
}

// If the ledger is not free at once, the counters wait for the next call.
void DiskCache::write_counters() noexcept {
  try {
    if (!settings_.own || settings_.is_read_only) return;
    const OpenedCache own = open_own();
    if (!own.root || !platform::is_on_local_file_system(own.root->folder())) return;
    std::optional<CacheLedger> ledger =
        CacheLedger::acquire(own.root->folder(), std::chrono::milliseconds(0));
    if (!ledger) return;
    LedgerState state = ledger->state();
    add(state.counters, take_pending());
    ledger->write(state);
  } catch (const std::exception& error) {
    warn_once(error.what());
  }
}

void DiskCache::warn_once(const std::string& words) noexcept {
  if (has_warned_.exchange(true)) return;
  try {
    platform::log(LogLevel::warning, "the cache of compiled code is not used: " + words);
  } catch (const std::exception&) {  // no memory for the message: nothing is logged
  }
}

// --- finding ------------------------------------------------------------------------------------

OpenedCache DiskCache::open_own() const {
  if (settings_.most_bytes == 0) return {.root = {}, .refusal = "GEMMERY_CACHE_MAX_BYTES is 0"};
  if (!settings_.own) return {.root = {}, .refusal = settings_.why_none};
  return CacheRoot::open(*settings_.own, calls_);
}

// The ledger's sum is unknown then; the next process that needs it counts.
void DiskCache::remove_and_recount(const CacheRoot& root, const std::string& name,
                                   std::optional<std::uint64_t> number) {
  if (!root.remove(name, number)) return;
  if (auto ledger = CacheLedger::acquire(root.folder(), ledger_patience))
    ledger->write({.bytes = std::nullopt, .counters = ledger->state().counters});
}

// Removes a bad entry so that a good one can take its name.
void DiskCache::heal(const CacheRoot& root, const CacheKey& key, const CacheRoot::Entry& entry) {
  const bool is_faulty = entry.state == EntryState::damaged ||
                         entry.state == EntryState::other_version ||
                         (entry.state == EntryState::foreign && !entry.manifest);
  if (!is_faulty || settings_.is_read_only) return;
  const auto number = entry.number != 0 ? std::optional(entry.number) : std::nullopt;
  remove_and_recount(root, entry_name(key), number);
}

std::optional<CompiledCode> DiskCache::look_up_in(const CacheRoot& root, const CacheKey& key,
                                                  bool is_own, EntryState& state) {
  CacheRoot::Entry entry = root.find(key);
  if (is_own) {
    state = entry.state;
    heal(root, key, entry);
  }
  if (entry.state != EntryState::sound) return std::nullopt;
  state = EntryState::sound;
  if (is_own && !settings_.is_read_only) root.stamp(entry_name(key));
  count(&CacheCounters::bytes_read, entry.files.total_bytes());
  return decode_entry(*entry.manifest, std::move(entry.files));
}

// `state` tells what was found in the process's own cache.
std::optional<CompiledCode> DiskCache::look_up(const CacheKey& key, EntryState& state) {
  const OpenedCache own = open_own();
  if (own.root) {
    if (auto code = look_up_in(*own.root, key, true, state)) return code;
  } else {
    warn_once(own.refusal);
  }
  for (const std::string& path : settings_.shared) {
    const OpenedCache shared = CacheRoot::open(
        {.path = path, .may_be_made = false, .owner = platform::Owner::user_or_root}, calls_);
    if (!shared.root) continue;
    if (auto code = look_up_in(*shared.root, key, false, state)) return code;
  }
  return std::nullopt;
}

std::unique_ptr<CodeCache::Claim> DiskCache::claim(const CacheKey& key) {
  if (settings_.is_read_only) return nullptr;
  const OpenedCache own = open_own();
  if (!own.root || !platform::is_on_local_file_system(own.root->folder())) return nullptr;
  const Attempt<Folder> locks = own.root->lock_folder();
  if (!locks) return nullptr;
  bool is_held_by_another = false;
  const FileLock::Patience patience{
      .most = settings_.patience,
      .until_told = settings_.until_told,
      .tell = [&](auto waited, const auto& holder) { tell_wait(key, waited, holder); },
      .is_given_up =
          [&] {
            is_held_by_another = true;
            return current_cancellation().stop_requested();
          }};
  // A few lock names for any number of entries; two keys that share one may wait for each other
  // without need.
  std::optional<FileLock> lock = FileLock::acquire(*locks, entry_name(key).substr(0, 2), patience);
  if (is_held_by_another) count(lock ? &CacheCounters::waits : &CacheCounters::timeouts);
  if (!lock) return nullptr;
  return std::make_unique<LockClaim>(*std::move(lock));
}

CodeCache::Found DiskCache::find(const CacheKey& key) noexcept {
  Found found;
  try {
    if (settings_.most_bytes == 0) return found;
    EntryState state = EntryState::absent;
    found.code = look_up(key, state);
    if (!found.code) {
      found.claim = claim(key);
      // Another process may have stored it while this one waited, or before.
      EntryState later_state = EntryState::absent;
      found.code = look_up(key, later_state);
      if (found.code) {
        state = later_state;
        found.claim.reset();
      }
    }
    count(counter_of(state));
    write_counters();
  } catch (const std::exception& error) {
    warn_once(error.what());
  }
  return found;
}

// --- keeping ------------------------------------------------------------------------------------

namespace {

// A time in the future comes from a wrong clock and counts as the oldest: otherwise the entry would
// outlive all that are used. Machines that share a file system may differ a little.
std::chrono::system_clock::time_point believed_use(const EntryFacts& entry) {
  constexpr std::chrono::hours most_difference{1};
  const bool is_to_come = entry.used_at > std::chrono::system_clock::now() + most_difference;
  return is_to_come ? std::chrono::system_clock::time_point{} : entry.used_at;
}

}  // namespace

DiskCache::Trimmed DiskCache::trim(const CacheRoot& root, std::int64_t most_bytes) {
  std::vector<EntryFacts> entries = root.list();
  std::ranges::sort(entries, {}, believed_use);
  Trimmed trimmed;
  for (const EntryFacts& entry : entries) trimmed.bytes_left += entry.bytes;
  for (const EntryFacts& entry : entries) {
    if (trimmed.bytes_left <= most_bytes) break;
    if (!root.remove(entry.name)) continue;
    trimmed.bytes_left -= entry.bytes;
    trimmed.bytes += entry.bytes;
    ++trimmed.entries;
  }
  return trimmed;
}

// The ledger is updated before the entry is stored: a process that ends in between leaves too large
// a sum, which counting corrects, never too large a cache.
void DiskCache::make_room(const CacheRoot& root, std::int64_t bytes) {
  const std::int64_t most = settings_.most_bytes - bytes;
  const std::int64_t goal =
      std::max<std::int64_t>(comfortable_bytes(settings_.most_bytes) - bytes, 0);
  const bool is_local = platform::is_on_local_file_system(root.folder());
  std::optional<CacheLedger> ledger =
      is_local ? CacheLedger::acquire(root.folder(), ledger_patience) : std::nullopt;
  if (!ledger && !is_local && unaccounted_keeps_.fetch_add(1) % keeps_between_scans != 0) return;
  LedgerState state = ledger ? ledger->state() : LedgerState{};
  std::int64_t used = state.bytes ? *state.bytes : count_bytes(root);
  if (used > most) {
    const Trimmed trimmed = trim(root, goal);
    used = trimmed.bytes_left;
    count(&CacheCounters::evicted, static_cast<std::uint64_t>(trimmed.entries));
  }
  if (!ledger) return;
  state.bytes = used + bytes;
  add(state.counters, take_pending());
  ledger->write(state);
}

void DiskCache::give_room_back(const CacheRoot& root, std::int64_t bytes) {
  if (!platform::is_on_local_file_system(root.folder())) return;
  auto ledger = CacheLedger::acquire(root.folder(), ledger_patience);
  if (!ledger || !ledger->state().bytes) return;
  LedgerState state = ledger->state();
  state.bytes = std::max<std::int64_t>(*state.bytes - bytes, 0);
  ledger->write(state);
}

void DiskCache::keep_in(const CacheRoot& root, const CacheKey& key, const CompiledCode& code) {
  if (!is_swept_.exchange(true)) root.sweep(leftover_age);
  const EntryFiles files = encode_entry(key, code);
  const auto bytes = static_cast<std::int64_t>(files.total_bytes());
  if (bytes > settings_.most_bytes) return count(&CacheCounters::not_kept);
  make_room(root, bytes);
  const CacheRoot::KeepOutcome outcome = root.keep(entry_name(key), files);
  switch (outcome.kept) {
    case CacheRoot::Kept::yes:
      count(&CacheCounters::bytes_written, files.total_bytes());
      return count(&CacheCounters::kept);
    case CacheRoot::Kept::there_before:
      give_room_back(root, bytes);
      return count(&CacheCounters::duplicates);
    case CacheRoot::Kept::no:
      give_room_back(root, bytes);
      count(&CacheCounters::not_kept);
      return warn_once(settings_.own->path + " cannot be written: " + outcome.error.message());
  }
}

void DiskCache::keep(const CacheKey& key, const CompiledCode& code) noexcept {
  try {
    if (settings_.is_read_only || (code.cubin.empty() && code.ptx.empty())) return;
    const OpenedCache own = open_own();
    if (!own.root) return;
    keep_in(*own.root, key, code);
    write_counters();
  } catch (const std::exception& error) {
    warn_once(error.what());
  }
}

void DiskCache::discard(const CacheKey& key) noexcept {
  try {
    if (settings_.is_read_only) return;
    const OpenedCache own = open_own();
    if (own.root) remove_and_recount(*own.root, entry_name(key), std::nullopt);
  } catch (const std::exception& error) {
    warn_once(error.what());
  }
}

const std::shared_ptr<DiskCache>& process_cache() {
  static const auto* const cache =
      new std::shared_ptr<DiskCache>(std::make_shared<DiskCache>(read_cache_settings()));
  return *cache;
}

}  // namespace gemmery::jit
