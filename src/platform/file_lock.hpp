// SPDX-License-Identifier: Apache-2.0
// A lock between processes that saves work and never guards correctness: whoever does not get it in
// time goes on without.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "platform/folder.hpp"

namespace gemmery::platform {

// flock(2) on a file: the system releases it when its holder ends, however it ends.
class FileLock {
 public:
  // Told about a wait that has become long: for how long, and what the holder is ("process 123").
  using OnWait = std::function<void(std::chrono::seconds waited, const std::string& holder)>;

  struct Patience {
    std::chrono::milliseconds most{0};  // 0: only if it is free
    std::chrono::milliseconds until_told = std::chrono::seconds(5);
    OnWait tell = {};  // once
    std::function<bool()> is_given_up = {};
  };

  // The file is made where it is not there. Nothing where the lock was not had in time, or where
  // the file system has none.
  static std::optional<FileLock> acquire(const Folder& folder, const std::string& name,
                                         const Patience& patience);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  // The file that is locked, open for reading and writing.
  const Descriptor& file() const noexcept { return *file_; }
  std::chrono::milliseconds waited() const noexcept { return waited_; }

 private:
  explicit FileLock(Descriptor file) : file_(std::move(file)) {}

  std::optional<Descriptor> file_;
  std::chrono::milliseconds waited_{0};
};

}  // namespace gemmery::platform
