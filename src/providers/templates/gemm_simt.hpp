// SPDX-License-Identifier: Apache-2.0
// GEMM on CUDA cores, host half: the family's answers, its source, its launches. Device half:
// device/gemm/simt.cuh.
#pragma once

#include "runtime/device_family.hpp"

namespace gemmery::templates {

// Floats accumulated in f32, f64 in f64, 8-bit integers in int32; any strides, alignment and size;
// sm_80 to sm_121.
class SimtFamily final : public runtime::DeviceFamily {
 public:
  std::string_view provider() const noexcept override { return "templates"; }
  std::string_view name() const noexcept override { return "simt"; }
  int version() const noexcept override;

  Status carries(const GemmProblem& problem) const override;
  void match(const Query& query, std::vector<RankedKernel>& kernels) const override;
  void explain(const Query& query, std::vector<Reason>& reasons) const override;
  void enumerate(const std::function<void(const Kernel&)>& visit) const override;

  std::string kernel_name(const Kernel& kernel) const override;
  std::optional<Kernel> parse_name(std::string_view kernel_name) const override;
  std::vector<DesignField> design_fields(const Kernel& kernel) const override;
  std::span<const Target> target_table(const Kernel& kernel) const noexcept override;
  Status supports(const Kernel& kernel, const Query& query) const override;

  runtime::EmittedSource emit(const Kernel& kernel, Target target) const override;
  void pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const override;
};

}  // namespace gemmery::templates
