// SPDX-License-Identifier: Apache-2.0
// Reading, writing and removing by descriptor.
#include "platform/folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace gemmery::platform {
namespace {

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
// A plain open of a pipe would wait for its other end.
constexpr int file_flags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

template <class Call>
std::error_code error_of(Call&& call) {
  return uninterrupted(call) < 0 ? last_error() : std::error_code{};
}

std::error_code not_permitted() { return std::make_error_code(std::errc::permission_denied); }

bool is_written_only_by(const struct stat& facts, Owner owner) {
  const bool is_owned =
      facts.st_uid == geteuid() || (owner == Owner::user_or_root && facts.st_uid == 0);
  return is_owned && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::error_code status_of(const Descriptor& file, struct stat& facts) {
  return error_of([&] { return file.calls().fstat(file.number(), &facts); });
}

std::error_code check_file(const Descriptor& file, Owner owner) {
  struct stat facts {};
  if (const std::error_code error = status_of(file, facts)) return error;
  const bool is_plain = S_ISREG(facts.st_mode) && facts.st_nlink == 1;
  return is_plain && is_written_only_by(facts, owner) ? std::error_code{} : not_permitted();
}

struct CloseListing {
  void operator()(DIR* listing) const { closedir(listing); }
};

std::chrono::system_clock::time_point to_time(const struct timespec& time) {
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec)));
}

FileFacts to_facts(const struct stat& facts) {
  return {.is_folder = S_ISDIR(facts.st_mode),
          .number = facts.st_ino,
          .bytes = facts.st_size,
          .changed_at = to_time(facts.st_mtim)};
}

}  // namespace

std::error_code last_error() noexcept { return {errno, std::generic_category()}; }

// --- bytes --------------------------------------------------------------------------------------

std::error_code write_all(const Descriptor& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = uninterrupted(
        [&] { return file.calls().write(file.number(), bytes.data(), bytes.size()); });
    if (count < 0) return last_error();
    if (count == 0) return std::make_error_code(std::errc::io_error);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

// Reads to the end, whatever size the file system reports.
Attempt<std::string> read_all(const Descriptor& file, std::size_t most) {
  std::string text;
  std::array<char, 65536> part;
  for (;;) {
    const ssize_t count =
        uninterrupted([&] { return file.calls().read(file.number(), part.data(), part.size()); });
    if (count < 0) return last_error();
    if (count == 0) return text;
    if (text.size() + static_cast<std::size_t>(count) > most)
      return std::make_error_code(std::errc::file_too_large);
    text.append(part.data(), static_cast<std::size_t>(count));
  }
}

// --- opening ------------------------------------------------------------------------------------

Attempt<Descriptor> Folder::open(const std::string& name, int flags) const {
  const FileCalls& calls = descriptor_.calls();
  const int number = uninterrupted(
      [&] { return calls.openat(descriptor_.number(), name.c_str(), flags, S_IRUSR | S_IWUSR); });
  if (number < 0) return last_error();
  return Descriptor(number, calls);
}

Attempt<Folder> Folder::open_folder(const std::string& name) const {
  Attempt<Descriptor> opened = open(name, folder_flags);
  if (!opened) return opened.error();
  return Folder(*std::move(opened));
}

std::error_code Folder::make_folder(const std::string& name) const {
  return error_of(
      [&] { return descriptor_.calls().mkdirat(descriptor_.number(), name.c_str(), S_IRWXU); });
}

Attempt<Folder> Folder::ensure_folder(const std::string& name) const {
  Attempt<Folder> opened = open_folder(name);
  if (opened || opened.error() != std::errc::no_such_file_or_directory) return opened;
  const std::error_code error = make_folder(name);
  if (error && error != std::errc::file_exists)
    return error;  // another process may have created it first
  return open_folder(name);
}

Attempt<Descriptor> Folder::open_shared_file(const std::string& name) const {
  Attempt<Descriptor> opened = open(name, O_RDWR | O_CREAT | file_flags);
  if (!opened) return opened;
  if (const std::error_code error = check_file(*opened, Owner::user)) return error;
  return opened;
}

// --- whole files --------------------------------------------------------------------------------

Attempt<std::string> Folder::read_file(const std::string& name, std::size_t most,
                                       Owner owner) const {
  const Attempt<Descriptor> opened = open(name, O_RDONLY | file_flags);
  if (!opened) {
    const bool is_link = opened.error() == std::errc::too_many_symbolic_link_levels;
    return is_link ? not_permitted() : opened.error();
  }
  if (const std::error_code error = check_file(*opened, owner)) return error;
  return read_all(*opened, most);
}

std::error_code Folder::write_file(const std::string& name,
                                   std::span<const std::byte> bytes) const {
  const Attempt<Descriptor> opened = open(name, O_WRONLY | O_CREAT | O_EXCL | file_flags);
  if (!opened) return opened.error();
  if (const std::error_code error = write_all(*opened, bytes)) return error;
  return error_of([&] { return opened->calls().fsync(opened->number()); });
}

std::error_code Folder::append_to_file(const std::string& name,
                                       std::span<const std::byte> bytes) const {
  const Attempt<Descriptor> opened = open(name, O_WRONLY | O_CREAT | O_APPEND | file_flags);
  if (!opened) return opened.error();
  if (const std::error_code error = check_file(*opened, Owner::user)) return error;
  if (const std::error_code error = write_all(*opened, bytes)) return error;
  return error_of([&] { return opened->calls().fsync(opened->number()); });
}

// --- names --------------------------------------------------------------------------------------

std::error_code Folder::rename(const std::string& name, const Folder& to,
                               const std::string& new_name) const {
  return error_of([&] {
    return descriptor_.calls().renameat(descriptor_.number(), name.c_str(), to.descriptor_.number(),
                                        new_name.c_str());
  });
}

std::error_code Folder::remove_file(const std::string& name) const {
  return error_of(
      [&] { return descriptor_.calls().unlinkat(descriptor_.number(), name.c_str(), 0); });
}

std::error_code Folder::remove_empty_folder(const std::string& name) const {
  return error_of([&] {
    return descriptor_.calls().unlinkat(descriptor_.number(), name.c_str(), AT_REMOVEDIR);
  });
}

std::error_code Folder::remove_tree(const std::string& name) const {
  constexpr int deepest = 8;
  return remove_tree_to_depth(name, deepest);
}

std::error_code Folder::remove_tree_to_depth(const std::string& name, int depth) const {
  if (!remove_file(name)) return {};
  const Attempt<Folder> folder = open_folder(name);
  if (!folder) return folder.error();
  if (depth == 0) return std::make_error_code(std::errc::directory_not_empty);
  if (const Attempt<std::vector<std::string>> names = folder->list()) {
    for (const std::string& inside : *names) folder->remove_tree_to_depth(inside, depth - 1);
  }
  return remove_empty_folder(name);
}

Attempt<std::vector<std::string>> Folder::list() const {
  // Listing closes its descriptor and moves its position, so it gets a duplicate.
  const int number = uninterrupted(
      [&] { return descriptor_.calls().openat(descriptor_.number(), ".", folder_flags, 0); });
  if (number < 0) return last_error();
  const std::unique_ptr<DIR, CloseListing> listing(fdopendir(number));
  if (!listing) {
    const std::error_code error = last_error();
    descriptor_.calls().close(number);
    return error;
  }
  std::vector<std::string> names;
  while (const dirent* const entry = readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

Attempt<FileFacts> Folder::facts_of(const std::string& name) const {
  struct stat facts {};
  const std::error_code error = error_of([&] {
    return descriptor_.calls().fstatat(descriptor_.number(), name.c_str(), &facts,
                                       AT_SYMLINK_NOFOLLOW);
  });
  if (error) return error;
  return to_facts(facts);
}

Attempt<FileFacts> Folder::facts() const {
  struct stat facts {};
  if (const std::error_code error = status_of(descriptor_, facts)) return error;
  return to_facts(facts);
}

std::error_code Folder::check(Owner owner) const {
  struct stat facts {};
  if (const std::error_code error = status_of(descriptor_, facts)) return error;
  return is_written_only_by(facts, owner) ? std::error_code{} : not_permitted();
}

std::error_code Folder::touch(const std::string& name) const {
  const Attempt<Descriptor> opened = open(name, O_RDONLY | file_flags);
  if (!opened) return opened.error();
  return error_of([&] { return opened->calls().futimens(opened->number(), nullptr); });
}

std::error_code Folder::sync() const {
  return error_of([&] { return descriptor_.calls().fsync(descriptor_.number()); });
}

std::string random_name() {
  std::array<unsigned char, 8> bytes{};
  // Waits until the system's random generator is initialised; then it cannot fail for 8 bytes.
  uninterrupted([&] { return getrandom(bytes.data(), bytes.size(), 0); });
  std::string name;
  for (const unsigned char byte : bytes) {
    constexpr const char* digits = "0123456789abcdef";
    name += digits[byte >> 4];
    name += digits[byte & 15];
  }
  return name;
}

}  // namespace gemmery::platform
