// SPDX-License-Identifier: Apache-2.0
// A line per number, of the same length for every value, and a digest of the lines, by which a
// half-written ledger is recognised.
#include "jit/cache_ledger.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "jit/cache_entry.hpp"

namespace gemmery::jit {
namespace {

constexpr const char* ledger_name = "ledger";
constexpr std::size_t most_ledger_bytes = 4096;
constexpr std::string_view first_line = "gemmery cache ledger 1\n";
constexpr std::int64_t unknown_bytes = -1;

// Removes the first line and returns the number at its end; 0 if there is none.
std::int64_t take_number(std::string_view& text) {
  const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  const std::size_t begin = line.find_last_of(' ') + 1;
  const std::size_t digits = std::min(line.find_first_not_of('0', begin), line.size());
  std::int64_t value = 0;
  std::from_chars(line.data() + digits, line.data() + line.size(), value);
  return value;
}

}  // namespace

void add(CacheCounters& sum, const CacheCounters& more) {
  for (const CounterRow& row : counter_rows) sum.*row.value += more.*row.value;
}

std::string print_ledger(const LedgerState& state) {
  // Stored plus one, so that "unknown" needs no sign.
  std::string text = fmt::format("{}{:14} {:020}\n", first_line, "bytes_and_one",
                                 state.bytes.value_or(unknown_bytes) + 1);
  for (const CounterRow& row : counter_rows)
    text += fmt::format("{:14} {:020}\n", row.name, state.counters.*row.value);
  return text + fmt::format("digest {}\n", digest_of(text));
}

LedgerState parse_ledger(std::string_view text) {
  if (!text.starts_with(first_line)) return {};
  std::string_view rest = text.substr(first_line.size());
  LedgerState state;
  const std::int64_t bytes = take_number(rest) - 1;
  if (bytes >= 0) state.bytes = bytes;
  for (const CounterRow& row : counter_rows)
    state.counters.*row.value = static_cast<std::uint64_t>(take_number(rest));
  return print_ledger(state) == text ? state : LedgerState{};
}

std::optional<CacheLedger> CacheLedger::acquire(const platform::Folder& folder,
                                                std::chrono::milliseconds patience) {
  std::optional<platform::FileLock> lock =
      platform::FileLock::acquire(folder, ledger_name, {.most = patience});
  if (!lock) return std::nullopt;
  const platform::Attempt<std::string> text = platform::read_all(lock->file(), most_ledger_bytes);
  const LedgerState state = text ? parse_ledger(*text) : LedgerState{};
  return CacheLedger(*std::move(lock), state);
}

void CacheLedger::write(const LedgerState& state) {
  state_ = state;
  const std::string text = print_ledger(state);
  const int file = lock_.file().number();
  // A longer file was not a ledger.
  if (lseek(file, 0, SEEK_SET) != 0 || ftruncate(file, static_cast<off_t>(text.size())) != 0)
    return;
  platform::write_all(lock_.file(), std::as_bytes(std::span(text)));
}

LedgerState read_ledger(const platform::Folder& folder, platform::Owner owner) {
  const platform::Attempt<std::string> text =
      folder.read_file(ledger_name, most_ledger_bytes, owner);
  return text ? parse_ledger(*text) : LedgerState{};
}

}  // namespace gemmery::jit
