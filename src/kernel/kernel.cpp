// SPDX-License-Identifier: Apache-2.0
// Functions of all kernels: metadata, `supports`, and delegation to the family or artifact.
#include <gemmery/error.hpp>
#include <gemmery/family.hpp>
#include <gemmery/history.hpp>
#include <gemmery/kernel.hpp>

#include <algorithm>
#include <utility>

#include "kernel/epilogue.hpp"
#include "kernel/forms.hpp"
#include "kernel/plain_gemm.hpp"
#include "kernel/rules.hpp"

namespace gemmery {
namespace {

Status check_target(const std::vector<Target>& targets, const DeviceInfo& device) {
  const auto serves = [&](Target target) { return runs_on(target, device.target); };
  if (std::ranges::any_of(targets, serves)) return Status::success();
  std::string list;
  for (const Target target : targets) list += (list.empty() ? "" : " ") + to_string(target);
  return Status::fail("target: expected one of " + list + ", got " + to_string(device.target) +
                      " (" + device.name + ")");
}

[[noreturn]] void refuse_support(const Kernel& kernel, const Status& status) {
  throw Error({.kind = ErrorKind::unsupported,
               .operand = kernel.name(),
               .expected = {},
               .got = status.error(),
               .hint = "explain(args) says which kernels fit"});
}

void require_support(const Kernel& kernel, const GemmArguments& arguments) {
  if (const Status status = kernel.supports(arguments); !status) refuse_support(kernel, status);
}

[[noreturn]] void refuse_multiprocessors(int given) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "max_multiprocessors",
               .expected = "a number of multiprocessors, or 0 for all",
               .got = std::to_string(given)});
}

}  // namespace

std::string_view name(LayoutRule rule) noexcept {
  switch (rule) {
    case LayoutRule::row:
      return "row";
    case LayoutRule::column:
      return "column";
    case LayoutRule::any:
      return "any";
  }
  return "unknown";
}

std::string_view Metadata::design_value(std::string_view field) const noexcept {
  const auto found = std::ranges::find(design, field, &DesignField::name);
  return found == design.end() ? std::string_view{} : std::string_view(found->value);
}

Family::~Family() = default;

Status Family::carries(const GemmProblem& problem) const {
  if (problem.epilogue == default_epilogue) return Status::success();
  return kernel::refuse_node(problem.epilogue, 0, "this family fuses the default program only");
}

History::~History() = default;
ArtifactState::~ArtifactState() = default;
PreparedLaunchState::~PreparedLaunchState() = default;

std::string Kernel::name() const { return family_->kernel_name(*this); }

Metadata Kernel::metadata() const {
  return {.kernel_name = name(),
          .kernel_class = std::string(family_->name()),
          .provider = std::string(family_->provider()),
          .supported_targets = family_->targets(*this),
          .operands = operands_,
          .epilogue_compute_type = gemmery::epilogue_compute_type(operands_.accumulator),
          .design = family_->design_fields(*this),
          .epilogue = std::string(text(epilogue_)),
          .deterministic = family_->is_deterministic(*this)};
}

Status Kernel::supports(const GemmProblem& given, const DeviceInfo& device) const {
  const kernel::AsFamiliesSee seen(given);
  const GemmProblem& problem = *seen;
  if (Status status = family_->availability(); !status) return status;
  if (Status status = kernel::check_determinism(*this); !status) return status;
  if (Status status = kernel::check_rules(operands_, problem); !status) return status;
  if (Status status = kernel::check_form(*family_, problem); !status) return status;
  if (Status status = kernel::check_epilogue(epilogue_, problem.epilogue); !status) return status;
  if (Status status = check_target(family_->targets(*this), device); !status) return status;
  return family_->supports(*this, {problem, device});
}

Status Kernel::supports(const GemmArguments& given) const {
  const kernel::ArgumentsAsFamiliesSee seen(given);
  const GemmArguments& arguments = *seen;
  const DeviceInfo* const device = family_->device_info(arguments.device());
  if (device == nullptr) {
    return Status::fail("device: expected operands where " + std::string(family_->name()) +
                        " kernels run, got operands on " + to_string(arguments.device()));
  }
  // The quick test first: nearly every call passes rules and family, and reasons are composed only
  // for a refusal.
  const GemmProblem& problem = arguments.problem();
  const bool fits = kernel::keeps_rules(operands_, problem) &&
                    kernel::serves_form(*family_, problem) &&
                    kernel::serves_epilogue(epilogue_, problem.epilogue) &&
                    runs_on(family_->target_for(*this, *device), device->target) &&
                    kernel::keeps_determinism(*this);
  if (!fits) {
    if (Status status = supports(problem, *device); !status) return status;
  }
  return family_->supports(*this, {problem, *device, &arguments});
}

Artifact Kernel::compile(const GemmArguments& arguments) const {
  require_support(*this, arguments);
  const DeviceInfo& device = *family_->device_info(arguments.device());
  Artifact artifact = family_->compile(*this, family_->target_for(*this, device));
  artifact.load(arguments.device());
  return artifact;
}

Artifact Kernel::compile(Target target) const {
  if (const Status status = family_->availability(); !status) refuse_support(*this, status);
  if (const Status status = kernel::check_determinism(*this); !status)
    refuse_support(*this, status);
  const auto targets = family_->targets(*this);
  const bool is_served = std::ranges::any_of(
      targets, [&](Target own) { return kernel::is_compiled_for(own, target); });
  if (!is_served) {
    std::string list;
    for (const Target own : targets) list += (list.empty() ? "" : " ") + to_string(own);
    refuse_support(*this,
                   Status::fail("target: expected one of " + list + ", got " + to_string(target)));
  }
  return family_->compile(*this, target);
}

std::size_t Kernel::get_workspace_size(const GemmArguments& given) const {
  const kernel::ArgumentsAsFamiliesSee seen(given);
  const GemmArguments& arguments = *seen;
  require_support(*this, arguments);
  return family_->workspace_bytes(*this, arguments);
}

void Kernel::run(const GemmArguments& given, const RunOptions& options) const {
  if (options.max_multiprocessors < 0) refuse_multiprocessors(options.max_multiprocessors);
  const kernel::ArgumentsAsFamiliesSee seen(given);
  const GemmArguments& arguments = *seen;
  if (!options.assume_supported) require_support(*this, arguments);
  if (options.artifact == nullptr) return family_->run(*this, arguments, options);
  if (!(options.artifact->kernel() == *this)) {
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "artifact",
                 .expected = "the compiled form of " + name(),
                 .got = "that of " + options.artifact->kernel().name()});
  }
  options.artifact->state().run(arguments, options);
}

PreparedLaunch Artifact::bind(const GemmArguments& given) const {
  const kernel::ArgumentsAsFamiliesSee seen(given);
  const GemmArguments& arguments = *seen;
  const Kernel& own = kernel();
  require_support(own, arguments);
  PreparedLaunch launch = state_->bind(arguments, own.family().workspace_bytes(own, arguments));
  if (arguments.device().is_cpu()) launch.own_stream_ = Stream::cpu();
  return launch;
}

PreparedLaunch Artifact::bind(const GemmArguments& arguments, Stream own) const {
  kernel::check_stream(own, arguments.device());
  PreparedLaunch launch = bind(arguments);
  launch.own_stream_ = own;
  return launch;
}

Stream PreparedLaunch::own_stream() const {
  if (own_stream_) return *own_stream_;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "stream",
               .expected = "a stream of the operands' device",
               .got = "none",
               .hint = "launch(stream), or give the launch its own: bind(arguments, stream)"});
}

}  // namespace gemmery
