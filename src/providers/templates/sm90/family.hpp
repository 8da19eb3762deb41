// SPDX-License-Identifier: Apache-2.0
// GEMM on Hopper's tensor cores, host half: the family's answers, its source, its launches. Device
// half: device/gemm/sm90.cuh.
#pragma once

#include "providers/templates/template_family.hpp"

namespace gemmery::templates {

// Floats of 8 and 16 bits, 8-bit integers, float32 by TF32 or split into parts; any layout,
// alignment and size; sm_90a.
class Sm90Family final : public TemplateFamily {
 public:
  Sm90Family();

  bool takes_pointers() const noexcept override { return true; }
  bool takes_groups(const Groups& groups) const noexcept override;
  bool takes_indices(const Groups& groups) const noexcept override;
  bool takes_convolution(const Convolution& convolution) const noexcept override;
  bool takes_companions(const GemmProblem& problem) const noexcept override;
  // Programs with reductions of blocks of one row, as far as its kernels have them.
  Status carries(const GemmProblem& problem) const override;
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
