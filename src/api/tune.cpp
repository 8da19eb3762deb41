// SPDX-License-Identifier: Apache-2.0
// Tuning and its file, for users.
#include <gemmery/error.hpp>
#include <gemmery/tune.hpp>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "api/stored_choices.hpp"
#include "api/tuning_conditions.hpp"
#include "api/tuning_search.hpp"
#include "platform/log.hpp"

namespace gemmery {
namespace {

// How long at least another process that is timing is waited for.
constexpr double shortest_patience_s = 60;

std::string time_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

void check(const TuneOptions& options) {
  api::check_options({.device = options.device});
  if (options.budget_s > 0 && options.candidates >= 0) return;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = options.budget_s > 0 ? "candidates" : "budget_s",
               .expected = options.budget_s > 0 ? "0 or more" : "more than 0",
               .got = options.budget_s > 0 ? std::to_string(options.candidates)
                                           : fmt::format("{}", options.budget_s)});
}

tuning::Choices stored_choices(const tuning::TuningFile& file) {
  tuning::TuningFile::Reading reading = file.read();
  if (reading.refusal.empty()) return tuning::Choices(std::move(reading.content));
  throw Error({.kind = ErrorKind::io,
               .operand = file.path(),
               .expected = "a file that only this user or root can write",
               .got = reading.refusal});
}

// The result that holds here, if one is stored.
api::ChoicePointer find_stored(const tuning::TuningFile& file, const GemmProblem& problem,
                               const TuningConditions& conditions) {
  const tuning::Choices choices = stored_choices(file);
  for (const api::ChoicePointer& choice : choices.of(problem))
    if (choice->entry().conditions == conditions) return choice;
  return nullptr;
}

// Continues without the lock if it is not free in time.
std::optional<platform::FileLock> wait_for_device(const tuning::TuningFile& file,
                                                  const TuneOptions& options) {
  const double patience_s = std::max(shortest_patience_s, 2 * options.budget_s);
  return file.claim_device(
      {.most = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * patience_s)),
       .tell =
           [](std::chrono::seconds waited, const std::string& holder) {
             platform::log(LogLevel::info,
                           fmt::format("waiting for {} s for {}, which times kernels",
                                       waited.count(), holder));
           },
       .is_given_up =
           [&] {
             if (options.progress) options.progress({"waiting", {}, 0});
             return false;
           }});
}

Error none_fits(const ProblemLine& line, const DeviceInfo& device, const Filter& filter) {
  return Error({.kind = ErrorKind::unsupported,
                .operand = to_string(line),
                .expected = "a kernel that fits",
                .got = "none on " + device.name,
                .hint = "the reasons follow",
                .cause = "\n" + to_string(explain(line.problem, device, filter))});
}

TuneResult search(const ProblemLine& line, const TuneOptions& options, const DeviceInfo& device) {
  api::TuningSearch search(line, device, options);
  if (!search.has_candidates()) throw none_fits(line, device, options.filter);
  return search.run();
}

}  // namespace

std::string_view name(TuneOutcome outcome) noexcept {
  switch (outcome) {
    case TuneOutcome::stored:
      return "stored";
    case TuneOutcome::stored_before:
      return "stored_before";
    case TuneOutcome::undecided:
      return "undecided";
    case TuneOutcome::none_passed:
      return "none_passed";
  }
  return "";
}

TuneResult tune(const ProblemLine& line, const TuneOptions& options) {
  check(options);
  const DeviceInfo& device = device_info(options.device);
  const TuningConditions& conditions = api::conditions_of(device);
  const tuning::TuningFile file = api::tuning_file();
  const auto stored = [&] { return find_stored(file, line.problem, conditions); };
  if (!options.measures_again)
    if (const auto found = stored())
      return {.outcome = TuneOutcome::stored_before, .entry = found->entry()};
  const auto claim = wait_for_device(file, options);
  if (!options.measures_again)  // by the process that was waited for
    if (const auto found = stored())
      return {.outcome = TuneOutcome::stored_before, .entry = found->entry()};
  TuneResult result = search(line, options, device);
  result.entry.conditions = conditions;
  if (result.outcome != TuneOutcome::stored) return result;
  result.entry.tuned_at = time_now();
  file.append(result.entry);
  api::forget_choices_read();
  return result;
}

// --- the file -----------------------------------------------------------------------------------

namespace {

std::vector<TuningConditions> conditions_here() {
  std::vector<TuningConditions> here{api::conditions_of(device_info(Device::cpu()))};
  for (const Device device : devices()) here.push_back(api::conditions_of(device_info(device)));
  return here;
}

std::size_t forget(const std::function<bool(const TuningEntry&)>& is_chosen) {
  const std::size_t removed = api::tuning_file().remove(is_chosen);
  api::forget_choices_read();
  return removed;
}

}  // namespace

std::string tuning_file() { return api::tuning_file().path(); }

std::vector<StoredTuning> list_tunings() {
  const tuning::TuningFile file = api::tuning_file();
  const tuning::TuningFile::Reading reading = file.read();
  if (!reading.refusal.empty()) (void)stored_choices(file);  // throws
  const std::vector<TuningConditions> here = conditions_here();
  std::vector<StoredTuning> list;
  for (const tuning::ReadEntry& read : reading.content.entries) {
    std::erase_if(list, [&](const TuningEntry& older) {
      return older.problem == read.entry.problem && older.conditions == read.entry.conditions;
    });
    list.push_back({{read.entry}, std::ranges::find(here, read.entry.conditions) != here.end()});
  }
  return list;
}

std::size_t forget_tunings(std::span<const GemmProblem> problems) {
  std::vector<std::string> lines;
  for (const GemmProblem& problem : problems) lines.push_back(to_string(problem));
  return forget([&](const TuningEntry& entry) {
    return std::ranges::find(lines, entry.problem) != lines.end();
  });
}

std::size_t forget_all_tunings() {
  return forget([](const TuningEntry&) { return true; });
}

}  // namespace gemmery
