// SPDX-License-Identifier: Apache-2.0
// Calls the user's function with checked arguments; its artifact loads only what the function
// prepares itself.
#include "providers/user/callable_family.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <utility>

#include "driver/driver.hpp"
#include "driver/stream.hpp"
#include "kernel/codeless.hpp"
#include "kernel/rules.hpp"
#include "platform/host_info.hpp"
#include "providers/user/user_fault.hpp"
#include "runtime/device_family.hpp"
#include "runtime/launch_steps.hpp"
#include "runtime/launch_workspace.hpp"
#include "runtime/run_workspace.hpp"

namespace gemmery::user {
namespace {

// Keeps scratch memory with the arguments.
class CallableLaunch final : public kernel::CodelessLaunch {
 public:
  CallableLaunch(const CallableFamily& family, const GemmArguments& arguments,
                 std::size_t workspace_bytes)
      : CodelessLaunch(arguments),
        family_(family),
        workspace_(arguments.device(), workspace_bytes) {}

  void launch(Stream stream) override {
    kernel::check_stream(stream, arguments().device());
    if (runtime::is_empty_output(arguments().problem())) return;
    workspace_.use(stream, [&] {
      family_.call({.arguments = arguments(), .stream = stream, .workspace = workspace_.lend()});
    });
  }

 private:
  const CallableFamily& family_;
  runtime::LaunchWorkspace workspace_;
};

class CallableArtifact final : public kernel::CodelessArtifact {
 public:
  CallableArtifact(const CallableFamily& family, const Kernel& kernel, Target target)
      : CodelessArtifact(kernel, target), family_(family) {}

  void load(Device device) const override { family_.prepare(device); }
  PreparedLaunch bind(const GemmArguments& arguments, std::size_t workspace_bytes) const override {
    family_.prepare(arguments.device());
    return PreparedLaunch(std::make_unique<CallableLaunch>(family_, arguments, workspace_bytes));
  }

 private:
  const CallableFamily& family_;
};

}  // namespace

CallableFamily::CallableFamily(std::unique_ptr<const DeclaredKernel> kernel)
    : DeclaredFamily(std::move(kernel)) {}

const DeviceInfo* CallableFamily::device_info(Device device) const {
  const bool is_of_cpu = declared().targets().front().is_cpu();
  if (device.is_cpu() != is_of_cpu) return nullptr;
  return is_of_cpu ? &platform::host_device_info() : &driver::open_device(device).info();
}

Target CallableFamily::target_for(const Kernel&, const DeviceInfo& device) const {
  const std::vector<Target>& targets = declared().targets();
  const Target* const best = runtime::find_closest(targets, device.target);
  return best == nullptr ? targets.front() : *best;
}

std::size_t CallableFamily::workspace_bytes(const Kernel&, const GemmArguments& arguments) const {
  if (runtime::is_empty_output(arguments.problem())) return 0;
  return declared().workspace_bytes(arguments.problem(), *device_info(arguments.device()));
}

Artifact CallableFamily::compile(const Kernel& kernel, Target target) const {
  return Artifact(std::make_shared<CallableArtifact>(*this, kernel, target));
}

void CallableFamily::run(const Kernel& kernel, const GemmArguments& arguments,
                         const RunOptions& options) const {
  kernel::check_stream(options.stream, arguments.device());
  if (runtime::is_empty_output(arguments.problem())) return;
  prepare_for(options.stream);
  const std::size_t bytes = workspace_bytes(kernel, arguments);
  const runtime::RunWorkspace workspace(kernel, options, bytes);
  call({.arguments = arguments,
        .stream = options.stream,
        .workspace = {workspace.data(), bytes},
        .max_multiprocessors = options.max_multiprocessors});
}

void CallableFamily::call(const UserCall& call) const {
  try {
    callable().run(call);
  } catch (...) {
    rethrow_caught(ErrorKind::launch, declared().kernel_name(), "the callable");
  }
}

bool CallableFamily::is_prepared(Device device) const {
  return std::ranges::find(prepared_, device) != prepared_.end();
}

void CallableFamily::prepare(Device device) const {
  if (!callable().prepare) return;
  const std::scoped_lock lock(preparing_);
  if (is_prepared(device)) return;
  try {
    callable().prepare(device);
  } catch (...) {
    rethrow_caught(ErrorKind::compile, declared().kernel_name(), "the function `prepare`");
  }
  prepared_.push_back(device);
}

void CallableFamily::prepare_for(Stream stream) const {
  if (!callable().prepare) return;
  const Device device = stream.device();
  {
    const std::scoped_lock lock(preparing_);
    if (is_prepared(device)) return;
  }
  if (!device.is_cpu() && driver::is_capturing(driver::open_device(device), stream)) {
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = declared().kernel_name(),
                 .expected = "a kernel that is prepared, while the stream is being captured",
                 .got = "one that is not",
                 .hint = "call compile(args) before the capture begins"});
  }
  prepare(device);
}

}  // namespace gemmery::user
