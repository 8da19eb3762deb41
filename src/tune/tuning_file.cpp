// SPDX-License-Identifier: Apache-2.0
// Appends, reads and replaces by descriptor.
#include "tune/tuning_file.hpp"

#include <fcntl.h>

#include <gemmery/error.hpp>

#include "platform/file_system.hpp"

namespace gemmery::tuning {
namespace {

using platform::Attempt;
using platform::FileLock;
using platform::Folder;
using platform::Owner;

constexpr std::size_t most_bytes = std::size_t{64} << 20;
// A writer holds the lock for milliseconds.
constexpr std::chrono::seconds writer_patience{10};

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// A writer that was killed, or a full disk, may have left a table without its end.
std::string_view separator_after(std::string_view text) {
  if (text.empty() || text.ends_with("\n\n")) return "";
  return text.ends_with('\n') ? "\n" : "\n\n";
}

}  // namespace

TuningFile::Stamp TuningFile::stamp() const {
  struct stat facts {};
  if (calls_->fstatat(AT_FDCWD, path().c_str(), &facts, 0) != 0) return {};
  return {.number = facts.st_ino,
          .bytes = facts.st_size,
          .changed_ns = facts.st_mtim.tv_sec * 1'000'000'000 + facts.st_mtim.tv_nsec};
}

TuningFile::Reading TuningFile::read() const {
  if (stamp() == Stamp{}) return {};
  platform::FolderPlace place = place_.folder;
  place.may_be_made = false;
  place.owner = Owner::user_or_root;
  const platform::TrustedFolder opened = platform::open_trusted_folder(place, *calls_);
  if (!opened.folder) return {.content = {}, .refusal = opened.refusal};
  const Attempt<std::string> text =
      opened.folder->read_file(place_.name, most_bytes, Owner::user_or_root);
  if (text) return {.content = parse_entries(*text), .refusal = {}};
  if (text.error() == std::errc::no_such_file_or_directory) return {};
  return {.content = {}, .refusal = path() + ": " + text.error().message()};
}

void TuningFile::check(std::error_code error) const {
  if (!error) return;
  throw Error({.kind = ErrorKind::io,
               .operand = path(),
               .expected = "a file of this user that can be written",
               .got = error.message(),
               .hint = "GEMMERY_TUNING_FILE can name another one"});
}

Folder TuningFile::open_to_write() const {
  platform::TrustedFolder opened = platform::open_trusted_folder(place_.folder, *calls_);
  if (opened.folder) return *std::move(opened.folder);
  throw Error({.kind = ErrorKind::io,
               .operand = path(),
               .expected = "a folder that only this user can write into",
               .got = opened.refusal,
               .hint = "GEMMERY_TUNING_FILE can name another file"});
}

// Nothing where the file system has no locks.
std::optional<FileLock> TuningFile::lock(const Folder& folder) const {
  auto lock = FileLock::acquire(folder, place_.name + ".lock", {.most = writer_patience});
  if (!lock && platform::is_on_local_file_system(folder))
    check(std::make_error_code(std::errc::device_or_resource_busy));
  return lock;
}

std::string TuningFile::text_in(const Folder& folder) const {
  Attempt<std::string> text = folder.read_file(place_.name, most_bytes, Owner::user);
  if (text) return *std::move(text);
  if (text.error() != std::errc::no_such_file_or_directory) check(text.error());
  return {};
}

void TuningFile::append(const TuningEntry& entry) const {
  const Folder folder = open_to_write();
  const auto held = lock(folder);
  const std::string before = text_in(folder);
  std::string text(before.empty() ? file_head() : separator_after(before));
  text += print_entry(entry);
  check(folder.append_to_file(place_.name, bytes_of(text)));
  if (before.empty()) check(folder.sync());  // the file's name is new
}

void TuningFile::replace(const Folder& folder, const std::string& text) const {
  const std::string prefix = place_.name + ".part-";
  if (const Attempt<std::vector<std::string>> names = folder.list()) {
    for (const std::string& name : *names)
      if (name.starts_with(prefix)) folder.remove_file(name);  // of a process that was killed
  }
  const std::string aside = prefix + platform::random_name();
  std::error_code error = folder.write_file(aside, bytes_of(text));
  if (!error) error = folder.rename(aside, folder, place_.name);
  if (error) folder.remove_file(aside);
  check(error);
  check(folder.sync());
}

std::size_t TuningFile::remove(const std::function<bool(const TuningEntry&)>& is_chosen) const {
  if (stamp() == Stamp{}) return 0;
  const Folder folder = open_to_write();
  const auto held = lock(folder);
  if (!held) check(std::make_error_code(std::errc::no_lock_available));
  const FileContent content = parse_entries(text_in(folder));
  std::string text(file_head());
  std::size_t removed = 0;
  for (const ReadEntry& read : content.entries) {
    if (is_chosen(read.entry)) {
      ++removed;
    } else {
      text += read.text;
    }
  }
  if (removed > 0 || content.faulty > 0) replace(folder, text);
  return removed;
}

std::optional<FileLock> TuningFile::claim_device(const FileLock::Patience& patience) const {
  return FileLock::acquire(open_to_write(), place_.name + ".device", patience);
}

}  // namespace gemmery::tuning
