// SPDX-License-Identifier: Apache-2.0
// The cache's account: bytes in use, and the counters of all processes. One small file, changed
// under a lock. It may be lost at any time: bytes are counted anew then, and counters restart at
// zero.
#pragma once

#include <gemmery/cache.hpp>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "platform/file_lock.hpp"

namespace gemmery::jit {

struct CounterRow {
  const char* name;
  std::uint64_t CacheCounters::*value;
};
inline constexpr std::array counter_rows{
    CounterRow{"hits", &CacheCounters::hits},
    CounterRow{"absent", &CacheCounters::absent},
    CounterRow{"damaged", &CacheCounters::damaged},
    CounterRow{"foreign", &CacheCounters::foreign},
    CounterRow{"other_version", &CacheCounters::other_version},
    CounterRow{"unreadable", &CacheCounters::unreadable},
    CounterRow{"kept", &CacheCounters::kept},
    CounterRow{"duplicates", &CacheCounters::duplicates},
    CounterRow{"not_kept", &CacheCounters::not_kept},
    CounterRow{"evicted", &CacheCounters::evicted},
    CounterRow{"waits", &CacheCounters::waits},
    CounterRow{"timeouts", &CacheCounters::timeouts},
    CounterRow{"bytes_read", &CacheCounters::bytes_read},
    CounterRow{"bytes_written", &CacheCounters::bytes_written},
};
void add(CacheCounters& sum, const CacheCounters& more);

struct LedgerState {
  std::optional<std::int64_t> bytes;  // in use; nothing if they must be counted
  CacheCounters counters;
};

// The ledger while this process holds its lock.
class CacheLedger {
 public:
  // Nothing if the lock was not free in time or the file cannot be opened.
  static std::optional<CacheLedger> acquire(const platform::Folder& folder,
                                            std::chrono::milliseconds patience);

  const LedgerState& state() const noexcept { return state_; }
  // Failures are not reported: an unreadable file counts as a lost ledger.
  void write(const LedgerState& state);

 private:
  CacheLedger(platform::FileLock lock, LedgerState state) : lock_(std::move(lock)), state_(state) {}

  platform::FileLock lock_;
  LedgerState state_;
};

// Without the lock, for reports.
LedgerState read_ledger(const platform::Folder& folder, platform::Owner owner);

// A lost ledger for any text that `print` does not produce.
LedgerState parse_ledger(std::string_view text);
std::string print_ledger(const LedgerState& state);

}  // namespace gemmery::jit
