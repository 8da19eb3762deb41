// SPDX-License-Identifier: Apache-2.0
#include "api/stored_choices.hpp"

#include <gemmery/discovery.hpp>
#include <gemmery/error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include <fmt/format.h>

#include "api/tuning_conditions.hpp"
#include "jit/cache_settings.hpp"
#include "platform/environment.hpp"
#include "platform/log.hpp"

namespace gemmery::api {
namespace {

constexpr const char* file_variable = "GEMMERY_TUNING_FILE";

struct Settings {
  std::optional<tuning::FilePlace> place;
  std::string why_none;
  bool is_used;
};

tuning::FilePlace place_at(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return {.folder = {.path = slash == 0 ? "/" : path.substr(0, slash)},
          .name = path.substr(slash + 1)};
}

// Beside the cache, if there is one.
void choose_default_place(Settings& settings) {
  jit::CacheSettings cache = jit::read_cache_settings();
  if (!cache.own) {
    settings.why_none = cache.why_none;
  } else if (cache.most_bytes == 0) {
    settings.why_none = "GEMMERY_CACHE_MAX_BYTES is 0";
  } else {
    settings.place = {.folder = *std::move(cache.own), .name = "tuning.toml"};
  }
}

Settings read_settings() {
  Settings settings{.place = {},
                    .why_none = {},
                    .is_used = platform::read_environment_flag("GEMMERY_TUNING", true)};
  if (const auto path = platform::read_environment_path(file_variable)) {
    settings.place = place_at(*path);
    if (!settings.place->name.empty()) return settings;
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = file_variable,
                 .expected = "the path of a file",
                 .got = "\"" + *path + "\""});
  }
  choose_default_place(settings);
  return settings;
}

const Settings& settings() {
  static const auto* const read = new Settings(read_settings());
  return *read;
}

// --- the file as it was read last ---------------------------------------------------------------

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds look_every{1};

class Reader {
 public:
  // What the file had when it was looked at last; nullptr if there is nothing in it.
  std::shared_ptr<const tuning::Choices> choices() {
    const auto now = Clock::now().time_since_epoch().count();
    if (now >= next_look_.load(std::memory_order_relaxed)) look(now);
    if (is_empty_.load(std::memory_order_acquire)) return nullptr;
    const std::shared_lock lock(mutex_);
    return choices_;
  }

  void look_soon() noexcept { next_look_ = 0; }

 private:
  // One thread looks; others go on with what is known.
  void look(Clock::rep now) {
    std::unique_lock turn(looking_, std::defer_lock);
    if (!has_looked_.load(std::memory_order_acquire)) {
      turn.lock();
    } else if (!turn.try_lock()) {
      return;
    }
    next_look_ = now + std::chrono::duration_cast<Clock::duration>(look_every).count();
    const tuning::TuningFile file(*settings().place);
    const tuning::TuningFile::Stamp stamp = file.stamp();
    if (stamp != stamp_) take(file.read());
    stamp_ = stamp;
    has_looked_.store(true, std::memory_order_release);
  }

  void take(tuning::TuningFile::Reading reading) {
    if (!reading.refusal.empty()) warn("is not used: " + reading.refusal);
    if (reading.content.faulty > 0)
      warn(fmt::format("has {} tables that were changed, or not written completely",
                       reading.content.faulty));
    auto read = std::make_shared<const tuning::Choices>(std::move(reading.content));
    const bool is_empty = read->is_empty();
    {
      const std::scoped_lock lock(mutex_);
      choices_.swap(read);
    }
    is_empty_.store(is_empty, std::memory_order_release);
  }

  static void warn(const std::string& fault) {
    platform::log(LogLevel::warning, "the file of tuned kernels " + fault);
  }

  std::atomic<Clock::rep> next_look_{0};
  std::atomic<bool> has_looked_{false};
  std::atomic<bool> is_empty_{true};
  std::mutex looking_;
  tuning::TuningFile::Stamp stamp_;
  std::shared_mutex mutex_;
  std::shared_ptr<const tuning::Choices> choices_;
};

// Leaked on purpose: discovery may be called while static objects are being destroyed.
Reader& reader() {
  static auto* const the_one = new Reader;
  return *the_one;
}

std::shared_ptr<const tuning::Choices> current_choices() {
  const Settings& known = settings();
  return known.is_used && known.place ? reader().choices() : nullptr;
}

// --- a choice in a list -------------------------------------------------------------------------

std::vector<RankedKernel>::iterator find_chosen(const tuning::Choice& choice,
                                                std::vector<RankedKernel>& kernels) {
  const auto is = [](const std::optional<Kernel>& chosen) {
    return [&chosen](const Kernel& kernel) { return chosen && kernel == *chosen; };
  };
  const auto known = choice.kernel();
  const auto found = std::ranges::find_if(kernels, is(known));
  if (found != kernels.end()) return found;
  const auto named = find_kernel(choice.entry().kernel);  // not known yet, or registered anew
  if (!named || named == known) return kernels.end();
  choice.set_kernel(*named);
  return std::ranges::find_if(kernels, is(named));
}

std::string difference(const TuningConditions& then, const TuningConditions& now) {
  std::string text;
  const auto compare = [&](const char* what, const std::string& was, const std::string& is) {
    if (was == is) return;
    text += fmt::format("{}{} was {}, is {}", text.empty() ? "" : "; ", what, was, is);
  };
  compare("device", then.device, now.device);
  compare("driver", then.driver, now.driver);
  compare("compiler", then.compiler, now.compiler);
  compare("gemmery", then.gemmery, now.gemmery);
  return text;
}

std::string describe(const TuningEntry& entry, const TuningConditions& now,
                     const std::vector<RankedKernel>& kernels) {
  const std::string result =
      fmt::format("{}, {:.4g} us, stored at {}", entry.kernel, entry.median_us, entry.tuned_at);
  if (entry.conditions != now)
    return fmt::format("not used: {} ({})", result, difference(entry.conditions, now));
  const bool is_first = !kernels.empty() && kernels.front().name() == entry.kernel;
  return is_first ? "first: " + result
                  : fmt::format("not used: {} (no kernel of that name is in the list)", result);
}

}  // namespace

tuning::TuningFile tuning_file() {
  const Settings& known = settings();
  if (known.place) return tuning::TuningFile(*known.place);
  throw Error({.kind = ErrorKind::unavailable,
               .operand = "the file of tuned kernels",
               .expected = "a place for it",
               .got = known.why_none,
               .hint = std::string(file_variable) + " can name one"});
}

ChoicePointer find_choice(const Query& query) {
  const auto choices = current_choices();
  if (choices == nullptr) return nullptr;
  const tuning::Choices::List& list = choices->of(query.problem);
  if (list.empty()) return nullptr;
  const TuningConditions& now = conditions_of(query.device);
  const auto found = std::ranges::find_if(
      list, [&](const ChoicePointer& choice) { return choice->entry().conditions == now; });
  return found == list.end() ? nullptr : *found;
}

void forget_choices_read() noexcept { reader().look_soon(); }

void rank_first(const tuning::Choice& choice, std::vector<RankedKernel>& kernels) {
  const auto chosen = find_chosen(choice, kernels);
  if (chosen == kernels.end()) return;
  chosen->predicted_us = choice.entry().median_us;
  chosen->is_measured = true;
  std::rotate(kernels.begin(), chosen, chosen + 1);
}

std::string describe_choices(const Query& query, const Filter& filter) {
  const auto choices = current_choices();
  if (choices == nullptr || choices->of(query.problem).empty()) return {};
  const KernelList kernels = get_shared_kernels(query.problem, query.device, filter);
  const TuningConditions& now = conditions_of(query.device);
  std::string text;
  for (const ChoicePointer& choice : choices->of(query.problem))
    text += (text.empty() ? "" : "; ") + describe(choice->entry(), now, *kernels);
  return text;
}

}  // namespace gemmery::api
