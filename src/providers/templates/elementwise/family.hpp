// SPDX-License-Identifier: Apache-2.0
// Elementwise programs without a matrix product, host half: the family's answers, its source, its
// launches. Device half: device/gemm/elementwise.cuh.
#pragma once

#include "providers/templates/template_family.hpp"

namespace gemmery::templates {

// Any program without reductions on a problem of K = 0 (ElementwiseArguments); any types, strides
// and alignment; sm_80 to sm_121.
class ElementwiseFamily final : public TemplateFamily {
 public:
  ElementwiseFamily();

  Status carries(const GemmProblem& problem) const override;
  bool takes_pointers() const noexcept override { return true; }
  void match(const Query& query, std::vector<RankedKernel>& kernels) const override;
  void explain(const Query& query, std::vector<Reason>& reasons) const override;
  // Enumerates nothing: a kernel is made for each program, and programs are unlimited.
  void enumerate(const std::function<void(const Kernel&)>&) const override {}

  std::string kernel_name(const Kernel& kernel) const override;
  std::vector<DesignField> design_fields(const Kernel& kernel) const override;
  Status supports(const Kernel& kernel, const Query& query) const override;

  runtime::EmittedSource emit(const Kernel& kernel, Target target) const override;
  void pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const override;

 private:
  std::optional<Kernel> read_name(std::string_view text) const override;
};

}  // namespace gemmery::templates
