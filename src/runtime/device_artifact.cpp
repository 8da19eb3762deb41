// SPDX-License-Identifier: Apache-2.0
// Loads and runs one compiled kernel.
#include "runtime/device_artifact.hpp"

#include <gemmery/error.hpp>

#include <utility>

#include "core/invariant.hpp"
#include "driver/launch.hpp"
#include "driver/stream.hpp"
#include "jit/build.hpp"
#include "kernel/rules.hpp"
#include "platform/log.hpp"
#include "runtime/launch_steps.hpp"
#include "runtime/prepared_launch.hpp"
#include "runtime/run_workspace.hpp"

namespace gemmery::runtime {
namespace {

constexpr std::size_t index_of(CodeForm form) noexcept { return static_cast<std::size_t>(form); }

std::span<const std::byte> bytes_of(const jit::CompiledCode& code, CodeForm form) noexcept {
  return form == CodeForm::ptx ? std::as_bytes(std::span(code.ptx)) : std::span(code.cubin);
}

std::size_t driver_index(DeviceType type) noexcept { return type == DeviceType::cuda ? 0 : 1; }

bool is_index_possible(Device device) noexcept {
  return !device.is_cpu() && device.index >= 0 && device.index < driver::max_devices;
}

jit::CompileRequest request_of(const EmittedSource& source, Target target, CodeForm form) {
  return {.source = source.text,
          .entry = source.entry,
          .target = target,
          .form = form,
          .extra_options = source.options};
}

[[noreturn]] void throw_missing_form(const Kernel& kernel, Target target, CodeForm form) {
  const bool is_ptx = form == CodeForm::ptx;
  throw Error({.kind = ErrorKind::unsupported,
               .operand = kernel.name() + " for " + to_string(target),
               .expected = is_ptx ? "PTX, which emulated devices run" : "a cubin, which GPUs run",
               .got = is_ptx ? "a cubin only" : "PTX only",
               .hint = is_ptx ? "give or save it with its PTX (gemmery compile --ptx)"
                              : "compile it again"});
}

}  // namespace

std::shared_ptr<const jit::CompiledCode> compile_source(const EmittedSource& source, Target target,
                                                        CodeForm form) {
  return jit::build(request_of(source, target, form));
}

CodeResources resources_of(const jit::CodeUsage& usage) noexcept {
  return {.registers = usage.registers,
          .static_shared_bytes = usage.static_shared_bytes,
          .spill_store_bytes = usage.spill_store_bytes,
          .spill_load_bytes = usage.spill_load_bytes,
          .stack_bytes = usage.stack_bytes};
}

DeviceArtifact::DeviceArtifact(const Kernel& kernel, Target target, EmittedSource source,
                               CodeForm form, std::shared_ptr<const jit::CompiledCode> code)
    : kernel_(kernel),
      family_(static_cast<const DeviceFamily&>(kernel.family())),
      target_(target),
      source_(std::move(source)) {
  ready_codes_[index_of(form)].store(code.get(), std::memory_order_release);
  codes_[index_of(form)] = std::move(code);
}

DeviceArtifact::DeviceArtifact(const Kernel& kernel, Target target, EmittedSource source,
                               Codes codes)
    : kernel_(kernel),
      family_(static_cast<const DeviceFamily&>(kernel.family())),
      target_(target),
      source_(std::move(source)),
      may_compile_(false),
      codes_(std::move(codes)) {
  for (std::size_t form = 0; form < codes_.size(); ++form)
    ready_codes_[form].store(codes_[form].get(), std::memory_order_release);
}

// Artifacts in the store are never destroyed; those from files are.
DeviceArtifact::~DeviceArtifact() {
  for (PerDriver& of_driver : drivers_) {
    for (const std::atomic<const LoadedKernel*>& loaded : of_driver.devices)
      delete loaded.load(std::memory_order_acquire);
  }
}

// --- code ---------------------------------------------------------------------------------------

const jit::CompiledCode* DeviceArtifact::find_code(CodeForm form) const noexcept {
  return ready_codes_[index_of(form)].load(std::memory_order_acquire);
}

const jit::CompiledCode& DeviceArtifact::code(CodeForm form) const {
  std::atomic<const jit::CompiledCode*>& ready = ready_codes_[index_of(form)];
  if (const jit::CompiledCode* const code = ready.load(std::memory_order_acquire)) return *code;
  if (!may_compile_) throw_missing_form(kernel_, target_, form);
  const std::lock_guard lock(compiling_);
  if (const jit::CompiledCode* const code = ready.load(std::memory_order_acquire)) return *code;
  std::shared_ptr<const jit::CompiledCode>& code = codes_[index_of(form)];
  code = compile_source(source_, target_, form);
  ready.store(code.get(), std::memory_order_release);
  return *code;
}

const jit::CompiledCode& DeviceArtifact::main_code() const noexcept {
  for (const CodeForm form : {CodeForm::cubin, CodeForm::ptx}) {
    if (const jit::CompiledCode* const code = find_code(form)) return *code;
  }
  abort_on_bug("an artifact without code");
}

// Only ptxas reports resources, so there are none if only PTX was compiled.
std::optional<CodeResources> DeviceArtifact::resources() const {
  const jit::CompiledCode* const code = find_code(CodeForm::cubin);
  if (code == nullptr) return std::nullopt;
  return resources_of(code->usage);
}

// --- loading ------------------------------------------------------------------------------------

const LoadedKernel* DeviceArtifact::find_loaded(Device device) const noexcept {
  if (!is_index_possible(device)) return nullptr;
  const PerDriver& of_driver = drivers_[driver_index(device.type)];
  return of_driver.devices[static_cast<std::size_t>(device.index)].load(std::memory_order_acquire);
}

const LoadedKernel& DeviceArtifact::loaded_on(Device device) const {
  driver::refuse_after_fork();
  if (const LoadedKernel* const loaded = find_loaded(device)) return *loaded;
  return load_now(device);
}

// Queries the capture status only if something must be loaded, so that ordinary launches do not pay
// for it.
const LoadedKernel& DeviceArtifact::ready_for(Stream stream) const {
  driver::refuse_after_fork();
  if (const LoadedKernel* const loaded = find_loaded(stream.device())) [[likely]]
    return *loaded;
  const driver::GpuDevice& device = driver::open_device(stream.device());
  if (driver::is_capturing(device, stream)) {
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = kernel_.name(),
                 .expected = "code that is loaded on " + to_string(stream.device()) +
                             ", while the stream is being captured",
                 .got = "code that is not",
                 .hint = "call artifact.load(device) or compile(args) before the capture begins"});
  }
  return load_now(stream.device());
}

const LoadedKernel& DeviceArtifact::load_now(Device device) const {
  const driver::GpuDevice& gpu = driver::open_device(device);
  if (!runs_on(target_, gpu.info().target)) {
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = kernel_.name(),
                 .expected = "a device that code for " + to_string(target_) + " runs on",
                 .got = to_string(gpu.info().target) + " (" + to_string(device) + ")",
                 .hint = "compile it for that device"});
  }
  const std::lock_guard lock(loading_);
  if (const LoadedKernel* const loaded = find_loaded(device)) return *loaded;
  const driver::LoadedCode& code = loaded_code(gpu.driver());
  const driver::cuda::Function function = code.prepare(gpu, source_.max_dynamic_shared_bytes);
  const driver::cuda::Function preparation =
      source_.preparation.empty() ? nullptr : code.prepare_other(gpu, source_.preparation);
  const LoadedKernel* const loaded = new LoadedKernel{&gpu, function, &code, preparation};
  PerDriver& of_driver = drivers_[driver_index(device.type)];
  of_driver.devices[static_cast<std::size_t>(device.index)].store(loaded,
                                                                  std::memory_order_release);
  return *loaded;
}

// The caller holds `loading_`.
const driver::LoadedCode& DeviceArtifact::loaded_code(const driver::Driver& driver) const {
  std::shared_ptr<const driver::LoadedCode>& loaded = drivers_[driver_index(driver.type())].code;
  if (!loaded) loaded = load_code(driver);
  return *loaded;
}

// A cache must never prevent a kernel from running: cached code that the driver refuses is compiled
// anew, once.
std::shared_ptr<const driver::LoadedCode> DeviceArtifact::load_code(
    const driver::Driver& driver) const {
  const CodeForm form = form_for(driver);
  const auto load = [&](const jit::CompiledCode& code) {
    const std::span<const std::byte> bytes = bytes_of(code, form);
    family_.check_code(bytes, form);
    return driver::LoadedCode::load(driver, bytes, source_.entry);
  };
  const jit::CompiledCode& first = code(form);
  try {
    return load(first);
  } catch (const driver::CodeRefused& refusal) {
    if (!may_compile_ || !first.was_kept) throw;
    compile_instead(refusal, form);
  }
  return load(code(form));
}

// Throws the refusal if there is no compiler, and passes on exceptions of the compiler.
void DeviceArtifact::compile_instead(const driver::CodeRefused& refusal, CodeForm form) const {
  platform::log(LogLevel::warning, source_.entry +
                                       ": code from the cache is compiled anew, since " +
                                       std::string(refusal.what()));
  const std::lock_guard lock(compiling_);
  std::shared_ptr<const jit::CompiledCode>& code = codes_[index_of(form)];
  try {
    auto other = jit::build_other(request_of(source_, target_, form), code);
    refused_codes_.push_back(std::exchange(code, std::move(other)));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::unavailable) throw refusal;
    throw;
  }
  ready_codes_[index_of(form)].store(code.get(), std::memory_order_release);
}

// A GPU's driver compiles PTX itself if there is no cubin.
CodeForm DeviceArtifact::form_for(const driver::Driver& driver) const noexcept {
  const CodeForm form = driver.code_form();
  const bool has_ptx_only = !may_compile_ && find_code(form) == nullptr &&
                            form == CodeForm::cubin && find_code(CodeForm::ptx) != nullptr;
  return has_ptx_only ? CodeForm::ptx : form;
}

// --- running ------------------------------------------------------------------------------------

void DeviceArtifact::pack(const GemmArguments& arguments, const driver::GpuDevice& device,
                          int max_multiprocessors, LaunchPlan& plan) const {
  const driver::ScopedContext current(device);  // tensor maps cannot be encoded without one
  family_.pack({.kernel = kernel_,
                .arguments = arguments,
                .device = device.info(),
                .max_multiprocessors = max_multiprocessors,
                .driver = device.api()},
               plan);
}

void DeviceArtifact::run(const GemmArguments& arguments, const RunOptions& options) const {
  kernel::check_stream(options.stream, arguments.device());
  if (is_empty_output(arguments.problem())) return;
  const LoadedKernel& loaded = ready_for(options.stream);
  const driver::ScopedContext current(*loaded.device);  // once for the steps below
  LaunchPlan plan;
  pack(arguments, *loaded.device, options.max_multiprocessors, plan);
  if (plan.workspace_bytes == 0) [[likely]] {
    put_launch(kernel_, loaded, plan, options.stream);
    return;
  }
  const RunWorkspace workspace(kernel_, options, plan.workspace_bytes);
  place_workspace(loaded, plan, workspace.data());
  clear_and_launch(kernel_, loaded, plan, workspace.data(), options.stream);
}

PreparedLaunch DeviceArtifact::bind(const GemmArguments& arguments,
                                    std::size_t workspace_bytes) const {
  return PreparedLaunch(
      std::make_unique<DevicePreparedLaunch>(shared_from_this(), arguments, workspace_bytes));
}

}  // namespace gemmery::runtime
