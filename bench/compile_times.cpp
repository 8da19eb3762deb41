// SPDX-License-Identifier: Apache-2.0
// The compile time of sm90 kernels without a cache: the first one of a process,
// 128x256x64 in all layouts of both 16-bit types, and a random sample of everything that discovery
// lists. No cache is read or written, and no device is needed. To measure on two cores of an idle
// machine: taskset -c 0,1 compile_times. Usage: compile_times [DRAWN] [JOBS] [SEED [FAMILY NAME]],
// with JOBS compilations at a time. With FAMILY (sm90 or sm80) and NAME only kernels of the family
// that have NAME in their names are drawn; with ^WORD|WORD only those that have none of the words.
#include <gemmery/gemmery.hpp>

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <random>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gemmery {
namespace {

constexpr Target hopper{90, 'a'};
constexpr Target ampere{80};

// Processor time of the whole process, all its threads.
double cpu_ms() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

// What is drawn.
struct Sample {
  std::string_view family = "sm90";
  std::string_view name;

  Target target() const { return family == "sm90" ? hopper : ampere; }
  bool has(const Kernel& kernel) const {
    return kernel.family().name() == family &&
           (name.starts_with('^') ? has_none(kernel.name(), name.substr(1))
                                  : kernel.name().find(name) != std::string::npos);
  }

 private:
  static bool has_none(std::string_view text, std::string_view words) {
    return std::ranges::none_of(words | std::views::split('|'), [&](const auto& word) {
      return text.find(std::string_view(word.begin(), word.end())) != std::string_view::npos;
    });
  }
};

std::vector<Kernel> list_kernels(const Sample& sample) {
  std::vector<Kernel> kernels;
  for_each_kernel(
      [&](const Kernel& kernel) {
        if (sample.has(kernel)) kernels.push_back(kernel);
      },
      {.metadata = {}, .target = sample.target(), .providers = {"templates"}});
  return kernels;
}

// True for 128x256x64 by two warpgroups, with results in the type of the operands.
bool is_largest_tile(const Kernel& kernel) {
  const OperandRules& rules = kernel.operands();
  return !rules.has_c && rules.out.dtype == rules.a.dtype && rules.out.layout == LayoutRule::row &&
         rules.accumulator == DType::float32 &&
         kernel.name().find("_128x256x64_1x1_coop_") != std::string::npos;
}

std::vector<Kernel> draw(const std::vector<Kernel>& kernels, std::size_t count,
                         std::uint64_t seed) {
  std::vector<Kernel> drawn;
  std::mt19937_64 random(seed);
  std::ranges::sample(kernels, std::back_inserter(drawn), static_cast<std::ptrdiff_t>(count),
                      random);
  std::ranges::shuffle(drawn, random);
  return drawn;
}

// A quantile of sorted times.
double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

struct Times {
  std::vector<double> elapsed;
  std::vector<double> processor;  // of each kernel, or an equal share of all
  double longest = 0;
  std::string slowest;  // the kernel that took the longest
};

// Compiles kernels `jobs` at a time and measures them.
void compile(std::span<const Kernel> kernels, const Target& target, int jobs, Times& times) {
  const double begin = cpu_ms();
  const std::vector<CompileResult> results =
      compile_all({kernels.begin(), kernels.end()}, target, {.jobs = jobs});
  for (std::size_t at = 0; at < results.size(); ++at) {
    if (results[at].error) throw Error(*results[at].error);
    const double elapsed = results[at].artifact->compile_ms();
    times.elapsed.push_back(elapsed);
    if (elapsed <= times.longest) continue;
    times.longest = elapsed;
    times.slowest = kernels[at].name();
  }
  const auto count = static_cast<double>(kernels.size());
  times.processor.insert(times.processor.end(), kernels.size(), (cpu_ms() - begin) / count);
}

void report(const std::string& what, const std::vector<Kernel>& kernels, const Sample& sample,
            int jobs) {
  if (kernels.empty()) return;
  const std::span<const Kernel> all(kernels);
  Times times;
  if (jobs > 1)
    compile(all, sample.target(), jobs, times);
  else
    for (std::size_t at = 0; at < all.size(); ++at)
      compile(all.subspan(at, 1), sample.target(), jobs, times);
  std::ranges::sort(times.elapsed);
  std::ranges::sort(times.processor);
  const auto quartiles = [](const std::vector<double>& sorted) {
    return fmt::format("{:5.0f} ms ({:.0f} to {:.0f}; quartiles {:.0f}, {:.0f})",
                       quantile(sorted, 0.5), sorted.front(), sorted.back(), quantile(sorted, 0.25),
                       quantile(sorted, 0.75));
  };
  fmt::print("{:<36} median of {}: {}; of processor time {}; the slowest is {}\n", what,
             kernels.size(), quartiles(times.elapsed), quartiles(times.processor), times.slowest);
  fmt::print(
      "{{\"bench\": \"compile_times\", \"of\": \"{}\", \"ms\": {:.1f}, \"processor_ms\": "
      "{:.1f}, \"count\": {}, \"jobs\": {}}}\n",
      what, quantile(times.elapsed, 0.5), quantile(times.processor, 0.5), kernels.size(), jobs);
}

}  // namespace
}  // namespace gemmery

int main(int count, char** words) {
  setenv("GEMMERY_CACHE_MAX_BYTES", "0", 1);
  const std::size_t drawn = count > 1 ? std::strtoul(words[1], nullptr, 10) : 40;
  const int jobs = count > 2 ? std::atoi(words[2]) : 1;
  const std::uint64_t seed = count > 3 ? std::strtoull(words[3], nullptr, 10) : 90;
  fmt::print("{} at a time, seed {}\n", jobs, seed);
  gemmery::Sample sample;
  if (count > 5) {
    sample.family = words[4];
    sample.name = words[5];
  }
  const std::vector<gemmery::Kernel> all = gemmery::list_kernels(sample);
  if (count <= 5) {
    std::vector<gemmery::Kernel> largest;
    std::ranges::copy_if(all, std::back_inserter(largest), gemmery::is_largest_tile);
    gemmery::report("the first of the process", {largest.front()}, sample, 1);
    largest.erase(largest.begin());
    gemmery::report("128x256x64, other layouts and types", largest, sample, jobs);
  }
  gemmery::report("drawn from all designs", gemmery::draw(all, drawn, seed), sample, jobs);
  return 0;
}
