// SPDX-License-Identifier: Apache-2.0
// Runs one kernel under several schedules, merges what they find, and compares their results.
#include <gemmery/emulate.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <gemmery/error.hpp>

#include "api/emulation_arguments.hpp"
#include "api/finding_rules.hpp"
#include "api/refusal.hpp"
#include "emulator/device.hpp"
#include "emulator/execution_watch.hpp"
#include "emulator/module.hpp"
#include "platform/cancellation.hpp"

namespace gemmery {
namespace {

// --- the kernel ---------------------------------------------------------------------------------

// True if the code, after comments and white space, begins like PTX.
bool is_ptx(std::string_view code) {
  while (true) {
    const std::size_t begin = code.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return false;
    code.remove_prefix(begin);
    const bool is_line = code.starts_with("//");
    if (!is_line && !code.starts_with("/*")) return code.starts_with(".version");
    const std::size_t end = code.find(is_line ? "\n" : "*/", 2);
    if (end == std::string_view::npos) return false;
    code.remove_prefix(end + (is_line ? 1 : 2));
  }
}

std::string quoted(const std::string& file) {
  std::string text;
  for (const char c : file) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

EmulatedModule make_module(const EmulationRequest& request) {
  if (is_ptx(request.code)) return EmulatedModule::load(request.code, request.device);
  return EmulatedModule::compile(
      fmt::format("#line 1 \"{}\"\n{}", quoted(request.file), request.code), request.device,
      request.compile_options);
}

bool is_called(const std::string& entry, const std::string& wanted) {
  const std::string signature = emulator::demangled(entry);
  const std::string_view name = name_in_source(signature);
  return entry == wanted || signature == wanted || name == wanted ||
         name.substr(0, name.find('<')) == wanted;
}

std::string find_entry(const std::vector<std::string>& entries, const std::string& wanted) {
  std::vector<std::string> found;
  std::string all;
  for (const std::string& entry : entries) {
    if (wanted.empty() || is_called(entry, wanted)) found.push_back(entry);
    all += (all.empty() ? "" : "; ") + emulator::demangled(entry);
  }
  if (found.size() == 1) return found.front();
  if (entries.empty())
    api::refuse("code", "a kernel (__global__, .entry)", "none; a template must be instantiated");
  api::refuse("entry", found.empty() ? "a kernel of the code" : "the name of one kernel",
              fmt::format("'{}'; the code has: {}", wanted, all));
}

std::vector<FindingRule> all_rules(const EmulationRequest& request) {
  std::vector<FindingRule> rules = parse_finding_rules(request.rules, request.rules_file);
  if (is_ptx(request.code)) return rules;
  std::ranges::move(find_comment_rules(request.code, request.file), std::back_inserter(rules));
  return rules;
}

std::optional<emulator::TracedBlock> traced_block(const EmulationRequest& request) {
  if (!request.trace) return std::nullopt;
  return emulator::TracedBlock{.block = request.trace->block,
                               .warp = request.trace->warp,
                               .most_steps = request.trace->most_steps};
}

// --- places -------------------------------------------------------------------------------------

EmulatedPlace place_of(const emulator::FaultPlace& place) {
  return {.kernel = emulator::demangled(place.kernel),
          .block = place.cta,
          .warp = place.warp,
          .lane = place.lane,
          .ptx_line = place.ptx_line,
          .ptx_text = place.ptx_text,
          .source_file = place.source_file,
          .source_line = place.source_line,
          .call_file = place.call_file,
          .call_line = place.call_line};
}

EmulationFinding finding_of(const emulator::CollectedFault& found, std::uint64_t seed) {
  const emulator::Fault& fault = found.fault;
  return {.kind = emulator::name(fault.kind),
          .message = fault.message,
          .place = place_of(fault.place),
          .other = place_of(fault.other),
          .report = fault.report(),
          .is_by_the_letter = fault.is_by_the_letter,
          .ended_block = found.ended_cluster,
          .count = found.count,
          .seeds = {seed},
          .rule = {}};
}

// Findings of all schedules, one for each place.
class FindingList {
 public:
  void add(const std::string& place, EmulationFinding found);
  bool is_empty() const noexcept { return findings_.empty(); }
  std::vector<EmulationFinding> take() { return std::move(findings_); }

 private:
  std::map<std::string, std::size_t> index_;  // by place
  std::vector<EmulationFinding> findings_;
};

void FindingList::add(const std::string& place, EmulationFinding found) {
  const auto [at, is_new] = index_.try_emplace(place, findings_.size());
  if (is_new) {
    findings_.push_back(std::move(found));
    return;
  }
  EmulationFinding* const known = &findings_[at->second];
  known->count += found.count;
  known->seeds.insert(known->seeds.end(), found.seeds.begin(), found.seeds.end());
  known->is_by_the_letter = known->is_by_the_letter && found.is_by_the_letter;
  known->ended_block = known->ended_block || found.ended_block;
}

// --- time ---------------------------------------------------------------------------------------

// Requests a stop of the launches of this thread after so many seconds.
class TimeLimit {
 public:
  explicit TimeLimit(double seconds)
      : follows_(platform::current_cancellation(), [this] { stop_.request_stop(); }),
        scope_(stop_.get_token()) {
    if (seconds > 0)
      timer_ = std::jthread([this, seconds](std::stop_token end) { wait(seconds, end); });
  }
  bool is_over() const noexcept { return is_over_; }

 private:
  void wait(double seconds, const std::stop_token& end) {
    std::unique_lock hold(lock_);
    const bool is_ended =
        done_.wait_for(hold, end, std::chrono::duration<double>(seconds), [] { return false; });
    if (is_ended || end.stop_requested()) return;
    is_over_ = true;
    stop_.request_stop();
  }

  std::stop_source stop_;
  std::atomic<bool> is_over_{false};
  std::mutex lock_;
  std::condition_variable_any done_;
  std::stop_callback<std::function<void()>> follows_;
  platform::ScopedCancellation scope_;
  std::jthread timer_;
};

// --- rules --------------------------------------------------------------------------------------

void apply_rules(const std::vector<FindingRule>& rules, EmulationReport& report) {
  std::vector<bool> is_used(rules.size());
  for (EmulationFinding& finding : report.findings) {
    for (std::size_t index = 0; index < rules.size(); ++index) {
      if (!rules[index].matches(finding)) continue;
      is_used[index] = true;
      if (finding.rule.empty()) finding.rule = rules[index].text;
    }
  }
  for (std::size_t index = 0; index < rules.size(); ++index) {
    if (!is_used[index]) report.unused_rules.push_back(rules[index].text);
  }
}

// --- one request --------------------------------------------------------------------------------

class Emulation {
 public:
  explicit Emulation(const EmulationRequest& request)
      : request_(request),
        rules_(all_rules(request)),
        limit_(request.timeout_s),
        ptx_(make_module(request)),
        device_(emulator::device_at(request.device.index)),
        entry_(find_entry(ptx_.entries(), request.entry)),
        buffers_(request.arguments, device_),
        watch_(request.wants_coverage, traced_block(request)) {
    if (request.schedules < 1)
      api::refuse("schedules", "at least 1", std::to_string(request.schedules));
  }

  EmulationReport run();

 private:
  bool run_schedule(std::uint64_t seed);
  void launch(std::uint64_t seed, emulator::FaultCollector& collector);
  void compare(const std::vector<EmulationOutput>& outputs, std::uint64_t seed);
  void note_difference(const EmulationOutput& first, const EmulationOutput& other,
                       std::uint64_t seed);
  void report_coverage();
  void report_trace();
  bool stops() const noexcept { return request_.stops_at_first && !findings_.is_empty(); }

  const EmulationRequest& request_;
  const std::vector<FindingRule> rules_;
  TimeLimit limit_;
  const EmulatedModule ptx_;
  emulator::EmulatedDevice& device_;
  const std::string entry_;
  EmulationBuffers buffers_;
  std::unique_ptr<emulator::Module> module_;
  std::shared_ptr<const emulator::KernelImage> image_;
  emulator::ExecutionWatch watch_;
  FindingList findings_;
  EmulationReport report_;
};

void Emulation::launch(std::uint64_t seed, emulator::FaultCollector& collector) {
  const EmulatedLaunch& shape = request_.launch;
  const emulator::KernelLaunch launch{
      .device = &device_,
      .image = image_,
      .grid = shape.grid,
      .block = shape.block,
      .cluster = shape.cluster,
      .dynamic_shared_bytes = shape.shared_bytes,
      .is_cooperative = shape.is_cooperative || image_->names_grid_workspace,
      .parameters = lay_out_parameters(*image_, request_.arguments, buffers_)};
  const emulator::LaunchStatistics statistics =
      emulator::run(launch, seed, shape.step_limit,
                    {.collector = request_.stops_at_first ? nullptr : &collector,
                     .observer = watch_.has_wishes() ? &watch_ : nullptr,
                     .sampled_clusters = request_.sampled_clusters});
  report_.warp_instructions += statistics.warp_instructions;
  report_.lane_instructions += statistics.lane_instructions;
}

// Runs one schedule; false if no further one should run.
bool Emulation::run_schedule(std::uint64_t seed) {
  // Anew for each schedule if variables of the module may have changed.
  if (module_ == nullptr || !module_->program().variables.empty()) {
    module_ = std::make_unique<emulator::Module>(ptx_.ptx());
    image_ = module_->image(entry_, device_);
  }
  watch_.begin(image_->code.size());
  const std::lock_guard lock(device_.executing);
  buffers_.refill();
  emulator::FaultCollector collector;
  bool is_complete = true;
  try {
    launch(seed, collector);
  } catch (const emulator::Fault& fault) {
    collector.note({.fault = fault, .ended_cluster = true});
  } catch (const Error&) {
    if (!limit_.is_over()) throw;
    report_.timed_out = true;
    is_complete = false;
  }
  for (const emulator::CollectedFault& found : collector.take_all()) {
    is_complete = is_complete && !found.ended_cluster;
    findings_.add(emulator::place_key(found.fault), finding_of(found, seed));
  }
  if (!report_.timed_out) ++report_.schedules;
  std::vector<EmulationOutput> outputs = buffers_.read();
  if (report_.outputs.empty())
    report_.outputs = std::move(outputs);
  else if (is_complete)
    compare(outputs, seed);
  return !report_.timed_out && !stops();
}

void Emulation::compare(const std::vector<EmulationOutput>& outputs, std::uint64_t seed) {
  for (std::size_t index = 0; index < outputs.size(); ++index) {
    if (outputs[index].bytes != report_.outputs[index].bytes)
      note_difference(report_.outputs[index], outputs[index], seed);
  }
}

void Emulation::note_difference(const EmulationOutput& first, const EmulationOutput& other,
                                std::uint64_t seed) {
  const auto place = std::ranges::mismatch(first.bytes, other.bytes).in1 - first.bytes.begin();
  std::size_t differing = 0;
  for (std::size_t at = 0; at < first.bytes.size(); ++at)
    differing += first.bytes[at] != other.bytes[at];
  EmulationFinding found{
      .kind = results_differ,
      .message =
          fmt::format("argument {} has {} of {} bytes other than under the schedule of seed "
                      "{}, the first at byte {}; the kernel's result depends on the order in "
                      "which its threads run: order them, or suppress this where it is "
                      "meant (sums by floating-point atomics)",
                      first.argument, differing, first.bytes.size(), request_.launch.seed, place),
      .place = {.kernel = report_.kernel},
      .report = {},
      .count = 1,
      .seeds = {seed},
      .rule = {}};
  found.report = found.kind + ": " + found.message;
  findings_.add(fmt::format("{} {}", results_differ, first.argument), std::move(found));
}

void Emulation::report_coverage() {
  for (std::uint32_t pc = 0; pc < image_->code.size(); ++pc) {
    EmulatedPlace place = place_of(image_->place_of(pc));
    if (place.ptx_line == 0) continue;
    report_.coverage.push_back({.ptx_line = place.ptx_line,
                                .ptx_text = std::move(place.ptx_text),
                                .source_file = std::move(place.source_file),
                                .source_line = place.source_line,
                                .has_run = watch_.has_run(pc)});
  }
}

void Emulation::report_trace() {
  for (const emulator::ExecutionWatch::Step& step : watch_.steps()) {
    EmulatedPlace place = place_of(image_->place_of(step.pc));
    if (place.ptx_line == 0) continue;
    place.block = request_.trace->block;
    place.warp = step.warp;
    place.lane = std::countr_zero(step.lanes);
    report_.trace.push_back(
        {.place = std::move(place), .lanes = step.lanes, .result = step.result});
  }
}

EmulationReport Emulation::run() {
  report_.kernel = emulator::demangled(entry_);
  for (int schedule = 0; schedule < request_.schedules; ++schedule) {
    if (!run_schedule(request_.launch.seed + static_cast<std::uint64_t>(schedule))) break;
  }
  report_.findings = findings_.take();
  apply_rules(rules_, report_);
  if (request_.wants_coverage) report_coverage();
  report_trace();
  return std::move(report_);
}

}  // namespace

bool EmulationReport::passed() const noexcept {
  return !timed_out && std::ranges::all_of(findings, [](const EmulationFinding& finding) {
    return finding.is_by_the_letter || !finding.rule.empty();
  });
}

void suppress_findings(EmulationReport& report, std::string_view rules,
                       const std::string& rules_file) {
  apply_rules(parse_finding_rules(rules, rules_file), report);
}

EmulationReport emulate(const EmulationRequest& request) { return Emulation(request).run(); }

}  // namespace gemmery
