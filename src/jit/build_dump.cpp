// SPDX-License-Identifier: Apache-2.0
// A dump is written to a temporary folder and renamed, so that every dump is complete.
#include "jit/build_dump.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "platform/environment.hpp"
#include "platform/folder.hpp"
#include "platform/log.hpp"

namespace gemmery::jit {
namespace {

using platform::Folder;

constexpr const char* folder_variable = "GEMMERY_DUMP_DIR";

[[noreturn]] void refuse_folder(const std::string& refusal) {
  throw Error({.kind = ErrorKind::io,
               .operand = folder_variable,
               .expected = "a folder that only this user can write into",
               .got = refusal,
               .hint = "unset the environment variable or correct it"});
}

// The characters that a file's name may have, and not too many.
std::string as_file_name(std::string_view text) {
  constexpr std::size_t most_characters = 100;
  std::string name;
  for (const char character : text.substr(0, most_characters)) {
    const bool is_plain = (character >= 'a' && character <= 'z') ||
                          (character >= 'A' && character <= 'Z') ||
                          (character >= '0' && character <= '9') || character == '_';
    name += is_plain ? character : '_';
  }
  return name;
}

std::error_code write_file(const Folder& folder, const char* name, const std::string& content) {
  return folder.write_file(name, std::as_bytes(std::span(content)));
}

// A failed build has neither code nor manifest.
std::error_code write_all_files(const Folder& folder, const EntryFiles& files) {
  for (const EntryFile file : entry_files) {
    const bool is_left_out = file == EntryFile::code && files.manifest.empty();
    if (is_left_out) continue;
    if (const auto error = write_file(folder, file_name(file, files.form), files.of(file)))
      return error;
  }
  if (files.manifest.empty()) return {};
  return write_file(folder, manifest_name, files.manifest);
}

// Replaces an earlier dump, unless another process is doing the same.
std::error_code put_in_place(const Folder& folder, const std::string& aside,
                             const std::string& name) {
  if (!folder.rename(aside, folder, name)) return {};
  if (const std::error_code error = folder.remove_tree(name)) return error;
  return folder.rename(aside, folder, name);
}

// Why it could not be written; empty on success.
std::string write_into(const Folder& folder, const std::string& name, const EntryFiles& files) {
  const std::string aside = "." + platform::random_name();
  std::error_code error = folder.make_folder(aside);
  if (error) return error.message();
  const platform::Attempt<Folder> opened = folder.open_folder(aside);
  error = opened ? write_all_files(*opened, files) : opened.error();
  if (!error) error = put_in_place(folder, aside, name);
  if (!error) return {};
  folder.remove_tree(aside);
  return error.message();
}

}  // namespace

BuildDump::BuildDump(std::string path, std::int64_t most_bytes, const platform::FileCalls& calls)
    : place_{.path = std::move(path)}, most_bytes_(most_bytes), calls_(calls) {
  const platform::TrustedFolder opened = platform::open_trusted_folder(place_, calls_);
  if (!opened.folder) refuse_folder(opened.refusal);
}

void BuildDump::write(const CacheKey& key, const CompiledCode& code) noexcept {
  try {
    write_files(key, "", encode_entry(key, code));
  } catch (const std::exception& error) {
    warn_once(error.what());
  }
}

void BuildDump::write_failure(const CacheKey& key, const Error& error) noexcept {
  try {
    EntryFiles files;
    files.of(EntryFile::key) = key.conditions;
    files.of(EntryFile::source) = key.source;
    files.of(EntryFile::log) = error.what();
    write_files(key, "-failed", files);
  } catch (const std::exception& failure) {
    warn_once(failure.what());
  }
}

void BuildDump::write_files(const CacheKey& key, const std::string& suffix,
                            const EntryFiles& files) {
  const auto bytes = static_cast<std::int64_t>(files.total_bytes());
  if (bytes_.fetch_add(bytes) > most_bytes_ - bytes)
    return warn_once("this process has written as much as it may");
  // Opened anew each time, as the cache is: no descriptor stays open that a program might close.
  const platform::TrustedFolder opened = platform::open_trusted_folder(place_, calls_);
  const std::string failure =
      opened.folder ? write_into(*opened.folder, dump_name(key) + suffix, files) : opened.refusal;
  if (!failure.empty()) warn_once(failure);
}

void BuildDump::warn_once(const std::string& words) noexcept {
  if (has_warned_.exchange(true)) return;
  try {
    platform::log(LogLevel::warning,
                  std::string(folder_variable) + ": not all builds are dumped: " + words);
  } catch (const std::exception&) {  // no memory for the message: nothing is logged
  }
}

std::shared_ptr<BuildDump> environment_dump() {
  const std::optional<std::string> path = platform::read_environment_path(folder_variable);
  return path ? std::make_shared<BuildDump>(*path) : nullptr;
}

std::string dump_name(const CacheKey& key) {
  std::string_view entry = condition(key.conditions, "entry");
  entry.remove_prefix(std::min(entry.find(' ') + 1, entry.size()));  // the length
  constexpr std::size_t digits = 16;
  return as_file_name(entry) + "-" + as_file_name(condition(key.conditions, "target")) + "-" +
         entry_name(key).substr(0, digits);
}

}  // namespace gemmery::jit
