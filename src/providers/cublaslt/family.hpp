// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's kernels as a family. A kernel is one algorithm with its configuration, for one class
// of problems, as the library's heuristics name it for a problem on a device of this machine.
#pragma once

#include <gemmery/family.hpp>

#include <array>
#include <atomic>
#include <mutex>

#include "providers/cublaslt/answers.hpp"
#include "providers/cublaslt/launch.hpp"
#include "providers/cublaslt/library.hpp"

namespace gemmery::cublaslt {

class CublasltFamily final : public Family {
 public:
  // `library` is called when a kernel is first asked about on a device of `type`, not before.
  explicit CublasltFamily(const FoundLibrary& (*library)() = process_library,
                          DeviceType type = DeviceType::cuda);

  std::string_view provider() const noexcept override { return "cublaslt"; }
  std::string_view name() const noexcept override { return "cublaslt"; }
  int version() const noexcept override { return 1; }

  Status carries(const GemmProblem& problem) const override;
  bool ranks_last_until_measured() const noexcept override { return true; }
  void match(const Query& query, std::vector<RankedKernel>& kernels) const override;
  void explain(const Query& query, std::vector<Reason>& reasons) const override;
  // None: they exist for a problem on a device.
  void enumerate(const std::function<void(const Kernel&)>&) const override {}

  std::string kernel_name(const Kernel& kernel) const override;
  std::optional<Kernel> parse_name(std::string_view kernel_name) const override;
  std::vector<DesignField> design_fields(const Kernel& kernel) const override;
  std::vector<Target> targets(const Kernel& kernel) const override;

  const DeviceInfo* device_info(Device device) const override;
  Target target_for(const Kernel& kernel, const DeviceInfo& device) const override;
  Status supports(const Kernel& kernel, const Query& query) const override;
  std::size_t workspace_bytes(const Kernel& kernel, const GemmArguments& arguments) const override;
  Artifact compile(const Kernel& kernel, Target target) const override;
  void run(const Kernel& kernel, const GemmArguments& arguments,
           const RunOptions& options) const override;

  // --- for its artifacts ---
  // Opens the library on a device. Throws Error (unavailable).
  DeviceAnswers& open(Device device) const;
  // Throws Error (unsupported) if the kernel cannot run the arguments.
  Plan plan(const Kernel& kernel, const GemmArguments& arguments) const;

 private:
  // The device that a query is about, if it is one of this machine.
  Status find_device(const Query& query, const driver::GpuDevice*& device) const;
  Status find_answer(const Query& query, std::shared_ptr<const Answer>& answer) const;
  Status find_choices(const Query& query, std::shared_ptr<const Answer>& answer) const;
  DeviceAnswers& answers_of(const driver::GpuDevice& device) const;

  const FoundLibrary& (*library_)();
  DeviceType type_;
  mutable std::mutex opening_;
  // Never destroyed, as their handles are not.
  mutable std::array<std::atomic<DeviceAnswers*>, driver::max_devices> devices_{};
};

}  // namespace gemmery::cublaslt
