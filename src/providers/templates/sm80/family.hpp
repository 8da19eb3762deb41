// SPDX-License-Identifier: Apache-2.0
// GEMM by mma.sync, host half: answers queries, emits source, packs launches. Device half:
// device/gemm/sm80.cuh.
#pragma once

#include "providers/templates/template_family.hpp"

namespace gemmery::templates {

// 16-bit floats, float64, 8-bit integers, 8-bit floats (math=fp8_fast, sm_89 and later), and
// float32 by an explicit `math`; any alignment, row or column major; sm_80 to sm_121.
class Sm80Family final : public TemplateFamily {
 public:
  Sm80Family();

  // Programs with reductions of blocks of one row, as far as its kernels have them.
  Status carries(const GemmProblem& problem) const override;
  bool takes_pointers() const noexcept override { return true; }
  bool takes_convolution(const Convolution&) const noexcept override { return true; }
  bool takes_companions(const GemmProblem& problem) const noexcept override;
  bool takes_prepared(const GemmProblem&) const noexcept override { return true; }
  bool takes_groups(const Groups& groups) const noexcept override;
  // Rows of a row-major A, and columns of a column-major B.
  bool takes_indices(const Groups&) const noexcept override { return true; }
  void match(const Query& query, std::vector<RankedKernel>& kernels) const override;
  void explain(const Query& query, std::vector<Reason>& reasons) const override;
  void enumerate(const std::function<void(const Kernel&)>& visit) const override;

  std::string kernel_name(const Kernel& kernel) const override;
  std::vector<DesignField> design_fields(const Kernel& kernel) const override;
  Status supports(const Kernel& kernel, const Query& query) const override;
  std::span<const Target> target_table(const Kernel& kernel) const noexcept override;

  runtime::EmittedSource emit(const Kernel& kernel, Target target) const override;
  void pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const override;

 private:
  std::optional<Kernel> read_name(std::string_view text) const override;
};

}  // namespace gemmery::templates
