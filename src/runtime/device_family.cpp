// SPDX-License-Identifier: Apache-2.0
// Compiling, finding and running: the same for all families of GPU kernels.
#include "runtime/device_family.hpp"

#include <gemmery/error.hpp>

#include <utility>

#include "driver/driver.hpp"
#include "driver/stream.hpp"
#include "kernel/rules.hpp"
#include "runtime/device_artifact.hpp"
#include "runtime/kernel_store.hpp"
#include "runtime/launch_steps.hpp"

namespace gemmery::runtime {
namespace {

// A larger value is closer to the device: later architectures first, then 'a', 'f', portable.
int closeness(Target target) noexcept {
  const int by_suffix = target.suffix == 'a' ? 2 : target.suffix == 'f' ? 1 : 0;
  return 4 * target.architecture + by_suffix;
}

Target closest(std::span<const Target> targets, Target device) noexcept {
  if (const Target* const best = find_closest(targets, device)) return *best;
  return targets.empty() ? Target{} : targets.front();
}

const driver::GpuDevice& gpu_of(const Kernel& kernel, Device device) {
  if (!device.is_cpu()) return driver::open_device(device);
  throw Error({.kind = ErrorKind::unsupported,
               .operand = kernel.name(),
               .expected = "operands on a GPU",
               .got = "operands on the CPU",
               .hint = "copy them to the device first"});
}

void refuse_to_compile_in_capture(const Kernel& kernel, const driver::GpuDevice& device,
                                  Stream stream) {
  if (!driver::is_capturing(device, stream)) return;
  throw Error({.kind = ErrorKind::unsupported,
               .operand = kernel.name(),
               .expected = "a kernel that is compiled, while the stream is being captured",
               .got = "one that is not",
               .hint = "call compile(args) before the capture begins"});
}

}  // namespace

const Target* find_closest(std::span<const Target> targets, Target device) noexcept {
  const Target* best = nullptr;
  for (const Target& target : targets) {
    if (runs_on(target, device) && (best == nullptr || closeness(target) > closeness(*best)))
      best = &target;
  }
  return best;
}

std::vector<Target> DeviceFamily::targets(const Kernel& kernel) const {
  const std::span<const Target> table = target_table(kernel);
  return {table.begin(), table.end()};
}

const DeviceInfo* DeviceFamily::device_info(Device device) const {
  return device.is_cpu() ? nullptr : &driver::open_device(device).info();
}

Target DeviceFamily::target_for(const Kernel& kernel, const DeviceInfo& device) const {
  const std::span<const Target> table = target_table(kernel);
  return table.empty() ? closest(targets(kernel), device.target) : closest(table, device.target);
}

std::size_t DeviceFamily::workspace_bytes(const Kernel& kernel,
                                          const GemmArguments& arguments) const {
  if (is_empty_output(arguments.problem())) return 0;
  const driver::GpuDevice& device = gpu_of(kernel, arguments.device());
  const driver::ScopedContext current(device);
  LaunchPlan plan;
  pack({.kernel = kernel, .arguments = arguments, .device = device.info(), .driver = device.api()},
       plan);
  return plan.workspace_bytes;
}

Artifact DeviceFamily::compile(const Kernel& kernel, Target target) const {
  std::shared_ptr<const DeviceArtifact> artifact = find_or_compile(kernel, target, CodeForm::cubin);
  // The cubin is missing if an emulated device was first.
  if (artifact->may_compile()) (void)artifact->code(CodeForm::cubin);
  return Artifact(std::move(artifact));
}

void DeviceFamily::run(const Kernel& kernel, const GemmArguments& arguments,
                       const RunOptions& options) const {
  kernel::check_stream(options.stream, arguments.device());
  if (is_empty_output(arguments.problem())) return;
  const driver::GpuDevice& device = gpu_of(kernel, arguments.device());
  const Target target = target_for(kernel, device.info());
  const KernelStore::Shared* artifact = KernelStore::of_process().find(kernel, target);
  if (artifact != nullptr) {
    (*artifact)->run(arguments, options);
    return;
  }
  refuse_to_compile_in_capture(kernel, device, options.stream);
  find_or_compile(kernel, target, device.driver().code_form())->run(arguments, options);
}

std::shared_ptr<const DeviceArtifact> DeviceFamily::find_or_compile(const Kernel& kernel,
                                                                    Target target,
                                                                    CodeForm form) const {
  KernelStore& store = KernelStore::of_process();
  if (const KernelStore::Shared* const known = store.find(kernel, target)) return *known;
  // Two threads may get here at the same time: the builder compiles once for both, and one of the
  // artifacts is discarded.
  return store.insert(make_artifact(kernel, target, form));
}

std::shared_ptr<const DeviceArtifact> DeviceFamily::make_artifact(const Kernel& kernel,
                                                                  Target target,
                                                                  CodeForm form) const {
  EmittedSource source = emit(kernel, target);
  std::shared_ptr<const jit::CompiledCode> code = compile_source(source, target, form);
  return std::make_shared<const DeviceArtifact>(kernel, target, std::move(source), form,
                                                std::move(code));
}

}  // namespace gemmery::runtime
