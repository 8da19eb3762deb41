// SPDX-License-Identifier: Apache-2.0
// Discovery as users see it: built-in providers, devices, filters and history put together.
#include <gemmery/discovery.hpp>
#include <gemmery/error.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include <fmt/format.h>

#include "driver/driver.hpp"
#include "kernel/rank.hpp"
#include "kernel/registry.hpp"
#include "kernel/rules.hpp"
#include "platform/host_info.hpp"
#include "providers/list.hpp"
#include "tune/measured_history.hpp"

namespace gemmery {
namespace {

using FamilySpan = std::span<const Family* const>;

FamilySpan all_families() {
  providers::register_built_in();
  return kernel::families();
}

// --- history ------------------------------------------------------------------------------------

std::shared_ptr<tune::MeasuredHistory> own_history() {
  static auto* const history = new std::shared_ptr(std::make_shared<tune::MeasuredHistory>());
  return *history;
}

// Leaked on purpose: discovery may be called while static objects are being destroyed.
struct HistorySlot {
  std::shared_mutex mutex;
  std::shared_ptr<const History> history = own_history();
};
HistorySlot& history_slot() {
  static auto* const slot = new HistorySlot;
  return *slot;
}

std::shared_ptr<const History> current_history() {
  HistorySlot& slot = history_slot();
  const std::shared_lock lock(slot.mutex);
  return slot.history;
}

// --- filters ------------------------------------------------------------------------------------

void check_providers(const Filter& filter) {
  const auto known = provider_names();
  for (const std::string& asked : filter.providers) {
    if (std::ranges::find(known, asked) != known.end()) continue;
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "providers",
                 .expected = fmt::format("one of {}", fmt::join(known, ", ")),
                 .got = "\"" + asked + "\""});
  }
}

bool is_wanted(const Family& family, const Filter& filter) {
  return filter.providers.empty() ||
         std::ranges::find(filter.providers, family.provider()) != filter.providers.end();
}

// The families that a filter leaves; `kept` holds them where it leaves out some.
FamilySpan wanted_families(const Filter& filter, std::vector<const Family*>& kept) {
  const FamilySpan all = all_families();
  if (filter.providers.empty()) return all;
  check_providers(filter);
  std::ranges::copy_if(all, std::back_inserter(kept),
                       [&](const Family* family) { return is_wanted(*family, filter); });
  return kept;
}

bool passes(const Kernel& kernel, const Filter& filter) {
  if (filter.target) {
    const auto targets = kernel.family().targets(kernel);
    const auto serves = [&](Target target) {
      return kernel::serves_target(target, *filter.target);
    };
    if (std::ranges::none_of(targets, serves)) return false;
  }
  return !filter.metadata || filter.metadata(kernel.metadata());
}

}  // namespace

// --- kernels ------------------------------------------------------------------------------------

namespace {

std::vector<RankedKernel> find_kernels(const Query& query, const Filter& filter) {
  std::vector<const Family*> kept;
  const auto history = current_history();
  auto kernels =
      kernel::rank_kernels(query, wanted_families(filter, kept), history.get());
  if (filter.target || filter.metadata) {
    std::erase_if(kernels, [&](const RankedKernel& kernel) { return !passes(kernel, filter); });
  }
  return kernels;
}

}  // namespace

std::vector<RankedKernel> get_kernels(const GemmProblem& problem, const DeviceInfo& device,
                                      const Filter& filter) {
  return find_kernels({problem, device}, filter);
}

std::vector<RankedKernel> get_kernels(const GemmArguments& arguments, const Filter& filter) {
  return find_kernels({arguments.problem(), device_info(arguments.device()), &arguments}, filter);
}

void for_each_kernel(const std::function<void(const Kernel&)>& visit, const Filter& filter) {
  std::vector<const Family*> kept;
  const bool takes_all = !filter.target && !filter.metadata;
  for (const Family* const family : wanted_families(filter, kept)) {
    family->enumerate([&](const Kernel& kernel) {
      if (takes_all || passes(kernel, filter)) visit(kernel);
    });
  }
}

std::vector<Kernel> get_kernels(const Filter& filter) {
  std::vector<Kernel> kernels;
  for_each_kernel([&](const Kernel& kernel) { kernels.push_back(kernel); }, filter);
  return kernels;
}

std::optional<Kernel> find_kernel(std::string_view kernel_name) {
  for (const Family* const family : all_families()) {
    if (auto kernel = family->parse_name(kernel_name)) return kernel;
  }
  return std::nullopt;
}

// --- explanations -------------------------------------------------------------------------------

namespace {

Explanation explain_query(const Query& query) {
  return {.problem = to_string(query.problem),
          .device = query.device.name + " (" + to_string(query.device.target) + ")",
          .reasons = kernel::collect_reasons(query, all_families())};
}

}  // namespace

Explanation explain(const GemmProblem& problem, const DeviceInfo& device) {
  return explain_query({problem, device});
}

Explanation explain(const GemmArguments& arguments) {
  return explain_query({arguments.problem(), device_info(arguments.device()), &arguments});
}

std::string to_string(const Explanation& explanation) {
  std::string text = fmt::format("{}\non {}\n", explanation.problem, explanation.device);
  for (const Reason& reason : explanation.reasons) {
    const std::string place = reason.design_class.empty() ? "" : " " + reason.design_class;
    const std::string answer =
        reason.failed.empty() ? fmt::format("{} fit", reason.fitting) : "no: " + reason.failed;
    text += fmt::format("  {}/{}{}: {}\n", reason.provider, reason.family, place, answer);
    for (const Kernel& kernel : reason.nearest)
      text += fmt::format("      nearest: {}\n", kernel.name());
  }
  return text;
}

// --- devices ------------------------------------------------------------------------------------

std::vector<Device> devices() {
  std::vector<Device> list;
  const driver::DriverFinding finding = driver::find_driver(DeviceType::cuda);
  const int count = finding.driver == nullptr ? 0 : finding.driver->device_count();
  for (int index = 0; index < count; ++index) list.push_back(Device::cuda(index));
  return list;
}

const DeviceInfo& device_info(Device device) {
  return device.is_cpu() ? platform::host_device_info() : driver::open_device(device).info();
}

// --- providers and history ----------------------------------------------------------------------

std::vector<std::string> provider_names() {
  std::vector<std::string> names;
  for (const Family* const family : all_families()) {
    if (std::ranges::find(names, family->provider()) == names.end())
      names.emplace_back(family->provider());
  }
  return names;
}

void register_family(std::unique_ptr<Family> family) {
  if (family == nullptr) {
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "register_family",
                 .expected = "a family",
                 .got = "nullptr"});
  }
  (void)all_families();
  kernel::add_family(std::move(family));
}

void set_history(std::shared_ptr<const History> history) {
  HistorySlot& slot = history_slot();
  const std::scoped_lock lock(slot.mutex);
  slot.history = std::move(history);
}

void record_measurement(const GemmProblem& problem, const DeviceInfo& device, const Kernel& kernel,
                        double microseconds) {
  own_history()->record({problem, device}, kernel, microseconds);
}

}  // namespace gemmery
