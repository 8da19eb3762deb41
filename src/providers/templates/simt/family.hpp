// SPDX-License-Identifier: Apache-2.0
// GEMM on CUDA cores, host half: the family's answers, its source, its launches. Device half:
// device/gemm/simt.cuh.
#pragma once

#include "providers/templates/template_family.hpp"

namespace gemmery::templates {

// Floats accumulated in float32, float64 in float64, 8-bit integers in int32; any strides,
// alignment and size; sm_80 to sm_121.
class SimtFamily final : public TemplateFamily {
 public:
  SimtFamily();

  // Programs with amax, max and min of blocks that divide tiles.
  Status carries(const GemmProblem& problem) const override;
  bool takes_pointers() const noexcept override { return true; }
  // Adjacent and masked groups with sizes on the device.
  bool takes_groups(const Groups& groups) const noexcept override;
  bool takes_operand_programs(const GemmProblem& problem) const noexcept override;
  bool takes_companions(const GemmProblem& problem) const noexcept override;
  // Rows if M differs, columns if N differs.
  bool takes_indices(const Groups& groups) const noexcept override { return !groups.are_on_host; }
  // All kinds; a dgrad with a stride runs by phases.
  bool takes_convolution(const Convolution&) const noexcept override { return true; }
  void match(const Query& query, std::vector<RankedKernel>& kernels) const override;
  void explain(const Query& query, std::vector<Reason>& reasons) const override;
  void enumerate(const std::function<void(const Kernel&)>& visit) const override;

  std::string kernel_name(const Kernel& kernel) const override;
  std::vector<DesignField> design_fields(const Kernel& kernel) const override;
  Status supports(const Kernel& kernel, const Query& query) const override;

  runtime::EmittedSource emit(const Kernel& kernel, Target target) const override;
  void pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const override;

 private:
  std::optional<Kernel> read_name(std::string_view text) const override;
};

}  // namespace gemmery::templates
