// SPDX-License-Identifier: Apache-2.0
// A family of kernels that are compiled from source and launched on a GPU. A subclass provides the
// source and packs launches; compiling, storing, loading and running are done here for all
// families.
#pragma once

#include <gemmery/family.hpp>
#include <gemmery/kernel.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/code_form.hpp"
#include "runtime/launch_plan.hpp"

namespace gemmery::driver {
struct DriverApi;
}

namespace gemmery::runtime {

class DeviceArtifact;

// The source of a kernel for one target.
struct EmittedSource {
  std::string text;                  // includes <…> of embedded headers only
  std::string entry;                 // its extern "C" __global__ function, which takes one struct
  int max_dynamic_shared_bytes = 0;  // the maximum over all launches
  std::vector<std::string> options;  // compiler options in addition to those of every kernel
  std::string preparation =
      {};  // the kernel that fills a part of the workspace before; may be empty
};

// Everything that a launch is packed from.
struct PackRequest {
  const Kernel& kernel;
  const GemmArguments& arguments;
  const DeviceInfo& device;
  int max_multiprocessors = 0;      // limits persistent grids; 0 = all
  const driver::DriverApi& driver;  // for tensor maps
};

class DeviceFamily : public Family {
 public:
  // --- what a subclass says ----------------------------------------------------------------------

  // Equal text for equal (kernel, target). Throws Error (unsupported) for a target that is not in
  // `targets(kernel)`.
  virtual EmittedSource emit(const Kernel& kernel, Target target) const = 0;

  // Fills in a plan; the device's context is current. On the path of every launch: no allocation,
  // no lock. Never called for an empty output (M, N or L = 0). Throws Error (unsupported) for a
  // problem that no grid can cover.
  virtual void pack(const PackRequest& request, LaunchPlan& plan) const = 0;

  // The result of `targets(kernel)` as a table that lives as long as the process. Empty if there is
  // none: the subclass overrides `targets` then, which allocates on the path of every run.
  virtual std::span<const Target> target_table(const Kernel&) const noexcept { return {}; }

  // --- what is the same for all -----------------------------------------------------------------

  std::vector<Target> targets(const Kernel& kernel) const override;
  const DeviceInfo* device_info(Device device) const override;

  // Of the targets that run on the device, the one closest to it: the latest, and of equal ones 'a'
  // before 'f' before portable. If none runs there, one that does not.
  Target target_for(const Kernel& kernel, const DeviceInfo& device) const override;
  std::size_t workspace_bytes(const Kernel& kernel, const GemmArguments& arguments) const final;
  Artifact compile(const Kernel& kernel, Target target) const final;
  void run(const Kernel& kernel, const GemmArguments& arguments,
           const RunOptions& options) const final;

 protected:
  // Throws Error (invalid_argument) for code whose parameters are not those that `pack` fills in.
  // The library's own code always passes, since host and device share the structs.
  virtual void check_code(std::span<const std::byte> /*code*/, CodeForm /*form*/) const {}

  // The kernel with its code in `form`; by default compiled from the result of `emit`.
  virtual std::shared_ptr<const DeviceArtifact> make_artifact(const Kernel& kernel, Target target,
                                                              CodeForm form) const;

 private:
  friend class DeviceArtifact;
  // Compiles in `form` if there is no artifact yet.
  std::shared_ptr<const DeviceArtifact> find_or_compile(const Kernel& kernel, Target target,
                                                        CodeForm form) const;
};

// Of the targets that run on a device, the one closest to it: the latest, and of equal ones 'a'
// before 'f' before portable. nullptr if none runs there.
const Target* find_closest(std::span<const Target> targets, Target device) noexcept;

// True if `run` would have nothing to do.
inline bool is_empty_output(const GemmProblem& problem) noexcept {
  return problem.m == 0 || problem.n == 0 || problem.l == 0;
}

}  // namespace gemmery::runtime
