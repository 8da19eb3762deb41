// SPDX-License-Identifier: Apache-2.0
// gemmery cache: shows and cleans the cache of compiled code.
#include <unistd.h>

#include <chrono>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <gemmery/cache.hpp>

#include "cli/quantities.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace gemmery::cli {
namespace {

struct CounterRow {
  const char* name;
  std::uint64_t CacheCounters::*value;
  const char* words;
};
constexpr CounterRow counter_rows[] = {
    {"hits", &CacheCounters::hits, "hits"},
    {"absent", &CacheCounters::absent, "misses: not compiled before"},
    {"damaged", &CacheCounters::damaged, "misses: entry damaged"},
    {"foreign", &CacheCounters::foreign, "misses: entry not trusted"},
    {"other_version", &CacheCounters::other_version, "misses: entry of another version"},
    {"unreadable", &CacheCounters::unreadable, "misses: entry could not be read"},
    {"kept", &CacheCounters::kept, "stored"},
    {"duplicates", &CacheCounters::duplicates, "stored by another process before"},
    {"not_kept", &CacheCounters::not_kept, "could not be stored"},
    {"evicted", &CacheCounters::evicted, "removed to make room"},
    {"waits", &CacheCounters::waits, "waits for another process"},
    {"timeouts", &CacheCounters::timeouts, "waits that timed out"},
    {"bytes_read", &CacheCounters::bytes_read, "bytes read"},
    {"bytes_written", &CacheCounters::bytes_written, "bytes written"},
};

// --- stat ---------------------------------------------------------------------------------------

Record report_record(const CacheReport& report) {
  Record record = {{"folder", report.folder},           {"is_usable", report.is_usable},
                   {"refusal", report.refusal},         {"is_read_only", report.is_read_only},
                   {"file_system", report.file_system}, {"has_locks", report.has_locks},
                   {"entries", report.entries},         {"bytes", report.bytes},
                   {"most_bytes", report.most_bytes},   {"shared", report.shared}};
  for (const CounterRow& row : counter_rows) record[row.name] = report.counters.*row.value;
  return record;
}

void print_report(const CacheReport& report, Output& output) {
  const auto line = [&](const char* name, const std::string& value) {
    output.write_line(fmt::format("{:<33} {}", name, value));
  };
  line("folder", report.folder.empty() ? "none" : report.folder);
  for (const std::string& folder : report.shared) line("shared, searched after it", folder);
  if (!report.is_usable) return line("not used", report.refusal);
  line("file system", report.file_system + (report.has_locks ? "" : ", without locks"));
  if (report.is_read_only) line("read only", "GEMMERY_CACHE_READONLY is set");
  line("entries", fmt::format("{}", report.entries));
  line("size", size_text(report.bytes) + " of " + size_text(report.most_bytes));
  for (const CounterRow& row : counter_rows) {
    const std::uint64_t count = report.counters.*row.value;
    if (count > 0 || row.value == &CacheCounters::hits) line(row.words, fmt::format("{}", count));
  }
}

ExitCode tell_report(Output& output) {
  const CacheReport report = cache_report();
  if (output.is_text()) {
    print_report(report, output);
  } else {
    output.write_record(report_record(report));
  }
  return ExitCode::success;
}

// --- list ---------------------------------------------------------------------------------------

std::string to_text(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm local{};
  localtime_r(&seconds, &local);
  return fmt::format("{:%Y-%m-%d %H:%M}", local);
}

ExitCode list_entries(Output& output) {
  Table table{"target", "form", ">size", "used", "~kernel"};
  for (const CachedCode& code : list_cache()) {
    if (output.is_text()) {
      table.add_row({code.target, code.form, size_text(code.bytes), to_text(code.used_at),
                     fmt::format("{}: {}{}entry {}", code.entry, code.words,
                                 code.words.empty() ? "" : "; ", code.name)});
      continue;
    }
    const auto seconds = std::chrono::system_clock::to_time_t(code.used_at);
    output.write_record({{"name", code.name},
                         {"target", code.target},
                         {"form", code.form},
                         {"bytes", code.bytes},
                         {"used_at_s", seconds},
                         {"kernel", code.entry},
                         {"words", code.words}});
  }
  if (output.is_text()) table.print(output, columns_to_fit(STDOUT_FILENO));
  return ExitCode::success;
}

// --- verify, prune, clear -----------------------------------------------------------------------

ExitCode check_entries(Output& output) {
  const CacheCheck check = verify_cache();
  if (output.is_text()) {
    for (const std::string& faulty : check.faulty) output.write_line(faulty);
    output.write_line(fmt::format("{} sound, {} faulty", check.sound, check.faulty.size()));
  } else {
    output.write_record({{"sound", check.sound}, {"faulty", check.faulty}});
  }
  return check.faulty.empty() ? ExitCode::success : ExitCode::failed;
}

ExitCode tell_removal(const CacheRemoval& removal, Output& output) {
  if (output.is_text()) {
    output.write_line(
        fmt::format("removed {} entries, {}", removal.entries, size_text(removal.bytes)));
  } else {
    output.write_record({{"entries", removal.entries}, {"bytes", removal.bytes}});
  }
  return ExitCode::success;
}

}  // namespace

ExitCode tidy_cache(const Options& options, Output& output) {
  if (options.action == "list") return list_entries(output);
  if (options.action == "verify") return check_entries(output);
  if (options.action == "clear") return tell_removal(clear_cache(), output);
  if (options.action == "prune") {
    const std::int64_t bytes = options.bytes >= 0 ? options.bytes : cache_report().most_bytes;
    return tell_removal(prune_cache(bytes), output);
  }
  return tell_report(output);
}

}  // namespace gemmery::cli
