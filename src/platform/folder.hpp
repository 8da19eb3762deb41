// SPDX-License-Identifier: Apache-2.0
// Folders and files by descriptor: names are looked up in an open folder, links are never followed,
// and the opened file is the one that is examined, so that nobody can exchange a path in between.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "platform/attempt.hpp"
#include "platform/file_calls.hpp"

namespace gemmery::platform {

// An open file or folder; closed by the destructor.
class Descriptor {
 public:
  Descriptor(int number, const FileCalls& calls) : number_(number), calls_(&calls) {}
  Descriptor(Descriptor&& other) noexcept
      : number_(std::exchange(other.number_, -1)), calls_(other.calls_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    std::swap(calls_, other.calls_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) calls_->close(number_);
  }

  int number() const noexcept { return number_; }
  const FileCalls& calls() const noexcept { return *calls_; }

 private:
  int number_;
  const FileCalls* calls_;
};

// The owners whose files are trusted: the user, or also root.
enum class Owner : bool { user, user_or_root };

// Facts of a file or folder, without opening it.
struct FileFacts {
  bool is_folder = false;
  std::uint64_t number = 0;  // the inode number: differs between files of the same name
  std::int64_t bytes = 0;
  std::chrono::system_clock::time_point changed_at;
};

class Folder {
 public:
  explicit Folder(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  Attempt<Folder> open_folder(const std::string& name) const;
  // Opens the folder; creates it with mode 0700 if it does not exist.
  Attempt<Folder> ensure_folder(const std::string& name) const;
  std::error_code make_folder(const std::string& name) const;

  // All bytes of a regular file of at most `most` bytes that has one name, belongs to `owner` and
  // is writable by nobody else. permission_denied for any other file, file_too_large for a larger
  // one. Never waits, for a pipe for example.
  Attempt<std::string> read_file(const std::string& name, std::size_t most, Owner owner) const;
  // Writes a new file, mode 0600, and flushes it to the disk.
  std::error_code write_file(const std::string& name, std::span<const std::byte> bytes) const;
  // Appends to a file, by the same rules as for reading, and flushes it; creates it with mode 0600
  // if it does not exist.
  std::error_code append_to_file(const std::string& name, std::span<const std::byte> bytes) const;
  // Opens a file for reading and writing; creates it if it does not exist. Same rules as for
  // reading.
  Attempt<Descriptor> open_shared_file(const std::string& name) const;

  // Renames an entry into another folder of the same file system.
  std::error_code rename(const std::string& name, const Folder& to,
                         const std::string& new_name) const;
  std::error_code remove_file(const std::string& name) const;
  std::error_code remove_empty_folder(const std::string& name) const;
  // Removes a folder with its files, and folders within it to a depth of 8.
  std::error_code remove_tree(const std::string& name) const;

  // True if it belongs to `owner` and nobody else can write into it; otherwise permission_denied.
  std::error_code check(Owner owner) const;

  // The names in it, in no order, without "." and "..".
  Attempt<std::vector<std::string>> list() const;
  Attempt<FileFacts> facts_of(const std::string& name) const;
  Attempt<FileFacts> facts() const;  // of the folder itself
  // Sets the time of a folder or file in it to now.
  std::error_code touch(const std::string& name) const;
  // Flushes the folder's names to the disk.
  std::error_code sync() const;

  const Descriptor& descriptor() const noexcept { return descriptor_; }

 private:
  Attempt<Descriptor> open(const std::string& name, int flags) const;
  std::error_code remove_tree_to_depth(const std::string& name, int depth) const;

  Descriptor descriptor_;
};

// errno as a value.
std::error_code last_error() noexcept;

// Writes at the file's position; continues after short writes and signals.
std::error_code write_all(const Descriptor& file, std::span<const std::byte> bytes);
Attempt<std::string> read_all(const Descriptor& file, std::size_t most);

// 16 hexadecimal digits from the system's random numbers: different in each process and each forked
// child.
std::string random_name();

}  // namespace gemmery::platform
