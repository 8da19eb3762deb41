// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution, host half: answers queries, emits source, packs launches. Device halves:
// device/gemm/depthwise.cuh, device/gemm/depthwise_wgrad.cuh.
#pragma once

#include "providers/templates/depthwise/design.hpp"
#include "providers/templates/template_family.hpp"

namespace gemmery::templates {

// Convolutions whose groups have one channel each: any number of filters per channel, all
// dimensions, strides, dilations and types that CUDA cores multiply; epilogues with reductions to a
// value per channel.
class DepthwiseFamily final : public TemplateFamily {
 public:
  DepthwiseFamily();

  bool takes_convolution(const Convolution& convolution) const noexcept override {
    return is_depthwise(convolution);
  }
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
