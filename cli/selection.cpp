// SPDX-License-Identifier: Apache-2.0
// Calls discovery; throws an error with the reasons if no kernel fits.
#include "cli/selection.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gemmery/error.hpp>

#include "cli/output.hpp"

namespace gemmery::cli {
namespace {

std::string reason_text(const Reason& reason) {
  const std::string subject =
      reason.design_class.empty() ? reason.family : reason.family + " " + reason.design_class;
  if (reason.failed.empty())
    return fmt::format(
        "{}/{}: {}", reason.provider, subject,
        reason.fitting == 1 ? "1 kernel fits" : fmt::format("{} kernels fit", reason.fitting));
  return fmt::format("{}/{}: {}", reason.provider, subject, reason.failed);
}

std::vector<Kernel> named_kernels(const Options& options, const GemmProblem& problem,
                                  const ChosenDevice& device) {
  std::vector<Kernel> kernels;
  for (const std::string& name : options.kernels) {
    const Kernel kernel = kernel_of_name(name);
    const Status status = kernel.supports(problem, device.info);
    if (!status) {
      throw Error({.kind = ErrorKind::unsupported,
                   .operand = "kernel " + name,
                   .got = status.error(),
                   .hint = "gemmery list PROBLEM names those that fit"});
    }
    kernels.push_back(kernel);
  }
  return kernels;
}

// Tests whether metadata have a value in a design field: "schedule=persistent".
class DesignRule {
 public:
  explicit DesignRule(const std::string& text)
      : field_(text.substr(0, text.find('='))),
        value_(text.substr(std::min(field_.size() + 1, text.size()))) {
    if (field_.empty() || value_.empty())
      throw Error({.kind = ErrorKind::invalid_argument,
                   .operand = "--design",
                   .expected = "FIELD=VALUE",
                   .got = "'" + text + "'",
                   .hint = "gemmery list --kernel NAME prints a kernel's fields"});
  }
  bool holds(const Metadata& metadata) const { return metadata.design_value(field_) == value_; }
  const std::string& field() const { return field_; }

 private:
  std::string field_;
  std::string value_;
};

// What the designs of these kernels have in a rule's field, or the fields that they have.
std::string design_hint(const DesignRule& rule, const std::vector<RankedKernel>& kernels) {
  std::set<std::string> values, fields;
  for (const RankedKernel& kernel : kernels) {
    for (const DesignField& field : kernel.metadata().design) {
      fields.insert(field.name);
      if (field.name == rule.field()) values.insert(field.value);
    }
  }
  if (!values.empty())
    return fmt::format("{} of those that fit: {}", rule.field(), fmt::join(values, ", "));
  return fmt::format("fields of those that fit: {}", fmt::join(fields, ", "));
}

// Without --design kernels fit; with it none.
std::optional<Error> no_design_fits(const Options& options, const GemmProblem& problem,
                                    const ChosenDevice& device) {
  if (options.designs.empty()) return std::nullopt;
  Options others = options;
  others.designs.clear();
  const std::vector<RankedKernel> kernels = get_kernels(problem, device.info, filter_of(others));
  if (kernels.empty()) return std::nullopt;
  std::string hint;
  for (const std::string& design : options.designs) {
    const DesignRule rule(design);
    const bool occurs = std::ranges::any_of(
        kernels, [&](const RankedKernel& kernel) { return rule.holds(kernel.metadata()); });
    if (!occurs) hint += (hint.empty() ? "" : "; ") + design_hint(rule, kernels);
  }
  return Error(
      {.kind = ErrorKind::unsupported,
       .operand = to_string(problem),
       .expected = fmt::format("a kernel of {}", fmt::join(options.designs, " and ")),
       .got = fmt::format("none among the {} that fit on {}", kernels.size(), device.label),
       .hint = hint.empty() ? "each of these occurs, but not together" : hint});
}

Error none_fits(const Options& options, const GemmProblem& problem, const ChosenDevice& device) {
  if (std::optional<Error> error = no_design_fits(options, problem, device)) return *error;
  std::string narrowing = options.providers.empty() ? "" : " of that provider";
  if (!options.target.empty()) narrowing += " with code for " + options.target;
  for (const std::string& design : options.designs) narrowing += " of " + design;
  return Error(
      {.kind = ErrorKind::unsupported,
       .operand = to_string(problem),
       .expected = "a kernel" + narrowing + " that fits",
       .got = "none on " + device.label,
       .hint = "the reasons follow",
       .cause = "\n" + reasons_text(explain(problem, device.info,
                                            filter_of(options)))});  // a list: told below the line
}

std::function<bool(const Metadata&)> metadata_filter_of(const Options& options) {
  if (options.designs.empty()) return {};
  const std::vector<DesignRule> rules(options.designs.begin(), options.designs.end());
  return [rules](const Metadata& metadata) {
    return std::ranges::all_of(rules, [&](const DesignRule& rule) { return rule.holds(metadata); });
  };
}

}  // namespace

Filter filter_of(const Options& options) {
  Filter filter;
  if (!options.target.empty()) filter.target = parse_target(options.target);
  filter.providers = options.providers;
  filter.metadata = metadata_filter_of(options);
  return filter;
}

Kernel kernel_of_name(const std::string& name) {
  if (const std::optional<Kernel> kernel = find_kernel(name)) return *kernel;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "--kernel",
               .expected = "the name of a kernel",
               .got = "'" + name + "'",
               .hint = "gemmery list prints all names"});
}

std::vector<Kernel> select_kernels(const Options& options, const GemmProblem& problem,
                                   const ChosenDevice& device, int most) {
  if (!options.kernels.empty()) return named_kernels(options, problem, device);
  const std::vector<RankedKernel> ranked = get_kernels(problem, device.info, filter_of(options));
  if (ranked.empty()) throw none_fits(options, problem, device);
  const std::size_t count =
      most == 0 ? ranked.size() : std::min(ranked.size(), static_cast<std::size_t>(most));
  return {ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count)};
}

void tell_cliff(const Options& options, const GemmProblem& problem, const ChosenDevice& device) {
  if (!options.kernels.empty() || !options.providers.empty() || !options.target.empty() ||
      !options.designs.empty())
    return;
  if (const auto cliff = find_cliff(problem, device.info))
    tell_note(fmt::format("note: {} is {}", to_string(problem), to_string(*cliff)));
}

std::string reasons_text(const Explanation& explanation) {
  std::string text;
  for (const Reason& reason : explanation.reasons)
    text += (text.empty() ? "  " : "\n  ") + reason_text(reason);
  return text;
}

}  // namespace gemmery::cli
