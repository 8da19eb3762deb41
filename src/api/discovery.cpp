// SPDX-License-Identifier: Apache-2.0
// The public functions of discovery: they combine providers, devices, filters and history.
#include <gemmery/discovery.hpp>
#include <gemmery/error.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/kept_answers.hpp"
#include "api/stored_choices.hpp"
#include "driver/driver.hpp"
#include "epilogue/expression_parser.hpp"
#include "kernel/rank.hpp"
#include "kernel/registry.hpp"
#include "kernel/rules.hpp"
#include "operation/convolution.hpp"
#include "operation/scaled_sums.hpp"
#include "platform/environment.hpp"
#include "platform/host_info.hpp"
#include "platform/log.hpp"
#include "providers/list.hpp"
#include "tune/measured_history.hpp"

namespace gemmery {
namespace {

using FamilySpan = std::span<const Family* const>;

// --- what the environment asks for --------------------------------------------------------------

// The environment's settings, read once. A variable that cannot be parsed makes every call throw.
struct EnvironmentWishes {
  std::optional<Target> target;
  bool warns_of_cliffs;

  EnvironmentWishes()
      : target(read_target()),
        warns_of_cliffs(platform::read_environment_flag("GEMMERY_WARN_CLIFFS", true)) {
    platform::check_log_environment();
    if (platform::read_environment_flag("GEMMERY_DETERMINISTIC")) kernel::require_determinism();
  }

 private:
  static std::optional<Target> read_target() {
    constexpr const char* variable = "GEMMERY_TARGET_SM";
    const std::optional<std::string> text = platform::read_environment(variable);
    if (!text) return std::nullopt;
    try {
      const Target target = parse_target(*text);
      if (!target.is_cpu()) return target;
    } catch (const Error&) {  // reported below, with the variable's name
    }
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = variable,
                 .expected = "the target of a GPU: sm_80, sm_90a, sm_100f",
                 .got = "\"" + *text + "\"",
                 .hint = "unset the environment variable or correct it"});
  }
};

const EnvironmentWishes& environment_wishes() {
  static const EnvironmentWishes wishes;
  return wishes;
}

// The families before users register any; `all_families` must have been called.
const Family* const* built_in_list() {
  static const Family* const* const list = [] {
    providers::register_built_in();
    return kernel::families().data();
  }();
  return list;
}

FamilySpan all_families() {
  environment_wishes();
  built_in_list();
  return kernel::families();
}

// Families of users may answer equal queries differently each time.
bool has_built_in_families_only() {
  return all_families().data() == built_in_list();  // a list that changes is a new list
}

// --- history ------------------------------------------------------------------------------------

std::shared_ptr<tuning::MeasuredHistory> own_history() {
  static auto* const history = new std::shared_ptr(std::make_shared<tuning::MeasuredHistory>());
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
                 .got = "\"" + asked + "\"",
                 .hint = epilogue::suggest(asked, known)});
  }
}

bool is_wanted(const Family& family, const Filter& filter) {
  return filter.providers.empty() ||
         std::ranges::find(filter.providers, family.provider()) != filter.providers.end();
}

// The families that pass a filter; `kept` holds them if some do not.
FamilySpan wanted_families(const Filter& filter, std::vector<const Family*>& kept) {
  const FamilySpan all = all_families();
  if (filter.providers.empty()) return all;
  check_providers(filter);
  std::ranges::copy_if(all, std::back_inserter(kept),
                       [&](const Family* family) { return is_wanted(*family, filter); });
  return kept;
}

bool has_code_for(const Kernel& kernel, Target asked) {
  return std::ranges::any_of(kernel.family().targets(kernel),
                             [&](Target target) { return kernel::serves_target(target, asked); });
}

bool passes(const Kernel& kernel, const Filter& filter) {
  if (filter.target && !has_code_for(kernel, *filter.target)) return false;
  return !filter.metadata || filter.metadata(kernel.metadata());
}

// Nothing is compiled for the CPU, so the environment's target does not concern its kernels.
bool passes_environment(const Kernel& kernel, const Filter& filter) {
  const std::optional<Target> asked = environment_target();
  return !asked || filter.target || has_code_for(kernel, *asked) ||
         has_code_for(kernel, Target::cpu());
}

// True if the filter excludes nothing.
bool takes_all(const Filter& filter) {
  return !filter.target && !filter.metadata && !environment_target();
}

}  // namespace

// --- kernels ------------------------------------------------------------------------------------

namespace {

std::vector<RankedKernel> find_kernels(const Query& query, const Filter& filter,
                                       const History* history) {
  std::vector<const Family*> kept;
  auto kernels = kernel::rank_kernels(query, wanted_families(filter, kept), history);
  if (!takes_all(filter)) {
    std::erase_if(kernels, [&](const RankedKernel& kernel) {
      return !passes_environment(kernel, filter) || !passes(kernel, filter);
    });
  }
  return kernels;
}

// Sizes of groups in host memory change predicted times, but are not part of a problem.
bool knows_sizes(const Query& query) {
  const auto& groups = query.problem.groups;
  return query.arguments != nullptr && groups && groups->are_on_host;
}

// Availability may change on the CPU (oneDNN in a forked child), and its answer is short.
bool may_be_kept(const Query& query, const Filter& filter, const History* history) {
  return !query.device.target.is_cpu() && !knows_sizes(query) &&
         (history == nullptr || history->is_empty()) && !filter.metadata &&
         filter.providers.empty() && has_built_in_families_only();
}

// True for the first warning about a problem. Problems beyond a limit get no warning.
bool is_first_warning(const GemmProblem& problem) {
  constexpr std::size_t most_warnings = 4096;
  static auto* const mutex = new std::mutex;
  static auto* const warned = new std::unordered_set<std::size_t>;
  const std::unique_lock lock(*mutex, std::try_to_lock);  // a forked child may never get it
  return lock && warned->size() < most_warnings && warned->insert(hash_value(problem)).second;
}

// A filter asks for certain kernels, which need not be the fastest.
void warn_of_cliff(const Query& query, const Filter& filter) {
  if (query.device.target.is_cpu() || !takes_all(filter) || !filter.providers.empty() ||
      !environment_wishes().warns_of_cliffs || !platform::is_logged(LogLevel::warning) ||
      !is_first_warning(query.problem))
    return;
  if (const auto cliff = find_cliff(query.problem, query.device))
    platform::log(LogLevel::warning, fmt::format("{} on {}: {}", to_string(query.problem),
                                                 query.device.name, to_string(*cliff)));
}

KernelList answer_of(const Query& query, const Filter& filter) {
  const auto history = current_history();
  const api::ChoicePointer choice = api::find_choice(query);
  const bool is_kept = may_be_kept(query, filter, history.get());
  const api::AnswerKey key{query.problem, query.device, filter.target, choice};
  if (is_kept) {
    if (KernelList known = api::find_answer(key)) return known;
  }
  std::vector<RankedKernel> kernels = find_kernels(query, filter, history.get());
  if (choice != nullptr) api::rank_first(*choice, kernels);
  auto answer = std::make_shared<const std::vector<RankedKernel>>(std::move(kernels));
  if (is_kept) api::keep_answer(key, answer);
  warn_of_cliff(query, filter);
  return answer;
}

}  // namespace

std::vector<RankedKernel> api::rank_without_choices(const Query& query, const Filter& filter) {
  return find_kernels(query, filter, current_history().get());
}

KernelList get_shared_kernels(const GemmProblem& problem, const DeviceInfo& device,
                              const Filter& filter) {
  return answer_of({problem, device}, filter);
}

KernelList get_shared_kernels(const GemmArguments& arguments, const Filter& filter) {
  return answer_of({arguments.problem(), device_info(arguments.device()), &arguments}, filter);
}

std::vector<RankedKernel> get_kernels(const GemmProblem& problem, const DeviceInfo& device,
                                      const Filter& filter) {
  return *answer_of({problem, device}, filter);
}

std::vector<RankedKernel> get_kernels(const GemmArguments& arguments, const Filter& filter) {
  return *answer_of({arguments.problem(), device_info(arguments.device()), &arguments}, filter);
}

void for_each_kernel(const std::function<void(const Kernel&)>& visit, const Filter& filter) {
  std::vector<const Family*> kept;
  const bool is_whole = takes_all(filter) && !kernel::is_determinism_required();
  for (const Family* const family : wanted_families(filter, kept)) {
    family->enumerate([&](const Kernel& kernel) {
      const bool is_left_out =
          !is_whole && (!kernel::keeps_determinism(kernel) || !passes_environment(kernel, filter) ||
                        !passes(kernel, filter));
      if (!is_left_out) visit(kernel);
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

// The fits are in docs/performance.md, docs/performance-sm80.md and bench/results.
bool is_model_calibrated(Target target) noexcept {
  return target.is_cpu() || target.architecture == 90;
}

std::optional<Target> environment_target() { return environment_wishes().target; }

// --- explanations -------------------------------------------------------------------------------

namespace {

// A target in the filter or the environment excludes the same families from reasons as from lists.
// All kernels of a family have code for the same targets, except kernels of users, which have one
// reason each.
void apply_target(const Query& query, const Filter& filter, std::vector<Reason>& reasons) {
  const std::optional<Target> target = filter.target ? filter.target : environment_target();
  if (!target) return;
  const KernelList answer = answer_of(query, {.target = filter.target});
  for (Reason& reason : reasons) {
    if (!reason.failed.empty() || reason.fitting == 0) continue;
    const auto left = std::ranges::count_if(*answer, [&](const Kernel& kernel) {
      return kernel.family().provider() == reason.provider &&
             kernel.family().name() == reason.family;
    });
    reason.fitting = std::min(reason.fitting, static_cast<int>(left));
    if (left == 0)
      reason.failed = fmt::format("target: expected code for {}, got kernels for other targets",
                                  to_string(*target));
  }
}

Explanation explain_query(const Query& query, const Filter& filter) {
  std::vector<const Family*> kept;
  Explanation explanation{.problem = to_string(query.problem),
                          .device = query.device.name + " (" + to_string(query.device.target) + ")",
                          .reasons = kernel::collect_reasons(query, wanted_families(filter, kept))};
  apply_target(query, filter, explanation.reasons);
  if (const auto plain = operation::as_plain_gemm(query.problem))
    explanation.runs_as = to_string(*plain);
  else if (const auto scaled = operation::with_scaled_sums(query.problem))
    explanation.runs_as = to_string(*scaled);
  explanation.tuned = api::describe_choices(query, filter);
  return explanation;
}

}  // namespace

Explanation explain(const GemmProblem& problem, const DeviceInfo& device, const Filter& filter) {
  return explain_query({problem, device}, filter);
}

Explanation explain(const GemmArguments& arguments, const Filter& filter) {
  return explain_query({arguments.problem(), device_info(arguments.device()), &arguments}, filter);
}

std::string to_string(const Explanation& explanation) {
  std::string text = fmt::format("{}\non {}\n", explanation.problem, explanation.device);
  if (!explanation.runs_as.empty()) text += "a plain GEMM: " + explanation.runs_as + "\n";
  if (!explanation.tuned.empty()) text += "tuned: " + explanation.tuned + "\n";
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

namespace {

// The facts of all known devices by their names; never destroyed.
const std::map<std::string_view, DeviceInfo>& facts_by_name() {
  static const auto* const facts = [] {
    auto* const map = new std::map<std::string_view, DeviceInfo>;
    for (const std::string_view name : known_device_names())
      map->emplace(name, *find_device_info(name));
    return map;
  }();
  return *facts;
}

// A device of each architecture, by the architecture's name.
constexpr std::pair<std::string_view, std::string_view> devices_by_architecture[] = {
    {"volta", "v100"}, {"turing", "t4"},   {"ampere", "a100"},
    {"ada", "l40s"},   {"hopper", "h200"}, {"blackwell", "b200"}};

// "did you mean h200?", or nothing.
std::string device_question(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const auto& [architecture, device] : devices_by_architecture)
    if (lower == architecture) return fmt::format("did you mean {}?", device);
  std::vector<std::string> names{"cpu"};
  for (const std::string_view known : known_device_names()) names.emplace_back(known);
  return epilogue::suggest(lower, names);
}

std::string device_hint(std::string_view name) {
  const std::string question = device_question(name);
  return fmt::format("{}{}known devices: {}", question, question.empty() ? "" : " ",
                     fmt::join(known_device_names(), ", "));
}

}  // namespace

const DeviceInfo& device_info(std::string_view name) {
  if (const auto known = facts_by_name().find(name); known != facts_by_name().end())
    return known->second;
  if (const std::optional<Device> device = parse_device(name)) return device_info(*device);
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "device",
               .expected = "\"cpu\", \"cuda:0\", \"emulated:h200\", or one of the known devices",
               .got = '"' + std::string(name) + '"',
               .hint = device_hint(name)});
}

// --- providers and history ----------------------------------------------------------------------

std::vector<std::string> provider_names() {
  std::vector<std::string> names;
  for (const Family* const family : all_families()) {
    if (std::ranges::find(names, family->provider()) == names.end())
      names.emplace_back(family->provider());
  }
  // The provider of register_kernel, even if nobody has called it.
  constexpr std::string_view of_users = "user";
  if (std::ranges::find(names, of_users) == names.end()) names.emplace_back(of_users);
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
