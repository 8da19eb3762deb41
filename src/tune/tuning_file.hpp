// SPDX-License-Identifier: Apache-2.0
// The file of stored results, shared by processes. A result is appended under a lock and flushed to
// the disk, so that a process that is killed loses none that it has stored; other changes replace
// the file by one rename.
#pragma once

#include <gemmery/tuning_entry.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "platform/file_lock.hpp"
#include "platform/trusted_folder.hpp"
#include "tune/entry_text.hpp"

namespace gemmery::tuning {

struct FilePlace {
  platform::FolderPlace folder;  // the same rules of trust as for the cache
  std::string name;
};

class TuningFile {
 public:
  explicit TuningFile(FilePlace place,
                      const platform::FileCalls& calls = platform::system_file_calls())
      : place_(std::move(place)), calls_(&calls) {}

  std::string path() const { return place_.folder.path + "/" + place_.name; }

  // Changes with the file; cheap to ask.
  struct Stamp {
    std::uint64_t number = 0;  // of its inode; 0: there is no file
    std::int64_t bytes = 0;
    std::int64_t changed_ns = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  Stamp stamp() const;

  struct Reading {
    FileContent content;
    std::string refusal;  // why the file is not used, although it exists
  };
  Reading read() const;

  // Returns when the entry is on the disk. Throws Error (io).
  void append(const TuningEntry& entry) const;

  // Removes the entries that are chosen, and what is faulty; returns how many entries were removed.
  // Throws Error (io).
  std::size_t remove(const std::function<bool(const TuningEntry&)>& is_chosen) const;

  // The lock of those that time kernels, who would disturb each other. Nothing if it was not free
  // in time, or the file system has no locks.
  std::optional<platform::FileLock> claim_device(
      const platform::FileLock::Patience& patience) const;

 private:
  platform::Folder open_to_write() const;
  std::optional<platform::FileLock> lock(const platform::Folder& folder) const;
  std::string text_in(const platform::Folder& folder) const;
  void replace(const platform::Folder& folder, const std::string& text) const;
  void check(std::error_code error) const;

  FilePlace place_;
  const platform::FileCalls* calls_;
};

}  // namespace gemmery::tuning
