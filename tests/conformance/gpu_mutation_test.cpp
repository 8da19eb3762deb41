// SPDX-License-Identifier: Apache-2.0
// With GEMMERY_SOAK=1 determines which planted faults are caught on a GPU by each method:
// conformance, conformance with delays in the kernel and the emulator, and of those that remain
// unseen on the GPU by the tools of compute-sanitizer. A short run searches sound kernels alone,
// which must raise no alarm. Each search runs in a separate process, because a faulty kernel may
// hang or destroy its context. Prints the tables that tests/results/ keeps. GEMMERY_TEST_FAULTS
// selects rows whose name ("simt, stores a row too many") contains one of its texts, which "|"
// separates.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <semaphore>
#include <thread>

#include <fmt/format.h>

#include <gemmery/gemmery.hpp>

#include "jit/nvrtc.hpp"
#include "platform/parallel.hpp"
#include "platform/process.hpp"
#include "tests/conformance/device_mutants.hpp"
#include "tests/conformance/fault_hunt.hpp"
#include "tests/conformance/random_source.hpp"
#include "tests/conformance/sanitizer.hpp"

namespace gemmery::conformance {
namespace {

// --- one hunt, in a process of its own ----------------------------------------------------------

constexpr int found_code = 3;

// The time after which a kernel counts as hanging. A correct one with delays takes 20 s on an H200,
// and more while other searches hang on the same GPU.
std::chrono::seconds time_limit(DeviceType type, const DeviceFault& fault) {
  return std::chrono::seconds(type == DeviceType::emulated || fault.is_none() ? 120 : 25);
}

std::string hunt_with_delays(const Kernel& kernel, const Hunt& hunt) {
  for (std::uint32_t delays = 1; delays <= most_delays; ++delays) {
    const std::string found = hunt_at_random(with_delays(kernel, delays), hunt);
    if (!found.empty()) return found;
  }
  return {};
}

// Runs "hunt WAY ROW DEVICE SEED", the command line with which the test starts a search.
int hunt_as_told(char** words) {
  const std::string way = words[2];
  const std::size_t row = std::strtoul(words[3], nullptr, 10);
  const Device device = parse_device(words[4]).value();
  const std::uint64_t seed = std::strtoull(words[5], nullptr, 10);
  // Ends a hanging kernel even if the parent process has died.
  alarm(static_cast<unsigned>(time_limit(device.type, device_faults()[row]).count()) + 5);
  if (device.type == DeviceType::emulated) set_emulator_seed(seed >> 1);
  std::unique_ptr<Family> mutants = make_device_mutants();
  std::vector<Kernel> kernels;
  mutants->enumerate([&](const Kernel& kernel) { kernels.push_back(kernel); });
  register_family(std::move(mutants));
  const Kernel& kernel = kernels.at(row);
  std::string found;
  if (way == "delays") found = hunt_with_delays(kernel, {device, 16, seed});
  if (way == "random") found = hunt_at_random(kernel, {device, 128, seed});
  if (way == "edges" || (way == "random" && found.empty()))
    found = hunt_at_edges(kernel, device, seed);
  if (found.empty()) return 0;
  std::cout << "found " << found << "\n";
  return found_code;
}

// --- who hunts ----------------------------------------------------------------------------------

struct Hunter {
  std::string_view name;  // of the column
  std::string_view way;
  std::string_view tool;  // a tool of compute-sanitizer
  bool is_emulator = false;
};

constexpr Hunter hunters[] = {
    {.name = "conformance", .way = "random", .tool = {}},
    {.name = "with delays", .way = "delays", .tool = {}},
    {.name = "memcheck", .way = "edges", .tool = "memcheck"},
    {.name = "racecheck", .way = "edges", .tool = "racecheck"},
    {.name = "initcheck", .way = "edges", .tool = "initcheck"},
    {.name = "synccheck", .way = "edges", .tool = "synccheck"},
    {.name = "emulator", .way = "random", .tool = {}, .is_emulator = true},
};

struct Finding {
  bool is_caught = false;
  std::string cell;    // the text in the table
  std::string detail;  // the first line of the message
};

std::string line_after(std::string_view text, std::string_view sign) {
  const std::size_t at = text.find(sign);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + sign.size());
  return std::string(rest.substr(0, rest.find('\n')));
}

// A sanitizer's first message after its heading.
std::string first_report(std::string_view text) {
  const std::size_t heading = text.find("COMPUTE-SANITIZER");
  return line_after(text.substr(heading == std::string_view::npos ? 0 : heading), "\n========= ");
}

Finding read_finding(const Hunter& hunter, const platform::ProcessResult& result) {
  const bool is_sanitizer = !hunter.tool.empty();
  if (result.end == platform::ProcessResult::End::timed_out)
    return {.is_caught = !is_sanitizer, .cell = "hangs", .detail = {}};
  if (is_sanitizer) {
    if (result.code == sanitizer_code)
      return {.is_caught = true, .cell = "caught", .detail = first_report(result.output)};
    const bool has_run = result.code == 0 || result.code == found_code;
    return {.cell = has_run ? "blind" : fmt::format("exit {}", result.code),
            .detail = has_run ? "" : result.output.substr(0, 300)};
  }
  if (result.code == 0) return {.is_caught = false, .cell = "-", .detail = {}};
  const std::string detail = line_after(result.output, "found ");
  if (result.code != found_code)
    return {.is_caught = true,
            .cell = fmt::format("exit {}", result.code),
            .detail = result.output.substr(0, 300)};
  return {.is_caught = true, .cell = "caught", .detail = detail};
}

// --- the table ----------------------------------------------------------------------------------

struct Row {
  std::size_t index;
  const DeviceFault* fault;
  std::map<std::string_view, Finding> findings;  // by hunter

  bool is_caught_on_gpu() const {
    return std::ranges::any_of(hunters, [&](const Hunter& hunter) {
      const auto found = findings.find(hunter.name);
      return !hunter.is_emulator && found != findings.end() && found->second.is_caught;
    });
  }
};

std::vector<Row> wanted_rows(SoundKernel kernel) {
  std::vector<Row> rows;
  for (std::size_t index = 0; index < device_faults().size(); ++index) {
    const DeviceFault& fault = device_faults()[index];
    if (fault.kernel == kernel && is_wanted(fault) && (is_soak() || fault.is_none()))
      rows.push_back({.index = index, .fault = &fault, .findings = {}});
  }
  return rows;
}

std::string to_markdown(const std::vector<Row>& rows, const std::vector<const Hunter*>& asked) {
  std::string text = "| kernel | fault |";
  for (const Hunter* const hunter : asked) text += fmt::format(" {} |", hunter->name);
  text += "\n|---|---|";
  for (std::size_t column = 0; column < asked.size(); ++column) text += "---|";
  text += "\n";
  for (const Row& row : rows) {
    text += fmt::format("| {} | {} |", name(row.fault->kernel), row.fault->name);
    for (const Hunter* const hunter : asked)
      text += row.findings.contains(hunter->name)
                  ? fmt::format(" {} |", row.findings.at(hunter->name).cell)
                  : " |";
    text += "\n";
  }
  return text;
}

class GpuMutation : public testing::TestWithParam<SoundKernel> {
 protected:
  void SetUp() override {
    const jit::CompilerStatus compiler = jit::compiler_status();
    if (!compiler.found) GTEST_SKIP() << compiler.searched;
    const auto gpus = devices();
    if (gpus.empty()) GTEST_SKIP() << "no GPU on this machine";
    const Target target = device_info(gpus.front()).target;
    if (!runs_on(Target{90, 'a'}, target))
      GTEST_SKIP() << "sm90 kernels need sm_90a, this is " << to_string(target);
    if (is_soak()) sanitizer_ = find_sanitizer();
    if (is_soak() && !sanitizer_)
      std::cout << "no compute-sanitizer here: its columns are left out\n";
    const std::int64_t memory = device_info(gpus.front()).memory_bytes;
    far_hunts_.emplace(std::clamp<std::int64_t>(memory / bytes_of_far_hunt, 1, most_workers));
    seed_ = test_seed() >> 1;
    std::cout << "seed " << (seed_ << 1) << "\n";
  }

  std::vector<const Hunter*> asked() const {
    std::vector<const Hunter*> list;
    for (const Hunter& hunter : hunters) {
      if (hunter.tool.empty() || sanitizer_) list.push_back(&hunter);
    }
    return list;
  }

  // Without it, reads outside of operands and some races stay unseen.
  bool has_sanitizer() const { return sanitizer_.has_value(); }

  // The memory of a search with elements far apart; other searches take megabytes.
  static constexpr std::int64_t bytes_of_far_hunt = 20'000'000'000;
  static constexpr int most_workers = 16;
  using FarHunts = std::counting_semaphore<most_workers>;

  // Waits until the GPU has the memory.
  Finding hunt(const Row& row, const Hunter& hunter) {
    if (row.fault->kernel != SoundKernel::far || hunter.is_emulator) return run_hunt(row, hunter);
    far_hunts_->acquire();
    Finding finding = run_hunt(row, hunter);
    far_hunts_->release();
    return finding;
  }

  // This process makes no GPU call while searches run.
  Finding run_hunt(const Row& row, const Hunter& hunter) const {
    std::vector<std::string> argv;
    if (!hunter.tool.empty()) {
      argv = sanitizer_words(*sanitizer_, hunter.tool);
    }
    for (const std::string& word :
         {std::filesystem::read_symlink("/proc/self/exe").string(), std::string("hunt"),
          std::string(hunter.way), std::to_string(row.index),
          std::string(hunter.is_emulator ? "emulated:h200" : "cuda:0"), std::to_string(seed_)})
      argv.push_back(word);
    return read_finding(
        hunter,
        platform::run_process(
            {.words = std::move(argv),
             .environment = environment(),
             .folder = std::filesystem::current_path(),
             .time_limit = time_limit(hunter.is_emulator ? DeviceType::emulated : DeviceType::cuda,
                                      *row.fault)}));
  }

  // Printed immediately, so that an interrupted run has reported its findings.
  static void tell(const Row& row, const Hunter& hunter, const Finding& finding) {
    static std::mutex mutex;
    const std::scoped_lock lock(mutex);
    std::cout << fmt::format("{}, {}; {}: {} {}\n", name(row.fault->kernel), row.fault->name,
                             hunter.name, finding.cell,
                             std::string_view(finding.detail).substr(0, 160))
              << std::flush;
  }

  void hunt_all(std::vector<Row>& rows) {
    std::vector<Search> quick;
    std::vector<Search> by_tools;
    for (Row& row : rows) {
      for (const Hunter* const hunter : asked())
        if (hunter->tool.empty()) quick.push_back({&row, hunter});
    }
    hunt_in_parallel(quick);
    for (Row& row : rows) {
      for (const Hunter* const hunter : asked())
        if (can_tell(*hunter, row)) by_tools.push_back({&row, hunter});
    }
    hunt_in_parallel(by_tools);
  }

  // Tools slow kernels down a hundredfold: they are asked about what no other method on the GPU
  // has seen, sound kernels among it.
  static bool can_tell(const Hunter& hunter, const Row& row) {
    if (hunter.tool == "racecheck" && has_arrivals_for_warps(row.fault->kernel)) return false;
    return !hunter.tool.empty() && !row.is_caught_on_gpu();
  }

  struct Search {
    Row* row;
    const Hunter* hunter;
  };

  void hunt_in_parallel(const std::vector<Search>& searches) {
    std::vector<Finding> findings(searches.size());
    std::atomic<std::size_t> next = 0;
    {
      std::vector<std::jthread> workers;
      for (int worker = 0; worker < std::min(platform::thread_count(), most_workers); ++worker) {
        workers.emplace_back([&] {
          for (std::size_t at = next++; at < searches.size(); at = next++) {
            findings[at] = hunt(*searches[at].row, *searches[at].hunter);
            tell(*searches[at].row, *searches[at].hunter, findings[at]);
          }
        });
      }
    }
    for (std::size_t at = 0; at < searches.size(); ++at)
      searches[at].row->findings[searches[at].hunter->name] = findings[at];
  }

 private:
  std::optional<std::string> sanitizer_;
  std::optional<FarHunts> far_hunts_;
  std::uint64_t seed_ = 0;
};

TEST_P(GpuMutation, every_fault_that_hardware_shows_is_caught_and_the_sound_kernel_passes) {
  std::vector<Row> rows = wanted_rows(GetParam());
  if (rows.empty()) GTEST_SKIP() << "GEMMERY_TEST_FAULTS names no fault of this kernel";
  hunt_all(rows);
  std::cout << "\n" << to_markdown(rows, asked()) << "\n" << std::flush;
  for (const Row& row : rows) {
    if (row.fault->is_none()) {
      EXPECT_FALSE(row.is_caught_on_gpu()) << name(row.fault->kernel) << ": the sound kernel";
    } else if (row.fault->on_gpu == Shows::surely && has_sanitizer()) {
      EXPECT_TRUE(row.is_caught_on_gpu()) << row.fault->name;
    }
  }
}

std::vector<SoundKernel> sound_kernels() {
  std::vector<SoundKernel> kernels;
  for (const DeviceFault& fault : device_faults()) {
    if (fault.is_none()) kernels.push_back(fault.kernel);
  }
  return kernels;
}

// "sm90_coop_reductions".
std::string name_of(const testing::TestParamInfo<SoundKernel>& kernel) {
  std::string text;
  for (const char letter : name(kernel.param)) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0)
      text += letter;
    else if (!text.ends_with('_'))
      text += '_';
  }
  return text;
}

INSTANTIATE_TEST_SUITE_P(Of, GpuMutation, testing::ValuesIn(sound_kernels()), name_of);

}  // namespace
}  // namespace gemmery::conformance

int main(int count, char** words) {
  if (count == 6 && std::string_view(words[1]) == "hunt") {
    try {
      return gemmery::conformance::hunt_as_told(words);
    } catch (const std::exception& error) {
      std::cout << "found " << error.what() << "\n";
      return gemmery::conformance::found_code;
    }
  }
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
