// SPDX-License-Identifier: Apache-2.0
// The compiled form of a DeviceFamily's kernel: a cubin, PTX for drivers that load it, or both.
// Loaded on each device at the first use there.
#pragma once

#include <gemmery/kernel.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/code_form.hpp"
#include "driver/code.hpp"
#include "driver/driver.hpp"
#include "jit/compiler.hpp"
#include "runtime/device_family.hpp"
#include "runtime/launch_plan.hpp"

namespace gemmery::runtime {

// The kernel loaded on one device.
struct LoadedKernel {
  const driver::GpuDevice* device;
  driver::cuda::Function function;
  const driver::LoadedCode* code;
  driver::cuda::Function preparation;  // null if the source has none
};

class DeviceArtifact final : public ArtifactState,
                             public std::enable_shared_from_this<DeviceArtifact> {
 public:
  // `code`: the code compiled first, in this form.
  DeviceArtifact(const Kernel& kernel, Target target, EmittedSource source, CodeForm form,
                 std::shared_ptr<const jit::CompiledCode> code);

  // Code that was compiled elsewhere, by form; forms that are missing stay missing.
  using Codes = std::array<std::shared_ptr<const jit::CompiledCode>, code_form_count>;
  DeviceArtifact(const Kernel& kernel, Target target, EmittedSource source, Codes codes);
  ~DeviceArtifact() override;

  const Kernel& kernel() const noexcept override { return kernel_; }
  std::vector<Target> targets() const override { return {target_}; }
  std::string_view source() const noexcept override { return source_.text; }
  std::string_view log() const noexcept override { return main_code().log; }
  double compile_ms() const noexcept override { return main_code().compile_ms; }
  std::optional<CodeResources> resources() const override;
  void load(Device device) const override { loaded_on(device); }
  void run(const GemmArguments& arguments, const RunOptions& options) const override;
  PreparedLaunch bind(const GemmArguments& arguments, std::size_t workspace_bytes) const override;

  Target target() const noexcept { return target_; }
  const DeviceFamily& family() const noexcept { return family_; }

  const EmittedSource& emitted() const noexcept { return source_; }

  // True if missing forms can be compiled: not for code from a file or from the user.
  bool may_compile() const noexcept { return may_compile_; }

  // The code in a form; compiled now if necessary. Throws Error (unsupported) for code from
  // elsewhere that lacks the form.
  const jit::CompiledCode& code(CodeForm form) const;

  // The same if it exists; nullptr otherwise.
  const jit::CompiledCode* find_code(CodeForm form) const noexcept;

  // The kernel on a device; loaded now if necessary. Throws Error (unsupported) for a device on
  // which the code does not run.
  const LoadedKernel& loaded_on(Device device) const;

  // Fills in a plan for a device.
  void pack(const GemmArguments& arguments, const driver::GpuDevice& device,
            int max_multiprocessors, LaunchPlan& plan) const;

 private:
  const LoadedKernel* find_loaded(Device device) const noexcept;
  const LoadedKernel& ready_for(Stream stream) const;
  const LoadedKernel& load_now(Device device) const;
  const driver::LoadedCode& loaded_code(const driver::Driver& driver) const;
  std::shared_ptr<const driver::LoadedCode> load_code(const driver::Driver& driver) const;
  void compile_instead(const driver::CodeRefused& refusal, CodeForm form) const;
  CodeForm form_for(const driver::Driver& driver) const noexcept;
  // The code that the artifact describes: the cubin, or the PTX if no cubin was needed yet.
  const jit::CompiledCode& main_code() const noexcept;

  Kernel kernel_;
  const DeviceFamily& family_;
  Target target_;
  EmittedSource source_;
  bool may_compile_ = true;

  // Code by form. It is replaced only if a driver refuses it. The pointers allow reads without a
  // lock.
  mutable std::mutex compiling_;
  mutable std::array<std::shared_ptr<const jit::CompiledCode>, code_form_count> codes_;
  mutable std::array<std::atomic<const jit::CompiledCode*>, code_form_count> ready_codes_{};
  // Refused code is kept: another thread may be reading it.
  mutable std::vector<std::shared_ptr<const jit::CompiledCode>> refused_codes_;

  // Loaded kernels by device type (cuda, emulated), then index. Entries never change, so that a
  // launch finds them without a lock.
  struct PerDriver {
    std::shared_ptr<const driver::LoadedCode> code;
    std::array<std::atomic<const LoadedKernel*>, driver::max_devices> devices{};
  };
  mutable std::mutex loading_;
  mutable std::array<PerDriver, 2> drivers_;
};

// Converts the figures of ptxas to the public type.
CodeResources resources_of(const jit::CodeUsage& usage) noexcept;

// Compiles a source once; returns the earlier result if there is one.
std::shared_ptr<const jit::CompiledCode> compile_source(const EmittedSource& source, Target target,
                                                        CodeForm form);

}  // namespace gemmery::runtime
