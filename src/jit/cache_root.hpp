// SPDX-License-Identifier: Apache-2.0
// One cache on disk, open for a moment: entries are folders, made aside and put in place whole by
// one rename, so that a reader sees all of an entry or nothing of it.
//
//   ROOT/v1/ab/cd/ef01…/   an entry: key, source.cu, kernel.cubin, log, manifest
//          tmp/…           entries in the making, and those being removed
//          locks/…         who compiles what, on local file systems
//          ledger          bytes in use and counters
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "jit/cache_entry.hpp"
#include "platform/trusted_folder.hpp"

namespace gemmery::jit {

// What came of looking for an entry.
enum class EntryState : std::uint8_t {
  sound,
  absent,
  damaged,
  foreign,
  other_version,
  unreadable,
};
const char* describe(EntryState state) noexcept;

struct EntryFacts {
  std::string name;
  std::int64_t bytes = 0;
  std::chrono::system_clock::time_point used_at = {};
};

struct OpenedCache;

class CacheRoot {
 public:
  // Refused where others might write into it, or where it is not there and may not be made.
  static OpenedCache open(const platform::FolderPlace& place, const platform::FileCalls& calls);

  struct Entry {
    EntryState state = EntryState::absent;
    std::optional<EntryManifest> manifest;  // these where it is sound, of whatever key
    EntryFiles files;
    std::uint64_t number = 0;  // of its folder, where there is one
  };
  // Reads all of an entry and compares it with its manifest and its name.
  Entry examine(const std::string& name) const;
  // The same, and compares the whole key: code of another key is foreign, whatever its name.
  Entry find(const CacheKey& key) const;

  // Remembers that it is in use, at most once a minute.
  void stamp(const std::string& name) const;

  enum class Kept { yes, there_before, no };
  struct KeepOutcome {
    Kept kept;
    std::error_code error = {};  // of `no`
  };
  KeepOutcome keep(const std::string& name, const EntryFiles& files) const;

  // Takes it out of sight, then removes it. With `number`: only if it is still that folder, so that
  // what another process has put there since stays.
  bool remove(const std::string& name, std::optional<std::uint64_t> number = {}) const;

  // All entries, whatever state they are in; what has no entry's name is passed over.
  std::vector<EntryFacts> list() const;
  // Removes what interrupted processes left more than `age` ago.
  void sweep(std::chrono::seconds age) const;

  const platform::Folder& folder() const noexcept { return folder_; }
  // v1/locks
  platform::Attempt<platform::Folder> lock_folder() const { return folder_.ensure_folder("locks"); }

 private:
  CacheRoot(platform::Folder folder, platform::Owner owner)
      : folder_(std::move(folder)), owner_(owner) {}

  platform::Attempt<platform::Folder> open_entry(const std::string& name) const;
  Entry read_entry(const platform::Folder& folder, const std::string& name) const;
  EntryState read_files(const platform::Folder& folder, Entry& entry) const;
  std::error_code write_aside(const platform::Folder& aside, const std::string& name,
                              const EntryFiles& files) const;
  std::error_code put_in_place(const platform::Folder& aside, const std::string& temporary,
                               const std::string& name) const;

  platform::Folder folder_;  // v1
  platform::Owner owner_;
};

struct OpenedCache {
  std::optional<CacheRoot> root;
  std::string refusal = {};  // why there is none
};

}  // namespace gemmery::jit
