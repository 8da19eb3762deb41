// SPDX-License-Identifier: Apache-2.0
// Walks from "/" down to the folder.
#include "platform/trusted_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <string_view>

#include <fmt/format.h>

namespace gemmery::platform {
namespace {

constexpr int most_links = 40;

std::deque<std::string> split(std::string_view path) {
  std::deque<std::string> parts;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

bool is_own_or_roots(uid_t user) { return user == 0 || user == geteuid(); }

// One walk: where it is now, and the rest of the path.
class Walk {
 public:
  Walk(const FolderPlace& place, const FileCalls& calls)
      : place_(place), calls_(calls), left_(split(place.path)) {
    const std::size_t existing = split(place.existing).size();
    fixed_ = std::min(existing, left_.size());
  }

  TrustedFolder run() {
    start_at_root();
    while (refusal_.empty() && !left_.empty()) step();
    if (!refusal_.empty()) return {.folder = std::nullopt, .refusal = refusal_};
    return {.folder = std::move(here_), .refusal = {}};
  }

 private:
  void start_at_root() {
    const int root = uninterrupted(
        [&] { return calls_.openat(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); });
    if (root < 0) return refuse("/", last_error());
    here_.emplace(Descriptor(root, calls_));
    walked_.clear();
  }

  void step() {
    const std::string name = left_.front();
    left_.pop_front();
    const bool is_last = left_.empty();
    struct stat facts {};
    const int known = uninterrupted([&] {
      return calls_.fstatat(here_->descriptor().number(), name.c_str(), &facts,
                            AT_SYMLINK_NOFOLLOW);
    });
    if (known == 0 && S_ISLNK(facts.st_mode))
      return is_last ? refuse_words(name, "is a symbolic link") : follow(name, facts);
    Attempt<Folder> next = enter(name);
    if (!next) return refuse(path_of(name), next.error());
    walked_ = path_of(name);
    here_ = *std::move(next);
    if (fixed_ > 0) --fixed_;
    check_here(is_last);
  }

  Attempt<Folder> enter(const std::string& name) {
    const bool may_make = place_.may_be_made && fixed_ == 0;
    return may_make ? here_->ensure_folder(name) : here_->open_folder(name);
  }

  void follow(const std::string& name, const struct stat& facts) {
    if (!is_own_or_roots(facts.st_uid)) return refuse_words(name, "is another user's link");
    if (++links_ > most_links) return refuse_words(name, "is one of too many links");
    std::array<char, 4096> target{};
    const ssize_t length =
        readlinkat(here_->descriptor().number(), name.c_str(), target.data(), target.size());
    if (length <= 0 || static_cast<std::size_t>(length) == target.size())
      return refuse_words(name, "is a link that cannot be read");
    const std::string_view path(target.data(), static_cast<std::size_t>(length));
    const std::deque<std::string> parts = split(path);
    // The folders that a link names must exist.
    fixed_ = (fixed_ > 0 ? fixed_ - 1 : 0) + parts.size();
    left_.insert(left_.begin(), parts.begin(), parts.end());
    if (path.starts_with('/')) start_at_root();
  }

  void check_here(bool is_last) {
    struct stat facts {};
    const int known =
        uninterrupted([&] { return calls_.fstat(here_->descriptor().number(), &facts); });
    if (known != 0) return refuse(walked_, last_error());
    const bool is_owned = is_last && place_.owner == Owner::user ? facts.st_uid == geteuid()
                                                                 : is_own_or_roots(facts.st_uid);
    if (!is_owned) return refuse_folder(fmt::format("belongs to user {}", facts.st_uid));
    const bool is_sticky = !is_last && (facts.st_mode & S_ISVTX) != 0;
    const bool is_private_group =
        facts.st_gid == 0 || (facts.st_gid == facts.st_uid && facts.st_uid == geteuid());
    const bool is_open =
        (facts.st_mode & S_IWOTH) != 0 || ((facts.st_mode & S_IWGRP) != 0 && !is_private_group);
    if (is_open && !is_sticky)
      refuse_folder(fmt::format("may be written by others (mode {:04o})", facts.st_mode & 07777));
  }

  std::string path_of(const std::string& name) const { return walked_ + "/" + name; }
  void refuse(const std::string& path, std::error_code error) {
    refusal_ = path + ": " + error.message();
  }
  void refuse_words(const std::string& name, const char* words) {
    refusal_ = path_of(name) + " " + words;
  }
  void refuse_folder(const std::string& words) { refusal_ = walked_ + " " + words; }

  const FolderPlace& place_;
  const FileCalls& calls_;
  std::deque<std::string> left_;
  std::size_t fixed_ = 0;  // how many of the remaining folders must exist
  int links_ = 0;
  std::optional<Folder> here_;
  std::string walked_;
  std::string refusal_;
};

}  // namespace

TrustedFolder open_trusted_folder(const FolderPlace& place, const FileCalls& calls) {
  if (!place.path.starts_with('/'))
    return {.folder = std::nullopt, .refusal = "\"" + place.path + "\" is no absolute path"};
  return Walk(place, calls).run();
}

}  // namespace gemmery::platform
