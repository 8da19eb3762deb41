// SPDX-License-Identifier: Apache-2.0
// Measures every kernel that discovery returns for some problems, as data to which a model is
// fitted.
//
//   calibrate [--device cuda:0] [--class sm90] [--within FACTOR] [--keep FACTOR] [--finalists 32]
//             [--threads N] [--seconds N] [--csv FILE] (--list FILE | 'gemm 4096x4096x4096 a=bf16
//             b=bf16:c') …
//
// A list has one problem per line, after the name of its set; "#" begins a comment. There are two
// passes per problem: all kernels in a few short batches, then the finalists (the fastest of these
// and the first of discovery) in more and longer ones. Kernels take turns in a random order, so
// that drifts of the clock affect all of them. The clock still depends on which other kernels run,
// so compare times within a pass only. Kernels are compiled beforehand, in parallel. --within
// leaves out kernels whose prediction is more than FACTOR times the best (0: none); --keep leaves
// out rows of kernels that took more than FACTOR times the fastest time (0: none). After --seconds
// (0: never) no further problem is started; skipped problems are counted, as are kernels that do
// not compile, the first few of them by name.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include <gemmery/family.hpp>
#include <gemmery/gemmery.hpp>

#include "peers/device_clock.hpp"

namespace {

using gemmery::Kernel;
using gemmery::Measurement;
using gemmery::MeasureOptions;
using gemmery::ProblemLine;
using gemmery::RankedKernel;
using gemmery::peers::read_board;
using Clock = std::chrono::steady_clock;

struct NamedProblem {
  std::string set;
  ProblemLine line;
};

struct Options {
  gemmery::Device device = gemmery::Device::cuda(0);
  std::string kernel_class = "sm90";
  double within = 0;
  double keep = 0;
  std::size_t finalists = 32;
  std::size_t threads = std::max(std::thread::hardware_concurrency(), 1U);
  double seconds = 0;
  std::string csv = "/dev/stdout";
  std::vector<NamedProblem> problems;
};

// "listed gemm 8x8x8 a=bf16"; the set may be missing.
NamedProblem read_problem(std::string_view text) {
  const std::size_t start = text.find("gemm ");
  if (start == std::string_view::npos)
    throw std::runtime_error("expected a problem such as 'gemm 8x8x8 a=bf16', got " +
                             std::string(text));
  std::string_view set = text.substr(0, start);
  while (set.ends_with(' ')) set.remove_suffix(1);
  return {std::string(set), gemmery::parse_problem(text.substr(start))};
}

void read_list(const std::string& path, std::vector<NamedProblem>& problems) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line.front() != '#') problems.push_back(read_problem(line));
}

gemmery::Device read_device(const std::string& text) {
  if (const auto device = gemmery::parse_device(text)) return *device;
  throw std::runtime_error("expected a device such as cuda:0, got " + text);
}

Options read_options(int count, char** words) {
  Options options;
  for (int at = 1; at < count; ++at) {
    const std::string word = words[at];
    const auto value = [&] {
      if (at + 1 >= count) throw std::runtime_error(word + " needs a value");
      return std::string(words[++at]);
    };
    if (word == "--device")
      options.device = read_device(value());
    else if (word == "--class")
      options.kernel_class = value();
    else if (word == "--within")
      options.within = std::stod(value());
    else if (word == "--keep")
      options.keep = std::stod(value());
    else if (word == "--finalists")
      options.finalists = std::stoul(value());
    else if (word == "--threads")
      options.threads = std::max<std::size_t>(std::stoul(value()), 1);
    else if (word == "--seconds")
      options.seconds = std::stod(value());
    else if (word == "--csv")
      options.csv = value();
    else if (word == "--list")
      read_list(value(), options.problems);
    else if (word.starts_with("--"))
      throw std::runtime_error("unknown option " + word);
    else
      options.problems.push_back(read_problem(word));
  }
  if (options.problems.empty()) throw std::runtime_error("name a problem, or a file by --list");
  return options;
}

// A progress line that is overwritten, on terminals.
class Progress {
 public:
  explicit Progress(std::string_view title) : title_(title) {}
  ~Progress() {
    if (is_shown_) std::fputs("\r\033[K", stderr);
  }
  void show(std::size_t done, std::size_t all, std::string_view what) const {
    constexpr std::size_t columns = 24;
    if (!is_shown_) return;
    const std::size_t filled = all == 0 ? columns : columns * done / all;
    fmt::print(stderr, "\r\033[K{} [{:=<{}}{:{}}] {}/{}  {}", title_, "", filled, "",
               columns - filled, done, all, what.substr(0, 48));
  }

 private:
  std::string_view title_;
  bool is_shown_ = ::isatty(STDERR_FILENO) == 1;
};

// --- kernels ------------------------------------------------------------------------------------

// Compiles each kernel once, many at a time; remembers those that fail.
class Compiled {
 public:
  Compiled(const std::vector<Kernel>& kernels, const gemmery::DeviceInfo& device,
           std::size_t threads) {
    const Progress progress("compiling");
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;
    std::vector<std::jthread> workers;
    for (std::size_t worker = 0; worker < std::min(threads, kernels.size()); ++worker) {
      workers.emplace_back([&] {
        for (std::size_t at = next++; at < kernels.size(); at = next++) {
          const std::string failure = compile(kernels[at], device);
          const std::lock_guard lock(mutex);
          if (!failure.empty() && ++failures_ <= shown_failures)
            fmt::print(stderr, "{}: {}\n", kernels[at].name(), failure);
          is_usable_[kernels[at].name()] = failure.empty();
          progress.show(is_usable_.size(), kernels.size(), kernels[at].name());
        }
      });
    }
  }

  bool is_usable(const Kernel& kernel) const {
    const auto found = is_usable_.find(kernel.name());
    return found != is_usable_.end() && found->second;
  }
  std::size_t failures() const { return failures_; }

 private:
  static constexpr std::size_t shown_failures = 3;

  static std::string compile(const Kernel& kernel, const gemmery::DeviceInfo& device) {
    try {
      kernel.compile(kernel.family().target_for(kernel, device));
      return {};
    } catch (const gemmery::Error& error) {
      return error.what();
    }
  }

  std::unordered_map<std::string, bool> is_usable_;
  std::size_t failures_ = 0;
};

std::vector<RankedKernel> list_kernels(const Options& options, const ProblemLine& line) {
  std::vector<RankedKernel> kernels =
      gemmery::get_kernels(line.problem, gemmery::device_info(options.device));
  std::erase_if(kernels, [&](const RankedKernel& kernel) {
    return kernel.family().name() != options.kernel_class;
  });
  // Best first, so all others are too slow as well.
  if (options.within > 0 && !kernels.empty()) {
    const double limit_us = options.within * kernels.front().predicted_us;
    std::erase_if(kernels,
                  [&](const RankedKernel& kernel) { return kernel.predicted_us > limit_us; });
  }
  return kernels;
}

std::vector<Kernel> list_distinct(const Options& options) {
  std::vector<Kernel> distinct;
  std::unordered_map<std::string, bool> seen;
  for (const NamedProblem& problem : options.problems)
    for (const RankedKernel& kernel : list_kernels(options, problem.line))
      if (seen.emplace(kernel.name(), true).second) distinct.push_back(kernel);
  return distinct;
}

// --- measuring ----------------------------------------------------------------------------------

struct Timed {
  RankedKernel kernel;
  Measurement measurement;
  int pass = 1;
};

// In a random order: neighbouring fast kernels would slow each other down by the power they draw.
std::vector<Timed> time_all(const ProblemLine& line, std::vector<RankedKernel> ranked,
                            const MeasureOptions& how) {
  static std::mt19937 source;  // the same order in each run
  std::ranges::shuffle(ranked, source);
  const std::vector<Kernel> kernels(ranked.begin(), ranked.end());
  const std::vector<Measurement> measurements = measure_interleaved(line, kernels, how);
  std::vector<Timed> timed;
  for (std::size_t at = 0; at < ranked.size(); ++at)
    timed.push_back({ranked[at], measurements[at]});
  return timed;
}

// The fastest so far, and the first ones of discovery, fast or not.
std::vector<RankedKernel> choose_finalists(const Options& options, std::vector<Timed> timed) {
  constexpr std::size_t first_of_discovery = 3;
  std::vector<RankedKernel> finalists;
  const auto add = [&](std::size_t count, auto rank) {
    std::ranges::stable_sort(timed, {}, rank);
    for (std::size_t at = 0; at < std::min(count, timed.size()); ++at) {
      const bool is_new = std::ranges::find(finalists, timed[at].kernel, [](const RankedKernel& k) {
                            return static_cast<const Kernel&>(k);
                          }) == finalists.end();
      if (is_new) finalists.push_back(timed[at].kernel);
    }
  };
  add(options.finalists, [](const Timed& row) { return row.measurement.median_us; });
  add(first_of_discovery, [](const Timed& row) { return row.kernel.predicted_us; });
  return finalists;
}

// The rows of both passes, each with its fastest first.
std::vector<Timed> measure_problem(const Options& options, const ProblemLine& line,
                                   const std::vector<RankedKernel>& kernels) {
  const auto is_faster = [](const Timed& row) { return row.measurement.median_us; };
  MeasureOptions how{.device = options.device, .samples = 3, .sample_ms = 0.2, .warmup_ms = 0};
  std::vector<Timed> timed = time_all(line, kernels, how);
  std::ranges::stable_sort(timed, {}, is_faster);
  how.samples = 7;
  how.sample_ms = 1.5;
  std::vector<Timed> finals = time_all(line, choose_finalists(options, timed), how);
  std::ranges::stable_sort(finals, {}, is_faster);
  if (options.keep > 0) {
    const double limit_us = options.keep * timed.front().measurement.median_us;
    std::erase_if(timed, [&](const Timed& row) { return row.measurement.median_us > limit_us; });
  }
  for (Timed& row : finals) {
    row.pass = 2;
    timed.push_back(row);
  }
  return timed;
}

void write_rows(std::ostream& csv, const NamedProblem& problem, const std::vector<Timed>& timed,
                unsigned clock_mhz) {
  for (const Timed& row : timed) {
    const Measurement& m = row.measurement;
    csv << fmt::format("{},{},{},{},{:.3f},{:.3f},{:.3f},{},{}\n", problem.set,
                       to_string(problem.line), row.kernel.name(), row.pass, m.median_us,
                       m.quartile_low_us, m.quartile_high_us, m.samples, clock_mhz);
  }
  csv.flush();
}

int run(const Options& options) {
  const auto start = Clock::now();
  const auto elapsed_s = [&] {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const gemmery::DeviceInfo& device = gemmery::device_info(options.device);
  const Compiled compiled(list_distinct(options), device, options.threads);
  fmt::print(stderr, "compiled after {:.1f} s\n", elapsed_s());
  std::ofstream csv(options.csv);
  if (!csv) throw std::runtime_error("cannot write " + options.csv);
  csv << fmt::format("# {}, {} multiprocessors\n", device.name, device.multiprocessors)
      << "set,problem,kernel,pass,median_us,quartile_low_us,quartile_high_us,samples,sm_clock_"
         "mhz\n";
  std::size_t left_out = 0;
  const Progress progress("measuring");
  for (std::size_t at = 0; at < options.problems.size(); ++at) {
    const NamedProblem& problem = options.problems[at];
    progress.show(at, options.problems.size(), to_string(problem.line));
    std::vector<RankedKernel> kernels = list_kernels(options, problem.line);
    std::erase_if(kernels, [&](const Kernel& kernel) { return !compiled.is_usable(kernel); });
    if (kernels.empty() || (options.seconds > 0 && elapsed_s() > options.seconds)) {
      if (++left_out <= 3)
        fmt::print(stderr, "left out, no {}: {}\n", kernels.empty() ? "kernel" : "time",
                   to_string(problem.line));
      continue;
    }
    const std::vector<Timed> timed = measure_problem(options, problem.line, kernels);
    write_rows(csv, problem, timed, read_board(options.device.index).sm_clock_mhz);
  }
  fmt::print(stderr, "{} problems measured, {} left out, {} kernels do not compile, {:.1f} s\n",
             options.problems.size() - left_out, left_out, compiled.failures(), elapsed_s());
  return left_out + compiled.failures() == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(read_options(count, words));
  } catch (const std::exception& error) {
    fmt::print(stderr, "calibrate: {}\n", error.what());
    return 2;
  }
}
