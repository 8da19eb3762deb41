// SPDX-License-Identifier: Apache-2.0
// The disk cache of compiled code: its contents, its counters and its cleanup. The variables in
// docs/environment.md set its folder and its size limit; docs/cache.md explains how it works.
// Whoever can write into it can run code on the GPU of this user, so a cache that others can write
// into is not used.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gemmery/export.hpp>

namespace gemmery {

// Counts of events.
struct CacheCounters {
  std::uint64_t hits = 0;
  // Misses, by reason:
  std::uint64_t absent = 0;         // no such entry
  std::uint64_t damaged = 0;        // bytes differ from those that were written
  std::uint64_t foreign = 0;        // another user's, writable by others, or of another key
  std::uint64_t other_version = 0;  // written by a library with another format
  std::uint64_t unreadable = 0;     // the file system failed
  // Code that was compiled after a miss:
  std::uint64_t kept = 0;
  std::uint64_t duplicates = 0;  // another process had stored it already
  std::uint64_t not_kept = 0;    // the file system failed, or it exceeds the cache's size limit
  std::uint64_t evicted = 0;     // removed to make room for others
  // Locks, which only avoid duplicate work:
  std::uint64_t waits = 0;     // for another process that was compiling the same
  std::uint64_t timeouts = 0;  // waits that timed out
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
};

struct CacheReport {
  std::string folder;  // empty if the environment names none
  bool is_usable = false;
  std::string refusal;  // why it is not
  bool is_read_only = false;
  std::string file_system;  // "ext4"
  bool has_locks = false;   // false on network file systems: code may be compiled more than once
  std::int64_t entries = 0;
  std::int64_t bytes = 0;
  std::int64_t most_bytes = 0;
  std::vector<std::string> shared;  // folders that are searched after it
  CacheCounters counters;           // of all processes since the cache was made or cleared
  CacheCounters own_counters;       // of this process
};

// One piece of compiled code.
struct CachedCode {
  std::string name;  // 32 hexadecimal digits
  std::string target;
  std::string form;   // "cubin" or "ptx"
  std::string entry;  // the kernel's function
  std::string words;  // the comments that its source begins with: operands and epilogue
  std::int64_t bytes = 0;
  std::chrono::system_clock::time_point used_at;  // accurate to a minute
};

struct CacheCheck {
  std::int64_t sound = 0;
  std::vector<std::string> faulty;  // "NAME: what is wrong"
};

struct CacheRemoval {
  std::int64_t entries = 0;
  std::int64_t bytes = 0;
};

// Does not fail if the cache cannot be used: it reports the reason.
GEMMERY_API CacheReport cache_report();

// The functions below are for the user's own cache, not for shared ones. All throw Error:
// unavailable if the cache cannot be used, invalid_argument for an invalid environment variable.

// Most recently used first.
GEMMERY_API std::vector<CachedCode> list_cache();
// Reads every byte and compares it with what was written.
GEMMERY_API CacheCheck verify_cache();
// Removes faulty entries, leftovers of interrupted processes, and then the least recently used
// entries, until at most this many bytes remain.
GEMMERY_API CacheRemoval prune_cache(std::int64_t most_bytes);
GEMMERY_API CacheRemoval clear_cache();

}  // namespace gemmery
