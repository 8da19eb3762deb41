// SPDX-License-Identifier: Apache-2.0
// A lock between processes that only avoids repeated work; correctness does not depend on it. A
// process that does not get it in time continues without it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "platform/folder.hpp"

namespace gemmery::platform {

// flock(2) on a file: the system releases it when its holder ends, in whatever way.
class FileLock {
 public:
  // Called when a wait has become long, with its length and the holder ("process 123").
  using OnWait = std::function<void(std::chrono::seconds waited, const std::string& holder)>;

  struct Patience {
    std::chrono::milliseconds most{0};  // 0: only if it is free
    std::chrono::milliseconds until_told = std::chrono::seconds(5);
    OnWait tell = {};  // called once
    std::function<bool()> is_given_up = {};
  };

  // Creates the file if it does not exist. Nothing if the lock was not acquired in time, or the
  // file system has no locks.
  static std::optional<FileLock> acquire(const Folder& folder, const std::string& name,
                                         const Patience& patience);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  // The locked file, open for reading and writing.
  const Descriptor& file() const noexcept { return *file_; }
  std::chrono::milliseconds waited() const noexcept { return waited_; }

 private:
  explicit FileLock(Descriptor file) : file_(std::move(file)) {}

  std::optional<Descriptor> file_;
  std::chrono::milliseconds waited_{0};
};

}  // namespace gemmery::platform
