// SPDX-License-Identifier: Apache-2.0
// The disk cache of compiled code. Any failure counts as a miss: nothing here throws or waits
// without a limit. Every call opens the folders anew, so that it sees a cache that was cleared,
// moved or mounted over meanwhile, and no descriptor stays open that a program might close.
#pragma once

#include <gemmery/cache.hpp>

#include <array>
#include <atomic>
#include <memory>

#include "jit/cache_ledger.hpp"
#include "jit/cache_root.hpp"
#include "jit/cache_settings.hpp"
#include "jit/code_cache.hpp"

namespace gemmery::jit {

// Usable from any number of threads and processes.
class DiskCache final : public CodeCache {
 public:
  explicit DiskCache(CacheSettings settings,
                     const platform::FileCalls& calls = platform::system_file_calls())
      : settings_(std::move(settings)), calls_(calls) {}

  Found find(const CacheKey& key) noexcept override;
  void keep(const CacheKey& key, const CompiledCode& code) noexcept override;
  void discard(const CacheKey& key) noexcept override;

  CacheCounters counters() const noexcept;  // of this object

  const CacheSettings& settings() const noexcept { return settings_; }
  // The user's own cache.
  OpenedCache open_own() const;

  // Removes the least recently used entries until at most this many bytes remain.
  struct Trimmed {
    std::int64_t entries = 0;
    std::int64_t bytes = 0;
    std::int64_t bytes_left = 0;
  };
  static Trimmed trim(const CacheRoot& root, std::int64_t most_bytes);

 private:
  using Counter = std::uint64_t CacheCounters::*;

  std::optional<CompiledCode> look_up(const CacheKey& key, EntryState& state);
  std::optional<CompiledCode> look_up_in(const CacheRoot& root, const CacheKey& key, bool is_own,
                                         EntryState& state);
  std::unique_ptr<Claim> claim(const CacheKey& key);
  void keep_in(const CacheRoot& root, const CacheKey& key, const CompiledCode& code);
  void make_room(const CacheRoot& root, std::int64_t bytes);
  void give_room_back(const CacheRoot& root, std::int64_t bytes);
  void heal(const CacheRoot& root, const CacheKey& key, const CacheRoot::Entry& entry);
  static void remove_and_recount(const CacheRoot& root, const std::string& name,
                                 std::optional<std::uint64_t> number);

  void count(Counter counter, std::uint64_t more = 1) noexcept;
  CacheCounters take_pending() noexcept;
  void write_counters() noexcept;
  void warn_once(const std::string& words) noexcept;

  const CacheSettings settings_;
  const platform::FileCalls& calls_;
  // Atomics instead of a lock, which could be held by another thread at a fork.
  std::array<std::atomic<std::uint64_t>, counter_rows.size()> counted_{};
  std::array<std::atomic<std::uint64_t>, counter_rows.size()> pending_{};  // not in the ledger yet
  std::atomic<unsigned> unaccounted_keeps_{0};
  std::atomic<bool> is_swept_{false};
  std::atomic<bool> has_warned_{false};
};

// The process's cache, by the environment at the first call. Never destroyed. Throws Error
// (invalid_argument) for a variable that cannot be parsed.
const std::shared_ptr<DiskCache>& process_cache();

}  // namespace gemmery::jit
