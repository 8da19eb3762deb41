// SPDX-License-Identifier: Apache-2.0
// Finds, stores and removes entries.
#include "jit/cache_root.hpp"

#include <algorithm>

#include "platform/folder.hpp"

namespace gemmery::jit {
namespace {

using platform::Attempt;
using platform::Folder;

constexpr std::size_t most_manifest_bytes = 4096;
// Larger files are not read.
constexpr std::uint64_t most_file_bytes = std::uint64_t{1} << 30;
constexpr const char* aside_name = "tmp";
constexpr std::size_t name_digits = 32;

// "abcdef01…" lies in ab/cd/ef01….
struct Place {
  std::string outer;
  std::string inner;
  std::string last;
};

Place place_of(const std::string& name) {
  return {.outer = name.substr(0, 2), .inner = name.substr(2, 2), .last = name.substr(4)};
}

bool is_hexadecimal(std::string_view text, std::size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string version_folder() { return "v" + std::to_string(cache_format_version); }

EntryState state_of_error(std::error_code error) {
  if (error == std::errc::no_such_file_or_directory) return EntryState::absent;
  const bool is_somebody_elses = error == std::errc::permission_denied ||
                                 error == std::errc::not_a_directory ||
                                 error == std::errc::too_many_symbolic_link_levels;
  return is_somebody_elses ? EntryState::foreign : EntryState::unreadable;
}

// For a file that an entry must have.
EntryState state_of_file_error(std::error_code error) {
  const bool is_wrong_size =
      error == std::errc::file_too_large || error == std::errc::no_such_file_or_directory;
  return is_wrong_size ? EntryState::damaged : state_of_error(error);
}

bool is_there_before(std::error_code error) {
  return error == std::errc::file_exists || error == std::errc::directory_not_empty;
}

// The names in a folder; empty if it cannot be read.
std::vector<std::string> names_in(const Folder& folder) {
  const Attempt<std::vector<std::string>> names = folder.list();
  return names ? *names : std::vector<std::string>();
}

// The size of its files, and the time of its manifest.
EntryFacts facts_of_entry(const Folder& folder, std::string name) {
  EntryFacts facts{.name = std::move(name)};
  for (const std::string& file : names_in(folder)) {
    const auto found = folder.facts_of(file);
    if (!found) continue;
    facts.bytes += found->bytes;
    if (file == manifest_name) facts.used_at = found->changed_at;
  }
  return facts;
}

}  // namespace

const char* describe(EntryState state) noexcept {
  switch (state) {
    case EntryState::sound:
      return "sound";
    case EntryState::absent:
      return "not there";
    case EntryState::damaged:
      return "damaged: its bytes are not those that were written";
    case EntryState::foreign:
      return "foreign: another user's, writable by others, or of another key";
    case EntryState::other_version:
      return "of another version";
    case EntryState::unreadable:
      return "unreadable: the file system failed";
  }
  return "";
}

OpenedCache CacheRoot::open(const platform::FolderPlace& place, const platform::FileCalls& calls) {
  platform::TrustedFolder root = platform::open_trusted_folder(place, calls);
  if (!root.folder) return {.root = std::nullopt, .refusal = root.refusal};
  Attempt<Folder> version = place.may_be_made ? root.folder->ensure_folder(version_folder())
                                              : root.folder->open_folder(version_folder());
  const std::error_code error = version ? version->check(place.owner) : version.error();
  if (error) {
    return {.root = std::nullopt,
            .refusal = place.path + "/" + version_folder() + ": " + error.message()};
  }
  return {.root = CacheRoot(*std::move(version), place.owner), .refusal = {}};
}

// --- finding ------------------------------------------------------------------------------------

Attempt<Folder> CacheRoot::open_entry(const std::string& name) const {
  const Place place = place_of(name);
  const Attempt<Folder> outer = folder_.open_folder(place.outer);
  if (!outer) return outer.error();
  const Attempt<Folder> inner = outer->open_folder(place.inner);
  if (!inner) return inner.error();
  return inner->open_folder(place.last);
}

EntryState CacheRoot::read_files(const Folder& folder, Entry& entry) const {
  if (const std::error_code error = folder.check(owner_)) return state_of_error(error);
  Attempt<std::string> manifest = folder.read_file(manifest_name, most_manifest_bytes, owner_);
  if (!manifest) return state_of_file_error(manifest.error());
  entry.manifest = parse_manifest(*manifest);
  if (!entry.manifest)
    return is_of_other_version(*manifest) ? EntryState::other_version : EntryState::damaged;
  entry.files.manifest = *std::move(manifest);
  entry.files.form = entry.manifest->form;
  for (const EntryFile file : entry_files) {
    const EntryManifest::File& written = entry.manifest->of(file);
    if (written.bytes > most_file_bytes) return EntryState::damaged;
    Attempt<std::string> content =
        folder.read_file(file_name(file, entry.files.form), written.bytes, owner_);
    if (!content) return state_of_file_error(content.error());
    if (!is_as_written(written, *content)) return EntryState::damaged;
    entry.files.of(file) = *std::move(content);
  }
  return EntryState::sound;
}

CacheRoot::Entry CacheRoot::read_entry(const Folder& folder, const std::string& name) const {
  Entry entry;
  if (const auto facts = folder.facts()) entry.number = facts->number;
  entry.state = read_files(folder, entry);
  if (entry.state != EntryState::sound) {
    entry.manifest.reset();
    return entry;
  }
  const CacheKey stored{.conditions = entry.files.of(EntryFile::key),
                        .source = entry.files.of(EntryFile::source)};
  if (entry_name(stored) != name) entry.state = EntryState::damaged;  // under another's name
  return entry;
}

CacheRoot::Entry CacheRoot::examine(const std::string& name) const {
  const Attempt<Folder> folder = open_entry(name);
  if (!folder) {
    Entry entry;
    entry.state = state_of_error(folder.error());
    return entry;
  }
  return read_entry(*folder, name);
}

CacheRoot::Entry CacheRoot::find(const CacheKey& key) const {
  Entry entry = examine(entry_name(key));
  if (entry.state != EntryState::sound) return entry;
  const bool is_same = entry.files.of(EntryFile::key) == key.conditions &&
                       entry.files.of(EntryFile::source) == key.source;
  if (!is_same) entry.state = EntryState::foreign;
  return entry;
}

void CacheRoot::stamp(const std::string& name) const {
  constexpr std::chrono::minutes precision{1};
  const Attempt<Folder> folder = open_entry(name);
  if (!folder) return;
  const auto facts = folder->facts_of(manifest_name);
  if (!facts) return;
  const auto age = std::chrono::system_clock::now() - facts->changed_at;
  if (age > precision || age < -precision) folder->touch(manifest_name);
}

// --- keeping ------------------------------------------------------------------------------------

std::error_code CacheRoot::write_aside(const Folder& aside, const std::string& name,
                                       const EntryFiles& files) const {
  if (const std::error_code error = aside.make_folder(name)) return error;
  const Attempt<Folder> folder = aside.open_folder(name);
  if (!folder) return folder.error();
  for (const EntryFile file : entry_files) {
    const std::string& content = files.of(file);
    const std::error_code error =
        folder->write_file(file_name(file, files.form), std::as_bytes(std::span(content)));
    if (error) return error;
  }
  const std::error_code error =
      folder->write_file(manifest_name, std::as_bytes(std::span(files.manifest)));
  return error ? error : folder->sync();
}

// Tries again if a folder on the path was removed meanwhile, as empty ones are.
std::error_code CacheRoot::put_in_place(const Folder& aside, const std::string& temporary,
                                        const std::string& name) const {
  constexpr int most_tries = 4;
  const Place place = place_of(name);
  std::error_code error;
  for (int turn = 0; turn < most_tries; ++turn) {
    const Attempt<Folder> outer = folder_.ensure_folder(place.outer);
    if (!outer) return outer.error();
    const Attempt<Folder> inner = outer->ensure_folder(place.inner);
    error = inner ? aside.rename(temporary, *inner, place.last) : inner.error();
    if (error != std::errc::no_such_file_or_directory) return error;
  }
  return error;
}

CacheRoot::KeepOutcome CacheRoot::keep(const std::string& name, const EntryFiles& files) const {
  const Attempt<Folder> aside = folder_.ensure_folder(aside_name);
  if (!aside) return {Kept::no, aside.error()};
  const std::string temporary = platform::random_name();
  std::error_code error = write_aside(*aside, temporary, files);
  if (!error) error = put_in_place(*aside, temporary, name);
  if (!error) return {Kept::yes};
  aside->remove_tree(temporary);
  return {is_there_before(error) ? Kept::there_before : Kept::no, error};
}

// --- removing -----------------------------------------------------------------------------------

bool CacheRoot::remove(const std::string& name, std::optional<std::uint64_t> number) const {
  const Place place = place_of(name);
  const Attempt<Folder> aside = folder_.ensure_folder(aside_name);
  const Attempt<Folder> outer = folder_.open_folder(place.outer);
  if (!aside || !outer) return false;
  const Attempt<Folder> inner = outer->open_folder(place.inner);
  if (!inner) return false;
  if (number) {
    const auto facts = inner->facts_of(place.last);
    if (!facts || facts->number != *number) return false;
  }
  const std::string temporary = platform::random_name();
  if (inner->rename(place.last, *aside, temporary)) return false;
  aside->remove_tree(temporary);
  // Only if they are empty.
  outer->remove_empty_folder(place.inner);
  folder_.remove_empty_folder(place.outer);
  return true;
}

std::vector<EntryFacts> CacheRoot::list() const {
  std::vector<EntryFacts> entries;
  for (const std::string& outer_name : names_in(folder_)) {
    if (!is_hexadecimal(outer_name, 2)) continue;
    const Attempt<Folder> outer = folder_.open_folder(outer_name);
    if (!outer) continue;
    for (const std::string& inner_name : names_in(*outer)) {
      if (!is_hexadecimal(inner_name, 2)) continue;
      const Attempt<Folder> inner = outer->open_folder(inner_name);
      if (!inner) continue;
      for (const std::string& last : names_in(*inner)) {
        if (!is_hexadecimal(last, name_digits - 4)) continue;
        const Attempt<Folder> entry = inner->open_folder(last);
        const std::string name = outer_name + inner_name + last;
        entries.push_back(entry ? facts_of_entry(*entry, name) : EntryFacts{.name = name});
      }
    }
  }
  return entries;
}

void CacheRoot::sweep(std::chrono::seconds age) const {
  const Attempt<Folder> aside = folder_.open_folder(aside_name);
  if (!aside) return;
  const auto now = std::chrono::system_clock::now();
  for (const std::string& name : names_in(*aside)) {
    const auto facts = aside->facts_of(name);
    // A time in the future comes from a wrong clock and does not make the entry newer.
    if (facts && std::chrono::abs(now - facts->changed_at) > age) aside->remove_tree(name);
  }
}

}  // namespace gemmery::jit
