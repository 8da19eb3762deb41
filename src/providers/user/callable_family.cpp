// SPDX-License-Identifier: Apache-2.0
// Calls the user's function with checked arguments; its artifact has nothing to load but what it
// prepares itself.
#include "providers/user/callable_family.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <utility>

#include "driver/driver.hpp"
#include "driver/stream.hpp"
#include "platform/host_info.hpp"
#include "providers/user/user_fault.hpp"
#include "runtime/device_family.hpp"
#include "runtime/launch_steps.hpp"
#include "runtime/launch_workspace.hpp"
#include "runtime/run_workspace.hpp"

namespace gemmery::user {
namespace {

// Arguments that may be patched, and scratch memory that is kept for them.
class CallableLaunch final : public PreparedLaunchState {
 public:
  CallableLaunch(const CallableFamily& family, const GemmArguments& arguments,
                 std::size_t workspace_bytes)
      : family_(family), arguments_(arguments), workspace_(arguments.device(), workspace_bytes) {}

  void set_data(std::string_view operand, const void* data) override {
    arguments_.set_data(operand, data);
  }
  void set_scalars(double alpha, double beta) override { arguments_.set_scalars(alpha, beta); }
  void set_scalar(std::string_view name, double value) override {
    arguments_.set_scalar(name, value);
  }
  void launch(Stream stream) override {
    runtime::check_stream(stream, arguments_.device());
    if (runtime::is_empty_output(arguments_.problem())) return;
    workspace_.use(stream, [&] {
      family_.call({.arguments = arguments_, .stream = stream, .workspace = workspace_.lend()});
    });
  }

 private:
  const CallableFamily& family_;
  GemmArguments arguments_;
  runtime::LaunchWorkspace workspace_;
};

class CallableArtifact final : public ArtifactState {
 public:
  CallableArtifact(const CallableFamily& family, const Kernel& kernel, Target target)
      : family_(family), kernel_(kernel), target_(target) {}

  const Kernel& kernel() const noexcept override { return kernel_; }
  std::vector<Target> targets() const override { return {target_}; }
  std::string_view source() const noexcept override { return {}; }
  std::string_view log() const noexcept override { return {}; }
  double compile_ms() const noexcept override { return 0; }
  std::optional<CodeResources> resources() const override { return std::nullopt; }
  void load(Device device) const override { family_.prepare(device); }
  void run(const GemmArguments& arguments, const RunOptions& options) const override {
    family_.run(kernel_, arguments, options);
  }
  PreparedLaunch bind(const GemmArguments& arguments, std::size_t workspace_bytes) const override {
    family_.prepare(arguments.device());
    return PreparedLaunch(std::make_unique<CallableLaunch>(family_, arguments, workspace_bytes));
  }

 private:
  const CallableFamily& family_;
  Kernel kernel_;
  Target target_;
};

}  // namespace

CallableFamily::CallableFamily(std::unique_ptr<const DeclaredKernel> declared)
    : declared_(std::move(declared)) {}

std::optional<Kernel> CallableFamily::parse_name(std::string_view kernel_name) const {
  if (kernel_name != declared_->kernel_name()) return std::nullopt;
  return declared_->kernel_of(*this);
}

const DeviceInfo* CallableFamily::device_info(Device device) const {
  const bool is_of_cpu = declared_->targets().front().is_cpu();
  if (device.is_cpu() != is_of_cpu) return nullptr;
  return is_of_cpu ? &platform::host_device_info() : &driver::open_device(device).info();
}

Target CallableFamily::target_for(const Kernel&, const DeviceInfo& device) const {
  const std::vector<Target>& targets = declared_->targets();
  const Target* const best = runtime::find_closest(targets, device.target);
  return best == nullptr ? targets.front() : *best;
}

std::size_t CallableFamily::workspace_bytes(const Kernel&, const GemmArguments& arguments) const {
  if (runtime::is_empty_output(arguments.problem())) return 0;
  return declared_->workspace_bytes(arguments.problem(), *device_info(arguments.device()));
}

Artifact CallableFamily::compile(const Kernel& kernel, Target target) const {
  return Artifact(std::make_shared<CallableArtifact>(*this, kernel, target));
}

void CallableFamily::run(const Kernel& kernel, const GemmArguments& arguments,
                         const RunOptions& options) const {
  runtime::check_stream(options.stream, arguments.device());
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
    rethrow_caught(ErrorKind::launch, declared_->kernel_name(), "the callable");
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
    rethrow_caught(ErrorKind::compile, declared_->kernel_name(), "the function `prepare`");
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
                 .operand = declared_->kernel_name(),
                 .expected = "a kernel that is prepared, while the stream is being captured",
                 .got = "one that is not",
                 .hint = "call compile(args) before the capture begins"});
  }
  prepare(device);
}

}  // namespace gemmery::user
