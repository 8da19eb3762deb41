// SPDX-License-Identifier: Apache-2.0
#include "drop_in/driver/finding_record.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "drop_in/driver/call.hpp"
#include "emulator/check/fault.hpp"
#include "platform/environment.hpp"

namespace gemmery::drop_in {
namespace {

using Record = nlohmann::ordered_json;

Record to_record(const emulator::FaultPlace& place) {
  return {{"kernel", emulator::demangled(place.kernel)},
          {"block", place.cta},
          {"warp", place.warp},
          {"lane", place.lane},
          {"ptx_line", place.ptx_line},
          {"ptx", place.ptx_text},
          {"file", place.source_file},
          {"line", place.source_line},
          {"call_file", place.call_file},
          {"call_line", place.call_line}};
}

Record to_record(const emulator::CollectedFault& found, const std::string& place,
                 std::uint64_t seed) {
  return {{"record", "finding"},
          {"place", place},
          {"kind", emulator::name(found.fault.kind)},
          {"message", found.fault.message},
          {"at", to_record(found.fault.place)},
          {"with", to_record(found.fault.other)},
          {"report", found.fault.report()},
          {"by_the_letter", found.fault.is_by_the_letter},
          {"ended_block", found.ended_cluster},
          {"seed", seed}};
}

// A file that several processes append whole lines to.
class RecordFile {
 public:
  explicit RecordFile(std::optional<std::string> path) : path_(std::move(path)) {}
  bool is_open() const noexcept { return path_.has_value(); }
  void append(Record record) const {
    record["process"] = getpid();
    const std::string line = record.dump(-1, ' ', true, Record::error_handler_t::replace) + "\n";
    const int file = open(path_->c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0) return;
    [[maybe_unused]] const ssize_t written = write(file, line.data(), line.size());
    close(file);
  }

 private:
  std::optional<std::string> path_;
};

const RecordFile& record_file() {
  static const auto* const file =
      new RecordFile(platform::read_environment("GEMMERY_EMULATION_RECORD"));
  return *file;
}

class Findings final : public emulator::FaultSink {
 public:
  void begin(const emulator::KernelLaunch&) override {}
  void take(const std::vector<emulator::CollectedFault>& faults,
            const emulator::LaunchStatistics& statistics, std::uint64_t seed) override;
  void finish();

 private:
  void note(const emulator::CollectedFault& found, std::uint64_t seed);

  std::mutex mutex_;
  std::map<std::string, std::uint64_t> counts_;  // by place
  std::uint64_t launches_ = 0;
  emulator::LaunchStatistics total_;
};

void Findings::take(const std::vector<emulator::CollectedFault>& faults,
                    const emulator::LaunchStatistics& statistics, std::uint64_t seed) {
  const std::lock_guard lock(mutex_);
  ++launches_;
  total_.warp_instructions += statistics.warp_instructions;
  total_.lane_instructions += statistics.lane_instructions;
  for (const emulator::CollectedFault& found : faults) note(found, seed);
}

// A finding is told when it is met first, so that it is known even if the program ends badly.
void Findings::note(const emulator::CollectedFault& found, std::uint64_t seed) {
  const std::string place = emulator::place_key(found.fault);
  const auto [count, is_new] = counts_.try_emplace(place, 0);
  count->second += found.count;
  if (!is_new) return;
  if (record_file().is_open())
    record_file().append(to_record(found, place, seed));
  else
    say(found.fault.report());
}

void Findings::finish() {
  const std::lock_guard lock(mutex_);
  if (!record_file().is_open()) return;
  for (const auto& [place, count] : counts_)
    record_file().append({{"record", "count"}, {"place", place}, {"count", count}});
  record_file().append({{"record", "summary"},
                        {"launches", launches_},
                        {"warp_instructions", total_.warp_instructions},
                        {"lane_instructions", total_.lane_instructions}});
}

Findings& findings() {
  static auto* const all = new Findings;
  return *all;
}

}  // namespace

void record_findings() {
  emulator::set_fault_sink(&findings());
  std::atexit([] { findings().finish(); });
}

void record_refusal(std::string_view words) noexcept {
  try {
    if (record_file().is_open())
      record_file().append({{"record", "refusal"}, {"text", std::string(words)}});
  } catch (const std::exception&) {  // the words stand on standard error as well
  }
}

}  // namespace gemmery::drop_in
