// SPDX-License-Identifier: Apache-2.0
// Reads --device and --target.
#include "cli/device_choice.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gemmery/discovery.hpp>
#include <gemmery/error.hpp>
#include <gemmery/target.hpp>

#include "cli/output.hpp"
#include "cli/suggestion.hpp"

namespace gemmery::cli {
namespace {

ChosenDevice present(Device device) { return {device, device_info(device), to_string(device)}; }

ChosenDevice by_facts(std::string_view table_name, const DeviceInfo& info) {
  return {std::nullopt, info, std::string(table_name)};
}

bool is_index(std::string_view word) {
  return !word.empty() && word.size() <= 4 &&
         std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

// A device's name, or a GPU's index alone.
std::optional<Device> read_device(const std::string& word) {
  return parse_device(is_index(word) ? "cuda:" + word : word);
}

ChosenDevice by_target(Target target) {
  return by_facts(to_string(target), typical_device_info(target));
}

// sm_86, sm_90a and the like; nothing for other words, also for "cpu", which is a device.
std::optional<Target> read_target(const std::string& word) {
  if (!word.starts_with("sm_")) return std::nullopt;
  return parse_target(word);
}

// Whether the word is a target without its underscore: sm90, sm90a.
bool is_target_run_together(const std::string& word) {
  if (!word.starts_with("sm") || word.starts_with("sm_")) return false;
  try {
    return parse_target("sm_" + word.substr(2)) != Target{};
  } catch (const Error&) {
    return false;
  }
}

// What was meant, and the names that are known.
std::string device_hint(const std::string& word) {
  if (is_target_run_together(word)) return did_you_mean("sm_" + word.substr(2));
  try {
    device_info(word);
  } catch (const Error& error) {
    return error.hint();
  }
  return {};
}

ChosenDevice by_name(const std::string& word) {
  if (const std::optional<Device> device = read_device(word)) return present(*device);
  if (const std::optional<DeviceInfo> info = find_device_info(word)) return by_facts(word, *info);
  if (const std::optional<Target> target = read_target(word)) return by_target(*target);
  throw Error(
      {.kind = ErrorKind::invalid_argument,
       .operand = "--device",
       .expected =
           "cpu, the index of a GPU, a known device, a target such as sm_86, or the name of a "
           "known device behind \"emulated:\"",
       .got = "'" + word + "'",
       .hint = device_hint(word)});
}

std::optional<Device> first_gpu() {
  for (const Device device : devices()) {
    if (device.type == DeviceType::cuda) return device;
  }
  return std::nullopt;
}

bool has_target(const ChosenDevice& choice, Target target) {
  return choice.info.target.architecture == target.architecture;
}

std::optional<Target> asked_target(const Options& options) {
  return options.target.empty() ? environment_target() : parse_target(options.target);
}

ChosenDevice by_default(const Options& options, bool needs_presence) {
  const std::optional<Device> gpu = first_gpu();
  ChosenDevice choice = present(gpu.value_or(Device::cpu()));
  const std::optional<Target> target = asked_target(options);
  if (!target) return choice;
  if (target->is_cpu()) return present(Device::cpu());
  if (needs_presence || has_target(choice, *target)) return choice;
  return by_target(*target);
}

void tell_choice(const ChosenDevice& choice) {
  const char* const note = choice.device ? (choice.device->is_cpu() ? " (no GPU in use)" : "")
                                         : ", by facts from a table";
  tell_note(fmt::format("device: {}, {}{}", choice.label, choice.info.name, note));
}

ChosenDevice choose(const Options& options, bool needs_presence) {
  if (!options.device.empty()) return by_name(options.device);
  ChosenDevice choice = by_default(options, needs_presence);
  tell_choice(choice);
  return choice;
}

}  // namespace

ChosenDevice choose_device(const Options& options) { return choose(options, false); }

ChosenDevice choose_present_device(const Options& options) {
  ChosenDevice choice = choose(options, true);
  if (choice.device) return choice;
  throw Error(
      {.kind = ErrorKind::unavailable,
       .operand = "--device",
       .expected = "a device of this machine (cpu, 0, 1, ...)",
       .got = "the facts of " + choice.label,
       .hint = "list, explain, compile and inspect accept a device that is not here; emulated:" +
               choice.label + " runs its kernels on the CPU, slowly and checked"});
}

ChosenDevice choose_gpu(const Options& options) {
  ChosenDevice device = choose_device(options);
  if (!device.info.target.is_cpu()) return device;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "--target",
               .expected = "the target of a GPU",
               .got = "cpu, whose kernels are part of the library",
               .hint = "for example: --target sm_90a"});
}

}  // namespace gemmery::cli
