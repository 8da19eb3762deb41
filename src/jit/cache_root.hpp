// SPDX-License-Identifier: Apache-2.0
// One disk cache, open for the duration of a call. Entries are folders, written aside and put in
// place by one rename, so that a reader sees a complete entry or none.
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

// The result of looking for an entry.
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
  // Refused if others might write into it, or if it does not exist and may not be created.
  static OpenedCache open(const platform::FolderPlace& place, const platform::FileCalls& calls);

  struct Entry {
    EntryState state = EntryState::absent;
    std::optional<EntryManifest> manifest;  // if all are sound, whatever key they are of
    EntryFiles files;
    std::uint64_t number = 0;  // inode of its folder, if it exists
  };
  // Reads a whole entry and compares it with its manifest and its name.
  Entry examine(const std::string& name) const;
  // The same, and compares the whole key: code of another key counts as foreign, whatever its name.
  Entry find(const CacheKey& key) const;

  // Marks it as used, at most once a minute.
  void stamp(const std::string& name) const;

  enum class Kept { yes, there_before, no };
  struct KeepOutcome {
    Kept kept;
    std::error_code error = {};  // of `no`
  };
  KeepOutcome keep(const std::string& name, const EntryFiles& files) const;

  // Renames it away, then removes it. With `number`: only if it is still that folder, so that a
  // newer entry of another process stays.
  bool remove(const std::string& name, std::optional<std::uint64_t> number = {}) const;

  // All entries, in whatever state; other names are skipped.
  std::vector<EntryFacts> list() const;
  // Removes what interrupted processes left behind more than `age` ago.
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
  std::string refusal = {};  // why it could not be opened
};

}  // namespace gemmery::jit
