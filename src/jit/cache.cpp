// SPDX-License-Identifier: Apache-2.0
// The public view of the process's cache.
#include <gemmery/cache.hpp>
#include <gemmery/error.hpp>

#include <algorithm>
#include <string>
#include <string_view>

#include "jit/disk_cache.hpp"
#include "platform/file_system.hpp"

namespace gemmery {
namespace {

using jit::CacheRoot;
using jit::DiskCache;
using jit::EntryFile;
using jit::EntryState;

CacheRoot own_cache() {
  jit::OpenedCache own = jit::process_cache()->open_own();
  if (own.root) return *std::move(own.root);
  throw Error({.kind = ErrorKind::unavailable,
               .operand = "the cache of compiled code",
               .expected = "a folder that only this user can write into",
               .got = own.refusal,
               .hint = "GEMMERY_CACHE_DIR can name another one"});
}

CacheRoot own_cache_to_change() {
  if (jit::process_cache()->settings().is_read_only) {
    throw Error({.kind = ErrorKind::unavailable,
                 .operand = "the cache of compiled code",
                 .expected = "one that may be changed",
                 .got = "GEMMERY_CACHE_READONLY is set"});
  }
  return own_cache();
}

// Written by the process that changed what it counts. If the ledger is not available, the next one
// counts.
void write_ledger(const CacheRoot& root, std::optional<std::int64_t> bytes, bool resets_counters) {
  constexpr std::chrono::seconds patience{5};
  auto ledger = jit::CacheLedger::acquire(root.folder(), patience);
  if (!ledger) return;
  ledger->write(
      {.bytes = bytes, .counters = resets_counters ? CacheCounters{} : ledger->state().counters});
}

void describe_own(const CacheRoot& root, const jit::CacheSettings& settings, CacheReport& report) {
  report.is_usable = true;
  report.file_system = platform::file_system_name(root.folder());
  report.has_locks = platform::is_on_local_file_system(root.folder()) && !settings.is_read_only;
  report.counters = jit::read_ledger(root.folder(), settings.own->owner).counters;
  for (const jit::EntryFacts& entry : root.list()) {
    ++report.entries;
    report.bytes += entry.bytes;
  }
}

CacheRemoval remove_faulty(const CacheRoot& root) {
  CacheRemoval removal;
  for (const jit::EntryFacts& facts : root.list()) {
    const CacheRoot::Entry entry = root.examine(facts.name);
    if (entry.state == EntryState::sound || entry.state == EntryState::absent) continue;
    if (!root.remove(facts.name)) continue;
    ++removal.entries;
    removal.bytes += facts.bytes;
  }
  return removal;
}

// "gemm a=bf16 ...; D = relu(accum)" of a source that begins with these comments.
std::string leading_comments(std::string_view source) {
  constexpr std::string_view mark = "// ";
  std::string words;
  while (source.starts_with(mark)) {
    const std::size_t end = std::min(source.find('\n'), source.size());
    words +=
        (words.empty() ? "" : "; ") + std::string(source.substr(mark.size(), end - mark.size()));
    source.remove_prefix(std::min(end + 1, source.size()));
  }
  return words;
}

CachedCode describe(const CacheRoot& root, const jit::EntryFacts& facts) {
  CachedCode code{.name = facts.name,
                  .target = "?",
                  .form = "?",
                  .entry = "?",
                  .words = {},
                  .bytes = facts.bytes,
                  .used_at = facts.used_at};
  const CacheRoot::Entry entry = root.examine(facts.name);
  if (entry.state != EntryState::sound) return code;
  const std::string& conditions = entry.files.of(EntryFile::key);
  code.target = jit::condition(conditions, "target");
  code.form = jit::condition(conditions, "form");
  code.entry = jit::condition(conditions, "entry");
  code.entry.erase(0, code.entry.find(' ') + 1);  // the length
  code.words = leading_comments(entry.files.of(EntryFile::source));
  return code;
}

}  // namespace

CacheReport cache_report() {
  CacheReport report;
  const auto cache = jit::process_cache();
  const jit::CacheSettings& settings = cache->settings();
  if (settings.own) report.folder = settings.own->path;
  report.is_read_only = settings.is_read_only;
  report.most_bytes = settings.most_bytes;
  report.shared = settings.shared;
  report.own_counters = cache->counters();
  const jit::OpenedCache own = cache->open_own();
  report.refusal = own.refusal;
  if (own.root) describe_own(*own.root, settings, report);
  return report;
}

std::vector<CachedCode> list_cache() {
  const CacheRoot root = own_cache();
  std::vector<CachedCode> codes;
  for (const jit::EntryFacts& facts : root.list()) codes.push_back(describe(root, facts));
  std::ranges::sort(codes, std::ranges::greater{}, &CachedCode::used_at);
  return codes;
}

CacheCheck verify_cache() {
  const CacheRoot root = own_cache();
  CacheCheck check;
  for (const jit::EntryFacts& facts : root.list()) {
    const EntryState state = root.examine(facts.name).state;
    if (state == EntryState::sound)
      ++check.sound;
    else if (state != EntryState::absent)
      check.faulty.push_back(facts.name + ": " + jit::describe(state));
  }
  return check;
}

CacheRemoval prune_cache(std::int64_t most_bytes) {
  const CacheRoot root = own_cache_to_change();
  root.sweep(std::chrono::hours(1));
  CacheRemoval removal = remove_faulty(root);
  const DiskCache::Trimmed trimmed = DiskCache::trim(root, most_bytes);
  removal.entries += trimmed.entries;
  removal.bytes += trimmed.bytes;
  write_ledger(root, std::nullopt, false);
  return removal;
}

CacheRemoval clear_cache() {
  const CacheRoot root = own_cache_to_change();
  CacheRemoval removal;
  for (const jit::EntryFacts& facts : root.list()) {
    if (!root.remove(facts.name)) continue;
    ++removal.entries;
    removal.bytes += facts.bytes;
  }
  root.sweep(std::chrono::seconds(0));
  write_ledger(root, std::nullopt, true);
  return removal;
}

}  // namespace gemmery
